//go:build linux || darwin

package layout

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// SessionFile is one session's file, as its owner and as every other process sees it.
//
// Its first word is the end of the session's time on the boot-time clock, or revoked. The owner moves it forward and a
// reaper, who finds it in the past, sets it to revoked, both by compare-and-swap in shared memory: so a renewal waits
// for nobody, whoever is stopped wherever, and it is decided once who was first. The flock on the file belongs to the
// owner's process tree; when it can be had, nobody is left who may act for the session.
//
// A file that is not as it was written, because somebody has cut it short or written over it, has no word that could be
// believed. Its owner finds that at the next renewal and gives the session up; to others only the flock tells when it is
// over.
//
//	 0  8  until, or revoked              28  4  length of what follows
//	 8  8  changes made by others         32 16  boot id
//	16  8  magic                          48  8  time-to-live in nanoseconds
//	24  2  major version                  56  4  checksum from 60 on
//	26  2  zero                           60     JSON: owner, path of the socket
type SessionFile struct {
	st   *Store
	key  SessionKey
	File *os.File
	machine.Mapped
	Text SessionText
	ttl  time.Duration
}

// SessionKey names a session in records and files: it is a hash of the session's id, which stays the owner's secret.
type SessionKey = Hash

// SessionText is what a session's file says to people and to those who want to connect.
type SessionText struct {
	Owner  driver.Owner `json:"owner"`
	Socket string       `json:"socket,omitempty"` // only where it is not in the store
}

const (
	revoked      = ^uint64(0)
	sessionMagic = "ilksess\n"
	sessionText0 = 60
)

// SessionPath returns the path of a session's file.
func (st *Store) SessionPath(key SessionKey) string { return filepath.Join(st.Sessions, key.String()) }

// CreateSession makes the file of a new session, complete and locked before it can be seen, and returns it with the
// open file that holds the lock.
func (st *Store) CreateSession(key SessionKey, text SessionText, ttl time.Duration, until uint64) (*SessionFile, *os.File, error) {
	js, err := json.Marshal(text)
	if err != nil {
		return nil, nil, err
	}
	page := make([]byte, PageSize)
	if len(js) > len(page)-sessionText0 {
		return nil, nil, fmt.Errorf("the owner's description has %d bytes, too many: %w", len(js), driver.ErrRefused)
	}
	binary.LittleEndian.PutUint64(page, until)
	copy(page[16:], sessionMagic)
	binary.LittleEndian.PutUint16(page[24:], Major)
	binary.LittleEndian.PutUint32(page[28:], uint32(len(js)))
	copy(page[32:48], st.Boot[:])
	binary.LittleEndian.PutUint64(page[48:], uint64(ttl))
	binary.LittleEndian.PutUint32(page[56:], crc32.Checksum(js, Castagnoli()))
	copy(page[sessionText0:], js)

	path := st.SessionPath(key)
	draft := path + draftSuffix
	lock, err := st.Create(draft)
	if err != nil {
		return nil, nil, err
	}
	defer os.Remove(draft)
	undo := func(err error) (*SessionFile, *os.File, error) {
		lock.Close()
		return nil, nil, err
	}
	if ok, err := machine.Flock(int(lock.Fd()), unix.LOCK_EX); !ok {
		return undo(fmt.Errorf("the new file is locked: %w", cmp.Or(err, driver.ErrRefused)))
	}
	if _, err := lock.WriteAt(page, 0); err != nil {
		return undo(err)
	}
	// A link, unlike a rename, replaces nothing.
	if err := os.Link(draft, path); err != nil {
		if errors.Is(err, os.ErrExist) {
			err = fmt.Errorf("a session of this id is open: %w", driver.ErrRefused)
		}
		return undo(err)
	}
	f, err := st.OpenSession(key)
	if err != nil {
		os.Remove(path)
		return undo(err)
	}
	return f, lock, nil
}

// draftSuffix ends the name of a session's file that is not complete.
const draftSuffix = ".new"

