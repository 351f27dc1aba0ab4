package sessions

import (
	"context"
	"sync"
	"time"
)

// Departure is how a claim leaves; a claim has one from the start. The claim's mutex, which the methods of a Flight are given, guards it.
type Departure struct {
	Flight
	Leaving bool // no request but those of a Release from now on
	Unsure  bool // a Release of it had no answer, so that what the next one finds says nothing
	Left    bool // it is released, and Was says whether it was held until then
	Was     bool
}

// Depart implements Leaver.
func (d *Departure) Depart() { d.Leaving = true }

// Release calls leave, unless the claim has left, when the call before is over: see Flight.Fly. Where leave could take the claim out it
// has set Left and Was.
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
