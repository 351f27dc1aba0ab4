//go:build linux || darwin

package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// recordFile is an open record. Several goroutines may use it; it is closed when the last has let go.
type recordFile struct {
	fd   int
	path string
	refs atomic.Int32
}

const openFlags = unix.O_RDWR | unix.O_CLOEXEC | unix.O_NOFOLLOW

// openRecord opens a record and makes it if create is set: with a head for which nobody stands in line, because an empty
// file is one that somebody has cut to nothing, except for the moment until that head is written.
//
// Whoever makes it may be stopped in that moment, and others then begin the line anew. So the head is written under the
// flock, and only into a file that is still empty: else it would wipe out those who hold by then.
func (st *store) openRecord(path string, create bool) (*recordFile, error) {
	for {
		fd, err := unix.Open(path, openFlags|machine.NoAccessTime, 0)
		if errors.Is(err, unix.EPERM) && machine.NoAccessTime != 0 {
			fd, err = unix.Open(path, openFlags, 0) // only the owner may be quiet
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ENOENT) && create {
			fd, err = unix.Open(path, openFlags|machine.NoAccessTime|unix.O_CREAT|unix.O_EXCL, uint32(st.fileMode))
			if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EINTR) {
				continue
			}
			if err == nil {
				err = st.beginRecord(fd, path)
			}
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		f := &recordFile{fd: fd, path: path}
		f.refs.Store(1)
		return f, nil
	}
}

// beginRecord writes the first head of a record that was just made, unless somebody else has begun it meanwhile.
func (st *store) beginRecord(fd int, path string) (err error) {
	f := &recordFile{fd: fd, path: path}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if st.shared() {
		if err := unix.Fchmod(fd, uint32(st.fileMode)); err != nil {
			return err
		}
	}
	if err := machine.LockFor(fd, flockPatient); err != nil {
		return nil // whoever has it begins the line
	}
	defer f.unlock()
	var first [1]byte
	if n, err := f.pread(first[:], 0); n > 0 || err != nil {
		return err
	}
	head, _, _ := (&record{}).encode(nil)
	if err := f.pwrite(head, 0); err != nil {
		_ = unix.Unlink(path)
		return err
	}
	return nil
}

func (f *recordFile) unref() {
	if f.refs.Add(-1) == 0 {
		unix.Close(f.fd)
	}
}

// How often a flock that is taken is tried before the thread sleeps, and how long it then sleeps at most. A record is
// locked for some microseconds, so it is nearly always free after a few tries; a longer time means that its owner waits
// for a processor or is stopped.
const (
	flockTries   = 20
	flockNaps    = 10
	flockNap     = 20 * time.Microsecond
	flockLongest = 10 * time.Millisecond
	flockPatient = time.Second // then it is worth a word to the operator
)

// lock takes the record's flock, or returns when ctx or closing ends. It asks again and again instead of blocking in the system
// call, because that could be neither cancelled nor left behind without a thread.
func (f *recordFile) lock(ctx, closing context.Context, slow func(*recordFile)) error {
	for range flockTries {
		if ok, err := machine.Flock(f.fd, unix.LOCK_EX); ok || err != nil {
			return err
		}
	}
	for range flockNaps {
		machine.Nap(flockNap)
		if ok, err := machine.Flock(f.fd, unix.LOCK_EX); ok || err != nil {
			return err
		}
	}
	t := time.NewTimer(time.Millisecond)
	defer t.Stop()
	began, told := time.Now(), false
	for pause := time.Millisecond; ; pause = min(2*pause, flockLongest) {
		t.Reset(pause)
		select {
		case <-closing.Done():
			return errClosed
		case <-ctx.Done():
			return fmt.Errorf("%w while %s has the record's lock", ctx.Err(), f.owner())
		case <-t.C:
		}
		if ok, err := machine.Flock(f.fd, unix.LOCK_EX); ok || err != nil {
			return err
		}
		if !told && time.Since(began) > flockPatient {
			told = true
			slow(f)
		}
	}
}