// OpenSession opens the file of a session, through an open file description of its own: to close it does not touch the
// owner's lock. The error matches os.ErrNotExist when the session is over, also if something stands in its place that
// nobody can have locked. A damaged file is opened, because its lock can be asked for.
func (st *Store) OpenSession(key SessionKey) (*SessionFile, error) {
	path := st.SessionPath(key)
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, fmt.Errorf("filelock: session %s: %w: %w", path, errNoFile, os.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	f := &SessionFile{st: st, key: key, File: file}
	if err := f.read(); err != nil && !errors.Is(err, ErrDamaged) {
		file.Close()
		return nil, fmt.Errorf("filelock: session %s: %w", path, err)
	}
	return f, nil
}

// read maps the page and decodes it.
func (f *SessionFile) read() error {
	info, err := f.File.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %w", errNoFile, os.ErrNotExist)
	case info.Size() != PageSize:
		return damaged("its size is wrong")
	}
	page := make([]byte, PageSize)
	if _, err := f.File.ReadAt(page, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	size := binary.LittleEndian.Uint32(page[28:])
	switch major := binary.LittleEndian.Uint16(page[24:]); {
	case string(page[16:24]) != sessionMagic:
		return damaged("it does not begin as a session does")
	case major > Major:
		return fmt.Errorf("%w of Interlock: its layout is %d, this program knows %d", ErrNewer, major, Major)
	case size > PageSize-sessionText0:
		return damaged("it is cut off")
	}
	js := page[sessionText0 : sessionText0+size]
	if crc32.Checksum(js, Castagnoli()) != binary.LittleEndian.Uint32(page[56:]) {
		return damaged("its checksum is wrong")
	}
	if err := json.Unmarshal(js, &f.Text); err != nil {
		return damaged(err.Error())
	}
	f.ttl = time.Duration(binary.LittleEndian.Uint64(page[48:]))
	if f.Mapped, err = machine.Map(f.File, 0, PageSize); err != nil {
		return err
	}
	// Readers of the word take no lock, so the page is unmapped only when nobody has the file any more.
	runtime.AddCleanup(f, func(m machine.Mapped) { _ = m.Unmap() }, f.Mapped)
	return nil
}

// Whole runs do, which may use the page's words, if the file is as it was written, and reports that. Whoever writes over a
// file begins at its beginning, so do sees the words first and whole what stands behind them.
func (f *SessionFile) Whole(do func()) (whole bool) {
	if f.Page == nil {
		return false
	}
	return f.Touch(func() {
		if whole = f.sound(); whole {
			do()
		}
	}) && whole
}

// sound reports whether the page still begins as a session does. It is used within whole.
func (f *SessionFile) sound() bool { return string(f.Page[16:24]) == sessionMagic }

// End is the word that says when the session's time ends.
func (f *SessionFile) End() *atomic.Uint64 { return f.Word(0) }

// others counts what others have changed in the session's lines: see session.toLookAt.
func (f *SessionFile) others() *atomic.Uint64 { return f.Word(8) }

// Changes returns what others count; nothing if the file is damaged.
func (f *SessionFile) Changes() (n uint64) {
	f.Whole(func() { n = f.others().Load() })
	return n
}

// Changed counts one change more.
func (f *SessionFile) Changed() { f.Whole(func() { f.others().Add(1) }) }

// UnknownEnd is the end of a session's time if its file is damaged.
const UnknownEnd = int64(math.MaxInt64)

// Until returns the end of the session's time on the boot-time clock; revoked sessions have none.
func (f *SessionFile) Until() (until int64, live bool) {
	w := uint64(UnknownEnd)
	f.Whole(func() { w = f.End().Load() })
	return int64(w), w != revoked
}

// Extend moves the end of the session's time to until, unless it is later. It returns false when the session has been
// revoked or its file is damaged, which is final.
func (f *SessionFile) Extend(until int64) (extended bool) {
	return f.Whole(func() {
		for {
			seen := f.End().Load()
			if seen == revoked {
				return
			}
			if int64(seen) >= until || f.End().CompareAndSwap(seen, uint64(until)) {
				extended = f.sound()
				return
			}
		}
	}) && extended
}

// Revoke ends the session for good, whatever its time.
func (f *SessionFile) Revoke() { f.Whole(func() { f.End().Store(revoked) }) }

// Over reports whether the session is revoked, and revokes it if its time has passed. An owner who renews at the same
// moment wins or loses as a whole.
func (f *SessionFile) Over() (over bool) {
	return f.Whole(func() {
		seen := f.End().Load()
		// The clock is read after the word: one that is read before, and used late, could only err in the owner's favour.
		over = f.sound() && (seen == revoked || int64(seen) <= f.st.BootClock() && f.End().CompareAndSwap(seen, revoked))
	}) && over
}

// Orphaned asks for the verdict on death: it reports whether every process of the owner's tree has ended, and revokes
// the session then. A stopped process is alive.
func (f *SessionFile) Orphaned() bool {
	// Shared, so that two who ask at once do not take each other for the owner.
	defer runtime.KeepAlive(f) // or its descriptor could be closed and be another file's
	if ok, _ := machine.Flock(int(f.File.Fd()), unix.LOCK_SH); !ok {
		return false
	}
	f.Revoke()
	machine.Unflock(int(f.File.Fd()))
	return true
}

// Removed reports whether somebody took the file away.
func (f *SessionFile) Removed() bool {
	conn, err := f.File.SyscallConn() // keeps the descriptor while Close comes from elsewhere
	if err != nil {
		return false
	}
	gone := false
	err = conn.Control(func(fd uintptr) {
		n, err := machine.Links(int(fd))
		gone = err == nil && n == 0
	})
	return err == nil && gone
}

// Socket returns where the session listens.
func (f *SessionFile) Socket() (string, error) {
	if f.Text.Socket != "" {
		return f.Text.Socket, nil
	}
	return machine.SocketPath(f.st.SessionsDir, f.key.String()+SocketSuffix)
}

// Remove takes the session's files away.
func (f *SessionFile) Remove() {
	if path, err := f.Socket(); err == nil {
		os.Remove(path)
	}
	os.Remove(f.st.SessionPath(f.key))
	os.Remove(f.st.RollPath(f.key)) // last: see standing
}

// LatestEnd returns the latest end of all sessions' times, 0 if all are over, and the sessions' keys. Those that skip
// reports true for are left out. It fails if a session's file is damaged, because its end is not known then.
func (st *Store) LatestEnd(skip func(SessionKey) bool) (until int64, keys []SessionKey, err error) {
	all, err := st.SessionKeys()
	if err != nil {
		return 0, nil, fmt.Errorf("filelock: %w", err)
	}
	for _, key := range all {
		if skip(key) {
			continue
		}
		end, err := st.endOf(key)
		if err != nil {
			return 0, nil, err
		}
		until = max(until, end)
		keys = append(keys, key)
	}
	return until, keys, nil
}

// endOf returns the end of a session's time, 0 if it is over.
func (st *Store) endOf(key SessionKey) (int64, error) {
	f, err := st.OpenSession(key)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return 0, nil
		}
		return 0, err
	}
	defer f.File.Close()
	until, live := f.Until()
	switch {
	case !live || f.Orphaned():
		return 0, nil
	case until == UnknownEnd:
		return 0, fmt.Errorf("filelock: session %s is damaged, too: want its process to end", st.SessionPath(key))
	}
	return until, nil
}
