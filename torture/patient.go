//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"time"
)

// How long a run goes on beyond what was asked for, until it has cases enough. A machine that is slow has few of them.
const goOn = 2 * time.Minute

// errStarved ends a running context on a machine on which nothing can be seen.
var errStarved = errors.New("the conductor did not run for most of the time")

// running returns a context that ends when this process has run for d: while it does not, nothing that it waits for can be
// late. After ten times as long it ends with errStarved.
func running(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	const tick = 20 * time.Millisecond
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		limit := now().add(10 * d)
		for left := d; left > 0 && ctx.Err() == nil; {
			if now() > limit {
				end(errStarved)
				return
			}
			from := now()
			pause(min(left, tick), ctx.Done())
			left -= min(now().sub(from), 2*tick)
		}
		end(context.DeadlineExceeded)
	}()
	return ctx, func() { end(context.Canceled) }
}
