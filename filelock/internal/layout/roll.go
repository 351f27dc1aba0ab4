//go:build linux || darwin

package layout

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// Roll says in which lines a session stands, so that who lists the lines reads the records of those and not of all names
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
// began to read, or some microseconds before: see machine.ClockClose. The slot that was left first is used again first, and if one
// is that was left since the reader began, reused tells him that the roll does not say enough.
type Roll struct {
	File   *os.File
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

// A roll grows by chunks of ChunkSize bytes, each with room for ChunkSlots claims, the first for one less.
const (
	ChunkSize  = 4 * PageSize
	ChunkSlots = ChunkSize / rollSlot
)

// RollStands in a slot says that the claim stands in the line.
const RollStands = math.MaxUint64

const (
	rollSuffix = ".lines"
	rollMagic  = "ilkroll\n"
	rollSlot   = 88
	leastFree  = 64 // slots, so that one is not used again while a reader is at it
	rollFailed = math.MaxUint64
)

// RollPath returns the path of a session's roll.
func (st *Store) RollPath(key SessionKey) string { return st.SessionPath(key) + rollSuffix }

// CreateRoll makes the roll of a new session.
func (st *Store) CreateRoll(key SessionKey) (*Roll, error) {
	f, err := st.Create(st.RollPath(key))
	if err != nil {
		return nil, err
	}
	r := &Roll{File: f, clock: st.FastClock}
	if err := r.grow(); err != nil {
		r.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return r, nil
}

// grow adds a chunk. It is written, not only made longer, because a disk that is full must say so here.
func (r *Roll) grow() error {
	begin := len(r.chunks) * ChunkSize
	b := make([]byte, ChunkSize)
	if begin == 0 {
		copy(b[16:], rollMagic)
	}
	if _, err := r.File.WriteAt(b, int64(begin)); err != nil {
		return err
	}
	m, err := machine.Map(r.File, int64(begin), ChunkSize)
	if err != nil {
		return err
	}
	r.chunks = append(r.chunks, m)
	if !r.head(0, uint64(len(r.chunks))) {
		return errCut
	}
	for i := range ChunkSlots {
		if begin+i > 0 {
			r.free = append(r.free, freeSlot{at: begin + i*rollSlot})
		}
	}
	return nil
}

// head sets a word of the roll's head.
func (r *Roll) head(at int, value uint64) bool {
	return r.chunks[0].Touch(func() { r.chunks[0].Word(at).Store(value) })
}

// Enter gives a claim whose record's file has that name a slot, or 0 if the roll names not all from now on.
func (r *Roll) Enter(file string) (at int) {
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
		return r.mark(last.at, RollStands)
	}
	slot := r.free[0]
	r.free = r.free[1:]
	m, off := r.chunks[slot.at/ChunkSize], slot.at%ChunkSize
	r.reused = max(r.reused, slot.left) // a clock that is read anew may step back by some microseconds
	whole := r.head(8, r.reused) && m.Touch(func() {
		var b [rollSlot - 8]byte
		copy(b[:], file)
		for i := 0; i <= len(file); i += 8 {
			m.Word(off + 8 + i).Store(binary.NativeEndian.Uint64(b[i:]))
		}
		m.Word(off).Store(RollStands)
	})
	if !whole {
		r.fail()
		return 0
	}
	return slot.at
}

// Leave gives back what enter gave.
func (r *Roll) Leave(at int, file string) {
	if r.failed || at == 0 {
		return
	}
	now := uint64(r.clock())
	if r.mark(at, now) != 0 {
		r.free = append(r.free, freeSlot{at, file, now})
	}
}

// mark sets the first word of a slot and returns the slot, or 0 if the roll has failed.
func (r *Roll) mark(at int, value uint64) int {
	m := r.chunks[at/ChunkSize]
	if !m.Touch(func() { m.Word(at % ChunkSize).Store(value) }) {
		r.fail()
		return 0
	}
	return at
}

// fail says that the roll does not name all claims; if not even that can be written, its length says so.
func (r *Roll) fail() {
	r.failed = true
	r.head(0, rollFailed)
}

// Close unmaps the roll. It is not used afterwards, except that claims leave.
func (r *Roll) Close() {
	r.failed = true
	for _, m := range r.chunks {
		_ = m.Unmap()
	}
	r.chunks = nil
	r.File.Close()
}

// ReadRoll adds to names the files of the records in whose lines a session stands or stood since a time. It reports
// whether they are all.
func (st *Store) ReadRoll(key SessionKey, since uint64, names map[string]bool) (all bool, err error) {
	f, err := os.OpenFile(st.RollPath(key), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > math.MaxInt32 {
		return false, err
	}
	b := make([]byte, info.Size())
	if n, err := f.ReadAt(b, 0); n < len(b) || len(b) < ChunkSize {
		return false, err
	}
	for begin := 0; begin < len(b); begin += ChunkSize {
		for i := range ChunkSlots {
			slot := b[begin+i*rollSlot:][:rollSlot]
			left := binary.NativeEndian.Uint64(slot)
			if begin+i == 0 || left != RollStands && left < max(since, 1) {
				continue
			}
			name, _, _ := bytes.Cut(slot[8:], []byte{0})
			if _, ok := HashIn(string(name)); ok { // else it was written at this moment, and read in half
				names[string(name)] = true
			}
		}
	}
	head := make([]byte, 24) // read again, because a reused slot must have been told before it was written
	if _, err := f.ReadAt(head, 0); err != nil {
		return false, err
	}
	chunks, reused := binary.NativeEndian.Uint64(head), binary.NativeEndian.Uint64(head[8:])
	return string(head[16:]) == rollMagic && chunks*ChunkSize == uint64(len(b)) && reused < since, nil
}

// SessionKeys returns the keys of all sessions that have a file.
func (st *Store) SessionKeys() (keys []SessionKey, err error) {
	entries, err := os.ReadDir(st.Sessions)
	for _, e := range entries {
		if raw, err := hex.DecodeString(e.Name()); err == nil && len(raw) == len(SessionKey{}) {
			keys = append(keys, SessionKey(raw))
		}
	}
	return keys, err
}
