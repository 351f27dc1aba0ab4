package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
)

// A ledger is the side file of a fenced file, open and locked: the highest token, kept so that no crash can make it
// smaller. It is never removed, for a lock on a removed file excludes nobody.
//
//	fence1 00001795000000000032 5c1d0e4f⏎      slot 0: version, token, CRC-32 of both
//	fence1 00001795000000000064 9a3b77c2⏎      slot 1
//
// The larger valid slot counts. A new token overwrites the *other* slot and is synced before anybody is told, so a
// write that tears leaves the token before it. An empty file, or one of zero bytes only (a machine that died before
// the first sync), has never told anybody anything and counts as new. Anything else that has no valid slot is
// refused: a token that was seen may stand there unreadable, and to start again at 0 would let the stale in.
type ledger struct {
	f       *os.File
	path    string
	highest uint64
	next    int64 // the slot to overwrite
}

const (
	slotHead = "fence1 "
	slotSize = int64(len(slotHead) + 20 + 1 + 8 + 1)
)

// openLedger waits until it has the side file for itself, creating it if there is none.
func openLedger(ctx context.Context, path string, perm os.FileMode) (*ledger, error) {
	f, err := openLocked(ctx, path, perm)
	if err != nil {
		return nil, err
	}
	l := &ledger{f: f, path: path}
	if err := l.load(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return l, nil
}

func (l *ledger) load() error {
	buf := make([]byte, 2*slotSize+1)
	n, err := l.f.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	buf = buf[:n]
	if len(bytes.Trim(buf, "\x00")) == 0 {
		return l.format()
	}
	if int64(n) != 2*slotSize {
		return l.corrupt(buf)
	}
	a, okA := decodeSlot(buf[:slotSize])
	b, okB := decodeSlot(buf[slotSize:])
	switch {
	case !okA && !okB:
		return l.corrupt(buf)
	case okA && (!okB || a >= b):
		l.highest, l.next = a, 1
	default:
		l.highest, l.next = b, 0
	}
	return nil
}

// format writes both slots of a new ledger. Later only one slot at a time is ever touched.
func (l *ledger) format() error {
	slot := encodeSlot(0)
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	if _, err := l.f.WriteAt(append(slot, slot...), 0); err != nil {
		return err
	}
	if err := l.f.Sync(); err != nil {
		return err
	}
	return syncDir(l.path)
}

// raise stores token, which must be larger than the highest, and returns when it is on the disk.
func (l *ledger) raise(token uint64) error {
	if _, err := l.f.WriteAt(encodeSlot(token), l.next*slotSize); err != nil {
		return err
	}
	if err := l.f.Sync(); err != nil {
		return err
	}
	l.highest, l.next = token, 1-l.next
	return nil
}

// close gives the ledger to whoever waits for it.
func (l *ledger) close() { _ = l.f.Close() }

func (l *ledger) corrupt(buf []byte) error {
	if bytes.HasPrefix(buf, []byte("fence")) && !bytes.HasPrefix(buf, []byte(slotHead)) {
		return fmt.Errorf("fence: %s was written by a newer version of this package; update this program", l.path)
	}
	return fmt.Errorf("fence: %s holds no valid token; restore it, or remove it once no earlier holder can still be running", l.path)
}

func encodeSlot(token uint64) []byte {
	b := fmt.Appendf(nil, "%s%020d", slotHead, token)
	return fmt.Appendf(b, " %08x\n", crc32.ChecksumIEEE(b))
}

func decodeSlot(b []byte) (token uint64, ok bool) {
	digits := b[len(slotHead) : len(slotHead)+20]
	token, err := strconv.ParseUint(string(digits), 10, 64)
	return token, err == nil && token <= Max && bytes.Equal(b, encodeSlot(token))
}
