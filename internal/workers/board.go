//go:build linux || darwin

package workers

import (
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// Board is a piece of memory that all workers of a contest for one lock share. A contest is too
// fast to log every lease; so each holder leaves a trace here, and exclusion and the order of
// tokens are checked at once, by words that the lock does not protect.
type Board struct {
	// Start and End are the time that counts, on the monotonic clock; 0 until all workers are up.
	Start, End atomic.Int64
	_          [48]byte

	// Only the holder touches these, so one cache line goes from holder to holder and costs every
	// contender the same.
	inside   atomic.Int64  // the goroutine that holds, 0 when free
	last     atomic.Int64  // the process that held last, 0 before the first
	Sum      atomic.Int64  // incremented by load and store, so an overlap loses updates
	Handoffs atomic.Int64  // in the time that counts, from one process to another
	Overlaps atomic.Int64  // entries and exits that met another holder
	token    atomic.Uint64 // of the last lease that had one
	Disorder atomic.Int64  // tokens that were not larger than the one before
	_        [8]byte

	granted atomic.Int64 // the process that the store granted the lock to last
	Changes atomic.Int64 // of granted, in the time that counts
	_       [48]byte

	Seats [maxSeats]Seat
}

// Seat is one goroutine's own part of the board.
type Seat struct {
	Entered atomic.Int64 // ever
	Counted atomic.Int64 // in the time that counts
	Longest atomic.Int64 // wait in it, in nanoseconds
	Turns   atomic.Int64 // leases in it that were not passed on in the process
	Lost    atomic.Int64 // leases that were lost, or commits of which the answer is missing
	_       [24]byte
}

const maxSeats = 1024

// OpenBoard maps the board in the file at path, which it makes if it is missing.
func OpenBoard(path string) (*Board, error) { return Map[Board](path) }

// Close unmaps the board.
func (b *Board) Close() error { return Unmap(b) }

// Schedule sets the time that counts.
func (b *Board) Schedule(from monotonic.Instant, d time.Duration) {
	b.End.Store(int64(from.Add(d)))
	b.Start.Store(int64(from))
}

// Counts reports whether t is in the time that counts.
func (b *Board) Counts(t monotonic.Instant) bool {
	return b.Start.Load() != 0 && int64(t) >= b.Start.Load() && int64(t) < b.End.Load()
}

// Enter is the first call of a holder. Processes and goroutines are numbered from 1, goroutines
// over all processes.
func (b *Board) Enter(process, goroutine int64, counts bool) {
	if !b.inside.CompareAndSwap(0, goroutine) {
		b.Overlaps.Add(1)
	}
	if b.last.Load() != process {
		b.last.Store(process)
		if counts {
			b.Handoffs.Add(1)
		}
	}
	b.Sum.Store(b.Sum.Load() + 1)
}

// Draw is called by a holder whose lease has a token.
func (b *Board) Draw(token uint64) {
	if token <= b.token.Load() {
		b.Disorder.Add(1)
	}
	b.token.Store(token)
}

// Grant is called by a holder to whose process the store granted the lock: it was not passed on.
func (b *Board) Grant(process int64, counts bool) {
	if b.granted.Load() != process {
		b.granted.Store(process)
		if counts {
			b.Changes.Add(1)
		}
	}
}

// Leave is the last call of a holder, before it releases.
func (b *Board) Leave(goroutine int64) {
	if !b.inside.CompareAndSwap(goroutine, 0) {
		b.Overlaps.Add(1)
	}
}
