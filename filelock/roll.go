//go:build linux || darwin

package filelock

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// roll says in which lines a session stands, so that who lists the lines reads the records of those and not of all names
// that were ever locked. It is a file beside the session's, of slots in memory that all processes share: to enter and to
// leave it takes no system call. A claim has a slot from before it is sent until after it has left its record; so the roll
// of a session that dies names too much, never too little.
//
//	slot   0  8  0: never used; rollStands: the claim stands; else when it left, on the boot-time clock
//	       8 80  the name of its record's file, and a zero
//
// The first slot is the roll's head:
//
//	 0  8  how many chunks the file has, or rollFailed: it does not name all
//	 8  8  reused: the latest time of leaving that has been written over
//	16  8  magic
//
// Whoever reads the rolls one after the other could miss a line that always had somebody: it reads the roll of one who
// joins, then he joins, then the other leaves, then it reads the other's roll. So it also takes who has left since it
// began to read, or some microseconds before: see fastClock. The slot that was left first is used again first, and if one
// is that was left since the reader began, reused tells him that the roll does not say enough.
type roll struct {
	file   *os.File
	clock  func() int64
	chunks []machine.Mapped
	free   []freeSlot // the one that was left first is first
	reused uint64
	failed bool
}

type freeSlot struct {
	at   int
	name string // that stands there still
	left uint64
}

const (
	rollSuffix = ".lines"
	rollMagic  = "ilkroll\n"
	chunkSize  = 4 * pageSize
	rollSlot   = 88
	chunkSlots = chunkSize / rollSlot
	leastFree  = 64 // slots, so that one is not used again while a reader is at it
	rollStands = math.MaxUint64
	rollFailed = math.MaxUint64
)

func (st *store) rollPath(key sessionKey) string { return st.sessionPath(key) + rollSuffix }

// createRoll makes the roll of a new session.
func (st *store) createRoll(key sessionKey) (*roll, error) {
	f, err := st.create(st.rollPath(key))
	if err != nil {
		return nil, err
	}
	r := &roll{file: f, clock: st.FastClock}
	if err := r.grow(); err != nil {
		r.close()
		os.Remove(f.Name())
		return nil, err
	}
	return r, nil
}

// grow adds a chunk. It is written, not only made longer, because a disk that is full must say so here.
func (r *roll) grow() error {
	begin := len(r.chunks) * chunkSize
	b := make([]byte, chunkSize)
	if begin == 0 {
		copy(b[16:], rollMagic)
	}
	if _, err := r.file.WriteAt(b, int64(begin)); err != nil {
		return err
	}
	m, err := machine.Map(r.file, int64(begin), chunkSize)
	if err != nil {
		return err
	}
	r.chunks = append(r.chunks, m)
	if !r.head(0, uint64(len(r.chunks))) {
		return errCut
	}
	for i := range chunkSlots {
		if begin+i > 0 {
			r.free = append(r.free, freeSlot{at: begin + i*rollSlot})
		}
	}
	return nil
}

// head sets a word of the roll's head.
func (r *roll) head(at int, value uint64) bool {
	return r.chunks[0].Touch(func() { r.chunks[0].Word(at).Store(value) })
}

// enter gives a claim whose record's file has that name a slot, or 0 if the roll names not all from now on.
func (r *roll) enter(file string) (at int) {
	if r.failed {
		return 0
	}
	if len(r.free) < leastFree {
		if err := r.grow(); err != nil && len(r.free) == 0 {
			r.fail()
			return 0
		}
	}
	if last := r.free[len(r.free)-1]; last.name == file { // locked in a loop
		r.free = r.free[:len(r.free)-1]
		return r.mark(last.at, rollStands)
	}
	slot := r.free[0]
	r.free = r.free[1:]
	m, off := r.chunks[slot.at/chunkSize], slot.at%chunkSize
	r.reused = max(r.reused, slot.left) // a clock that is read anew may step back by some microseconds
	whole := r.head(8, r.reused) && m.Touch(func() {
		var b [rollSlot - 8]byte
		copy(b[:], file)
		for i := 0; i <= len(file); i += 8 {
			m.Word(off + 8 + i).Store(binary.NativeEndian.Uint64(b[i:]))
		}
		m.Word(off).Store(rollStands)
	})
	if !whole {
		r.fail()
		return 0
	}
	return slot.at
}