// owner says who has the flock, as far as the system tells.
func (f *recordFile) owner() string {
	var st unix.Stat_t
	if unix.Fstat(f.fd, &st) == nil {
		if who := machine.LockOwner(st.Ino); who != "" {
			return who
		}
	}
	return "another process"
}

func (f *recordFile) unlock() { machine.Unflock(f.fd) }

// unlinked reports whether the file has lost its name: then a new one stands in its place, or none.
func (f *recordFile) unlinked() (bool, error) {
	n, err := machine.Links(f.fd)
	return n == 0, err
}

// pread reads up to len(b) bytes at off.
func (f *recordFile) pread(b []byte, off int64) (int, error) {
	for n := 0; ; {
		m, err := unix.Pread(f.fd, b[n:], off+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, &os.PathError{Op: "read", Path: f.path, Err: err}
		}
		if n += m; m == 0 || n == len(b) {
			return n, nil
		}
	}
}

// pwrite writes b at off in one call.
func (f *recordFile) pwrite(b []byte, off int64) error {
	for {
		n, err := unix.Pwrite(f.fd, b, off)
		if err == unix.EINTR && n <= 0 {
			continue
		}
		if err == nil && n < len(b) {
			err = unix.ENOSPC
		}
		if err != nil {
			return &os.PathError{Op: "write", Path: f.path, Err: err}
		}
		return nil
	}
}

// heads are buffers for the first page of a record.
var heads = sync.Pool{New: func() any { return new([pageSize]byte) }}

// read returns the record, or known if its stamp says that it is the same. The caller has the flock, or checks what it
// gets as peek does.
func (f *recordFile) read(known *record, stamped stamp) (*record, stamp, error) {
	head := heads.Get().(*[pageSize]byte)
	defer heads.Put(head)
	n, err := f.pread(head[:], 0)
	if err != nil {
		return nil, stamp{}, err
	}
	seen := stampOf(head[:n])
	if known != nil && seen == stamped {
		return known, seen, nil
	}
	r, err := decode(head[:n], func(e extent) ([]byte, error) {
		body := make([]byte, e.size)
		n, err := f.pread(body, int64(e.page)*pageSize)
		return body[:n], err
	})
	if err != nil {
		return nil, stamp{}, f.explain(err)
	}
	return r, seen, nil
}

// explain says which file an error is about and what would be right.
func (f *recordFile) explain(err error) error {
	switch {
	case errors.Is(err, errNewer):
		return fmt.Errorf("filelock: record %s is %w: use the newer version for all programs of this store: %w", f.path, err, driver.ErrRefused)
	case errors.Is(err, errDamaged):
		return fmt.Errorf("filelock: record %s is %w: whoever wants this lock next begins it anew: %w", f.path, err, driver.ErrBadData)
	}
	return fmt.Errorf("filelock: %w", err)
}

// peekTries is how often a record is read without its lock before the reader gives up for now. Each try meets a writer
// only for the microsecond that he takes to copy a page.
const peekTries = 50

// peek reads the record without taking its lock: the checksum tells whether a writer was at it meanwhile. One that is empty is
// about to be begun by whoever has just made it, who may be held up before that.
func (f *recordFile) peek() (r *record, seen stamp, err error) {
	for tries, empty := 0, 0; tries < peekTries; tries++ {
		if r, seen, err = f.read(nil, stamp{}); err == nil || !errors.Is(err, errDamaged) {
			return r, seen, err
		}
		if errors.Is(err, errEmpty) && empty < emptyPatience {
			tries, empty = 0, empty+1
			machine.Nap(time.Millisecond)
		}
	}
	return nil, stamp{}, err
}

// write makes r the record: its generation is already the next one.
func (f *recordFile) write(r *record, buf []byte) (full []byte, written stamp, err error) {
	head, body, full := r.encode(buf)
	if body != nil {
		if err := f.pwrite(body, int64(r.body.page)*pageSize); err != nil {
			return full, stamp{}, err
		}
	}
	// From here on the record is the new one, whenever this process is killed.
	return full, stampOf(head), f.pwrite(head, 0)
}
