package main

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/internal/workers"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// board is the memory that all workers of a run share. Parent and workers agree there on the window
// that counts, and exclusion is checked there in each contended run. Times are by now.
type board struct{ *workers.Board }

// openBoard opens the board in the file at path, which it makes if it is missing.
func openBoard(path string) (board, error) {
	b, err := workers.OpenBoard(path)
	return board{b}, err
}

// schedule opens the window after warm and closes it window later.
func (b board) schedule(warm, window time.Duration) {
	b.Schedule(monotonic.Instant(now()).Add(warm), window)
}

// counts tells whether something at t belongs to the window.
func (b board) counts(t int64) bool { return b.Counts(monotonic.Instant(t)) }

// verdict says whether entered, the number of all entries as the workers
// counted them, passed without two being inside at once, and with tokens that
// grew.
func (b board) verdict(entered int64) error {
	if n := b.Overlaps.Load(); n > 0 {
		return fmt.Errorf("exclusion violated: %d of %d entries met another holder", n, entered)
	}
	if sum := b.Sum.Load(); sum != entered {
		return fmt.Errorf("exclusion violated: %d of %d updates lost", entered-sum, entered)
	}
	if n := b.Disorder.Load(); n > 0 {
		return fmt.Errorf("tokens went back: those of %d of %d entries were not larger than the one before", n, entered)
	}
	return nil
}
