//go:build linux || darwin

package layout

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

// RecordFile is an open record. Several goroutines may use it; it is closed when the last has let go.
type RecordFile struct {
	Fd   int
	Path string
	refs atomic.Int32
}

// OpenFlags are those of every open of a record.
const OpenFlags = unix.O_RDWR | unix.O_CLOEXEC | unix.O_NOFOLLOW

// OpenRecord opens a record and makes it if create is set: with a head for which nobody stands in line, because an empty
// file is one that somebody has cut to nothing, except for the moment until that head is written.
//
// Whoever makes it may be stopped in that moment, and others then begin the line anew. So the head is written under the
// flock, and only into a file that is still empty: else it would wipe out those who hold by then.
func (st *Store) OpenRecord(path string, create bool) (*RecordFile, error) {
	for {
		fd, err := unix.Open(path, OpenFlags|machine.NoAccessTime, 0)
		if errors.Is(err, unix.EPERM) && machine.NoAccessTime != 0 {
			fd, err = unix.Open(path, OpenFlags, 0) // only the owner may be quiet
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ENOENT) && create {
			fd, err = unix.Open(path, OpenFlags|machine.NoAccessTime|unix.O_CREAT|unix.O_EXCL, uint32(st.fileMode))
			if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EINTR) {
				continue
			}
			if err == nil {
				err = st.BeginRecord(fd, path)
			}
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		f := &RecordFile{Fd: fd, Path: path}
		f.refs.Store(1)
		return f, nil
	}
}

// BeginRecord writes the first head of a record that was just made, unless somebody else has begun it meanwhile.
func (st *Store) BeginRecord(fd int, path string) (err error) {
	f := &RecordFile{Fd: fd, Path: path}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if st.Shared() {
		if err := unix.Fchmod(fd, uint32(st.fileMode)); err != nil {
			return err
		}
	}
	if err := machine.LockFor(fd, flockPatient); err != nil {
		return nil // whoever has it begins the line
	}
	defer f.Unlock()
	var first [1]byte
	if n, err := f.pread(first[:], 0); n > 0 || err != nil {
		return err
	}
	head, _, _ := (&Record{}).Encode(nil)
	if err := f.pwrite(head, 0); err != nil {
		_ = unix.Unlink(path)
		return err
	}
	return nil
}

// Ref notes one user more, who calls unref. The caller is one himself, or keeps the last one from leaving.
func (f *RecordFile) Ref() { f.refs.Add(1) }

// Unref notes one user less. The last one closes the file.
func (f *RecordFile) Unref() {
	if f.refs.Add(-1) == 0 {
		unix.Close(f.Fd)
	}
}

// ErrClosed is what calls on a closed driver answer.
var ErrClosed = fmt.Errorf("filelock: the driver is closed: %w", driver.ErrNotSent)

// EmptyPatience is how often, a millisecond apart, a record is found empty that somebody is just making, before it is taken
// for one that was cut to nothing.
const EmptyPatience = 100

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

// Lock takes the record's flock, or returns when ctx or closing ends. It asks again and again instead of blocking in the system
// call, because that could be neither cancelled nor left behind without a thread.
func (f *RecordFile) Lock(ctx, closing context.Context, slow func(*RecordFile)) error {
	for range flockTries {
		if ok, err := machine.Flock(f.Fd, unix.LOCK_EX); ok || err != nil {
			return err
		}
	}
	for range flockNaps {
		machine.Nap(flockNap)
		if ok, err := machine.Flock(f.Fd, unix.LOCK_EX); ok || err != nil {
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
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("%w while %s has the record's lock", ctx.Err(), f.Owner())
		case <-t.C:
		}
		if ok, err := machine.Flock(f.Fd, unix.LOCK_EX); ok || err != nil {
			return err
		}
		if !told && time.Since(began) > flockPatient {
			told = true
			slow(f)
		}
	}
}

// Owner says who has the flock, as far as the system tells.
func (f *RecordFile) Owner() string {
	var st unix.Stat_t
	if unix.Fstat(f.Fd, &st) == nil {
		if who := machine.LockOwner(st.Ino); who != "" {
			return who
		}
	}
	return "another process"
}

