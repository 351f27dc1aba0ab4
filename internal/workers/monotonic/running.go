//go:build linux || darwin

package monotonic

import (
	"context"
	"errors"
	"time"
)

// ErrStarved is the cause of the end of a context of [Running] when this process did not run for
// most of the time.
var ErrStarved = errors.New("monotonic: this process did not run for most of the time")

// Running returns a context that ends when this process has run for d: while it does not, nothing
// that it waits for can be late. After ten times as long it ends with ErrStarved.
func Running(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	const tick = 20 * time.Millisecond
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		limit := Now().Add(10 * d)
		for left := d; left > 0 && ctx.Err() == nil; {
			if Now() > limit {
				end(ErrStarved)
				return
			}
			from := Now()
			Pause(min(left, tick), ctx.Done())
			left -= min(Now().Sub(from), 2*tick)
		}
		end(context.DeadlineExceeded)
	}()
	return ctx, func() { end(context.Canceled) }
}
