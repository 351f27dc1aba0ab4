package driver

import (
	"fmt"
	"time"
)

// Stride is how many tokens a grant reserves: the core passes a lease on inside its process with the next of them, at
// most Stride - 1 times, before it stands in the line again.
const Stride = 32

// MaxFence is the largest token that may be used: JSON and Lua carry it exactly.
const MaxFence = 1<<53 - 1

// Draw reserves the next Stride tokens behind stored, the highest that anyone may have used so far, and returns the
// lowest of them and the new highest, which the store must keep in the same atomic step.
//
// The store's clock seeds the counter in microseconds: where the counter was lost, to eviction, a restart or a
// failover, the tokens go on growing as long as the clock did not step back behind the last one, which holds up to
// 10⁶ / Stride grants a second of one name.
func Draw(stored uint64, now time.Time) (fence, reserved uint64, err error) {
	reserved = stored + Stride
	if us := now.UnixMicro(); us > 0 && uint64(us) > reserved {
		reserved = uint64(us)
	}
	if reserved > MaxFence || reserved < stored {
		return 0, 0, fmt.Errorf("driver: token %d is beyond %d: the store's clock or counter is wrong: %w", reserved, uint64(MaxFence), ErrRefused)
	}
	return reserved - Stride + 1, reserved, nil
}
