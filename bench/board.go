package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// board is a page of memory that all workers of a run share. Parent and
// workers agree there on the window that counts, and every holder of the lock
// leaves its trace, so that exclusion is checked in each contended run by
// something that no lock had a hand in.
type board struct {
	start, end atomic.Int64 // the window that counts, by now
	_          [48]byte

	// Only the holder touches these, so one cache line goes from holder to
	// holder and costs every contender the same.
	inside     atomic.Int64 // the goroutine that holds, 0 when free
	last       atomic.Int64 // the process that held last, 0 before the first
	sum        atomic.Int64 // incremented by load and store, so an overlap loses updates
	handoffs   atomic.Int64 // within the window, from one process to another
	violations atomic.Int64
	token      atomic.Uint64 // of the last lease that has one
	older      atomic.Int64  // tokens that were not larger than the one before
	_          [8]byte
}

// createBoard makes a board in the file at path.
func createBoard(path string) (*board, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(unsafe.Sizeof(board{}))); err != nil {
		return nil, err
	}
	return mapBoard(f)
}

// openBoard maps the board that the parent has made at path.
func openBoard(path string) (*board, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mapBoard(f)
}

func mapBoard(f *os.File) (*board, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(board{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("bench: map the board: %w", err)
	}
	return (*board)(unsafe.Pointer(&mem[0])), nil
}

// close gives the page back; the board must not be used after it.
func (b *board) close() error {
	return unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(b)), unsafe.Sizeof(*b)))
}

// schedule opens the window after warm and closes it window later.
func (b *board) schedule(warm, window time.Duration) {
	at := now() + warm.Nanoseconds()
	b.end.Store(at + window.Nanoseconds())
	b.start.Store(at)
}

// counts tells whether something at t belongs to the window.
func (b *board) counts(t int64) bool { return t >= b.start.Load() && t < b.end.Load() }

// enter is the first thing a new holder does. Process and goroutine are
// numbers from 1; goroutines are numbered over all processes.
func (b *board) enter(process, goroutine int64, counted bool) {
	if !b.inside.CompareAndSwap(0, goroutine) {
		b.violations.Add(1)
	}
	if b.last.Load() != process {
		b.last.Store(process)
		if counted {
			b.handoffs.Add(1)
		}
	}
	b.sum.Store(b.sum.Load() + 1)
}

// draw is what a holder does whose lease has a token.
func (b *board) draw(token uint64) {
	if token <= b.token.Load() {
		b.older.Add(1)
	}
	b.token.Store(token)
}

// leave is the last thing a holder does before it unlocks.
func (b *board) leave(goroutine int64) {
	if !b.inside.CompareAndSwap(goroutine, 0) {
		b.violations.Add(1)
	}
}

// verdict says whether entered, the number of all entries as the workers
// counted them, passed without two being inside at once, and with tokens that
// grew.
func (b *board) verdict(entered int64) error {
	if n := b.violations.Load(); n > 0 {
		return fmt.Errorf("exclusion violated: %d of %d entries met another holder", n, entered)
	}
	if sum := b.sum.Load(); sum != entered {
		return fmt.Errorf("exclusion violated: %d of %d updates lost", entered-sum, entered)
	}
	if n := b.older.Load(); n > 0 {
		return fmt.Errorf("tokens went back: those of %d of %d entries were not larger than the one before", n, entered)
	}
	return nil
}
