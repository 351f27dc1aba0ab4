package sessions

import (
	"context"
	"sync"
	"time"
)

// Departure is the release of a claim, and part of the claim from the start. The mutex that its
// methods are given guards it.
type Departure struct {
	Flight
	Leaving bool // only its Release may make requests
	Unsure  bool // a Release had no answer, so that what the next one finds does not tell whether it was held
	Left    bool // it is released
	Was     bool // and was held until then
}

// Depart implements Leaver.
func (d *Departure) Depart() { d.Leaving = true }

// Release calls leave when the call before is over (see Flight.Fly), unless the claim has left. It
// returns whether the claim was held. When leave has taken the claim out it sets Left and Was.
func (d *Departure) Release(ctx context.Context, mu sync.Locker, here bool, timeout time.Duration, leave func(ctx context.Context) error) (bool, error) {
	err := d.Fly(ctx, mu, here, timeout, func(ctx context.Context) error {
		mu.Lock()
		left := d.Left
		mu.Unlock()
		if left {
			return nil
		}
		err := leave(ctx)
		mu.Lock()
		defer mu.Unlock()
		d.Unsure = d.Unsure || err != nil
		return err
	})
	mu.Lock()
	defer mu.Unlock()
	if d.Left {
		return d.Was, nil
	}
	return false, err
}
