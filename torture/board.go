//go:build linux || darwin

package torture

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// board is a piece of memory that all workers of a contest share. A contest is too fast to write every lease down; so
// each holder leaves its trace here, and every rule is checked on the spot by words that no lock had a hand in.
type board struct {
	start, end atomic.Int64 // of what counts, on the observer's clock; 0 until everybody is up
	_          [48]byte

	// Only holders touch these.
	inside   atomic.Int64 // the goroutine that holds, 0 when free
	last     atomic.Int64 // the process that held last
	handoffs atomic.Int64 // from one process to another
	overlaps atomic.Int64 // entries that met another holder
	fence    atomic.Uint64
	disorder atomic.Int64 // tokens that were not larger than the one before
	turner   atomic.Int64 // the process that the store let in last
	changes  atomic.Int64 // of turner
	_        [64]byte

	seats [maxSeats]seat
}

// seat is one goroutine's own line of the board.
type seat struct {
	entered atomic.Int64 // ever
	counted atomic.Int64 // in the time that counts
	longest atomic.Int64 // wait in it, in nanoseconds
	turns   atomic.Int64 // in it, in which the store let it in, and nobody of its process passed the lease on
	lost    atomic.Int64 // leases that were lost, of which there must be none
	_       [24]byte
}

const maxSeats = 1024

func openBoard(path string) (*board, error) {
	memory, err := mapFile(path, int(unsafe.Sizeof(board{})))
	if err != nil {
		return nil, err
	}
	return (*board)(unsafe.Pointer(&memory[0])), nil
}

func (b *board) close() error { return unmap(unsafe.Pointer(b), unsafe.Sizeof(*b)) }

// schedule opens the time that counts now.
func (b *board) schedule(d time.Duration) {
	t := now()
	b.end.Store(int64(t.add(d)))
	b.start.Store(int64(t))
}

func (b *board) counts(t instant) bool {
	return b.start.Load() != 0 && int64(t) >= b.start.Load() && int64(t) < b.end.Load()
}

// enter is the first thing that a holder does; processes and seats are numbered from 1 here. turn says that the store
// let this process in.
func (b *board) enter(process, number int64, fence uint64, turn, counts bool) {
	if !b.inside.CompareAndSwap(0, number) {
		b.overlaps.Add(1)
	}
	if b.last.Load() != process {
		b.last.Store(process)
		if counts {
			b.handoffs.Add(1)
		}
	}
	if fence != 0 {
		if fence <= b.fence.Load() {
			b.disorder.Add(1)
		}
		b.fence.Store(fence)
	}
	if turn && b.turner.Load() != process {
		b.turner.Store(process)
		if counts {
			b.changes.Add(1)
		}
	}
}

// leave is the last thing that a holder does.
func (b *board) leave(number int64) {
	if !b.inside.CompareAndSwap(number, 0) {
		b.overlaps.Add(1)
	}
}
