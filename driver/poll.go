package driver

import (
	"context"
	"math/rand/v2"
	"time"
)

// Poll is the Wait of a store that cannot tell: it looks again after shortest, then ever later up to longest, with a
// fifth of jitter so that processes do not march in step, until the claim is held, look fails, or ctx ends.
func Poll(ctx context.Context, shortest, longest time.Duration, look func(context.Context) (Grant, error)) (Grant, error) {
	t := time.NewTimer(0)
	defer t.Stop()
	for pause := shortest; ; pause = min(2*pause, longest) {
		t.Reset(pause + time.Duration(rand.Int64N(int64(pause)/5+1)))
		select {
		case <-ctx.Done():
			return Grant{}, ctx.Err()
		case <-t.C:
		}
		if g, err := look(ctx); err != nil || g.Held {
			return g, err
		}
	}
}