// leave gives back what enter gave.
func (r *roll) leave(at int, file string) {
	if r.failed || at == 0 {
		return
	}
	now := uint64(r.clock())
	if r.mark(at, now) != 0 {
		r.free = append(r.free, freeSlot{at, file, now})
	}
}

// mark sets the first word of a slot and returns the slot, or 0 if the roll has failed.
func (r *roll) mark(at int, value uint64) int {
	m := r.chunks[at/chunkSize]
	if !m.Touch(func() { m.Word(at % chunkSize).Store(value) }) {
		r.fail()
		return 0
	}
	return at
}

// fail says that the roll does not name all claims; if not even that can be written, its length says so.
func (r *roll) fail() {
	r.failed = true
	r.head(0, rollFailed)
}

// close unmaps the roll. It is not used afterwards, except that claims leave.
func (r *roll) close() {
	r.failed = true
	for _, m := range r.chunks {
		_ = m.Unmap()
	}
	r.chunks = nil
	r.file.Close()
}

// readRoll adds to names the files of the records in whose lines a session stands or stood since a time. It reports
// whether they are all.
func (st *store) readRoll(key sessionKey, since uint64, names map[string]bool) (all bool, err error) {
	f, err := os.OpenFile(st.rollPath(key), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > math.MaxInt32 {
		return false, err
	}
	b := make([]byte, info.Size())
	if n, err := f.ReadAt(b, 0); n < len(b) || len(b) < chunkSize {
		return false, err
	}
	for begin := 0; begin < len(b); begin += chunkSize {
		for i := range chunkSlots {
			slot := b[begin+i*rollSlot:][:rollSlot]
			left := binary.NativeEndian.Uint64(slot)
			if begin+i == 0 || left != rollStands && left < max(since, 1) {
				continue
			}
			name, _, _ := bytes.Cut(slot[8:], []byte{0})
			if _, ok := hashIn(string(name)); ok { // else it was written at this moment, and read in half
				names[string(name)] = true
			}
		}
	}
	head := make([]byte, 24) // read again, because a reused slot must have been told before it was written
	if _, err := f.ReadAt(head, 0); err != nil {
		return false, err
	}
	chunks, reused := binary.NativeEndian.Uint64(head), binary.NativeEndian.Uint64(head[8:])
	return string(head[16:]) == rollMagic && chunks*chunkSize == uint64(len(b)) && reused < since, nil
}

// rollTries is how often the rolls are read before the reader takes all records instead.
const rollTries = 3

// standing returns the names of the files of all records in which somebody stands whose session is not over, and some
// more. It reports false if that cannot be told: because of a session of a version that keeps no roll, of a roll that is
// damaged or does not name all, or because too much happens meanwhile.
func (d *Driver) standing() (names map[string]bool, ok bool) {
	for range rollTries {
		since := uint64(d.st.BootClock())
		before, err := d.st.sessionKeys()
		if err != nil {
			return nil, false
		}
		names, ok = map[string]bool{}, true
		for _, key := range before {
			all, err := d.st.readRoll(key, since, names)
			if errors.Is(err, fs.ErrNotExist) && d.over(key, true) {
				continue
			}
			ok = ok && all && err == nil
		}
		// Who closes a session in between takes its file away first.
		if after, err := d.st.sessionKeys(); ok && err == nil && slices.Equal(before, after) {
			return names, true
		}
	}
	return nil, false
}

// sessionKeys returns the keys of all sessions that have a file.
func (st *store) sessionKeys() (keys []sessionKey, err error) {
	entries, err := os.ReadDir(st.sessions)
	for _, e := range entries {
		if raw, err := hex.DecodeString(e.Name()); err == nil && len(raw) == len(sessionKey{}) {
			keys = append(keys, sessionKey(raw))
		}
	}
	return keys, err
}