// TryLock takes the record's flock if nobody has it.
func (f *RecordFile) TryLock() bool {
	ok, _ := machine.Flock(f.Fd, unix.LOCK_EX)
	return ok
}

// Unlock releases the record's flock.
func (f *RecordFile) Unlock() { machine.Unflock(f.Fd) }

// Unlinked reports whether the file has lost its name: then a new one stands in its place, or none.
func (f *RecordFile) Unlinked() (bool, error) {
	n, err := machine.Links(f.Fd)
	return n == 0, err
}

// pread reads up to len(b) bytes at off.
func (f *RecordFile) pread(b []byte, off int64) (int, error) {
	for n := 0; ; {
		m, err := unix.Pread(f.Fd, b[n:], off+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, &os.PathError{Op: "read", Path: f.Path, Err: err}
		}
		if n += m; m == 0 || n == len(b) {
			return n, nil
		}
	}
}

// pwrite writes b at off in one call.
func (f *RecordFile) pwrite(b []byte, off int64) error {
	for {
		n, err := unix.Pwrite(f.Fd, b, off)
		if err == unix.EINTR && n <= 0 {
			continue
		}
		if err == nil && n < len(b) {
			err = unix.ENOSPC
		}
		if err != nil {
			return &os.PathError{Op: "write", Path: f.Path, Err: err}
		}
		return nil
	}
}

// heads are buffers for the first page of a record.
var heads = sync.Pool{New: func() any { return new([PageSize]byte) }}

// Read returns the record, or known if its stamp says that it is the same. The caller has the flock, or checks what it
// gets as peek does.
func (f *RecordFile) Read(known *Record, stamped Stamp) (*Record, Stamp, error) {
	head := heads.Get().(*[PageSize]byte)
	defer heads.Put(head)
	n, err := f.pread(head[:], 0)
	if err != nil {
		return nil, Stamp{}, err
	}
	seen := stampOf(head[:n])
	if known != nil && seen == stamped {
		return known, seen, nil
	}
	r, err := decode(head[:n], func(e extent) ([]byte, error) {
		body := make([]byte, e.size)
		n, err := f.pread(body, int64(e.page)*PageSize)
		return body[:n], err
	})
	if err != nil {
		return nil, Stamp{}, f.explain(err)
	}
	return r, seen, nil
}

// explain says which file an error is about and what would be right.
func (f *RecordFile) explain(err error) error {
	switch {
	case errors.Is(err, ErrNewer):
		return fmt.Errorf("filelock: record %s is %w: use the newer version for all programs of this store: %w", f.Path, err, driver.ErrRefused)
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("filelock: record %s is %w: whoever wants this lock next begins it anew: %w", f.Path, err, driver.ErrBadData)
	}
	return fmt.Errorf("filelock: %w", err)
}

// peekTries is how often a record is read without its lock before the reader gives up for now. Each try meets a writer
// only for the microsecond that he takes to copy a page.
const peekTries = 50

// Peek reads the record without taking its lock: the checksum tells whether a writer was at it meanwhile. One that is empty is
// about to be begun by whoever has just made it, who may be held up before that.
func (f *RecordFile) Peek() (r *Record, seen Stamp, err error) {
	for tries, empty := 0, 0; tries < peekTries; tries++ {
		if r, seen, err = f.Read(nil, Stamp{}); err == nil || !errors.Is(err, ErrDamaged) {
			return r, seen, err
		}
		if errors.Is(err, ErrEmpty) && empty < EmptyPatience {
			tries, empty = 0, empty+1
			machine.Nap(time.Millisecond)
		}
	}
	return nil, Stamp{}, err
}

// Write makes r the record: its generation is already the next one.
func (f *RecordFile) Write(r *Record, buf []byte) (full []byte, written Stamp, err error) {
	head, body, full := r.Encode(buf)
	if body != nil {
		if err := f.pwrite(body, int64(r.body.page)*PageSize); err != nil {
			return full, Stamp{}, err
		}
	}
	// From here on the record is the new one, whenever this process is killed.
	return full, stampOf(head), f.pwrite(head, 0)
}
