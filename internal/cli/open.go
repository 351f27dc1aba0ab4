package cli

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/opening"
)

// opened is a store, or why there is none.
type opened struct {
	driver driver.Driver
	store  string // for people
	err    error
}

// open opens the store. One that cannot be reached is tried again for as long as the job waits, and for 15 s where nobody has said how long; with
// --try it is tried once. Signals are answered meanwhile: one that would end a process ends the opening.
func (j *job) open(ctx context.Context) (driver.Driver, string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	patience, trying := opening.Patience, new(tap) // of no store yet
	j.outside = trying
	if j.bounded {
		ctx, cancel = context.WithTimeoutCause(ctx, j.patience, fmt.Errorf("no answer within %v", j.patience))
		defer cancel()
		patience = j.patience
	}
	if j.once {
		patience = 0
	}
	var trouble atomic.Pointer[string] // what the last try met
	done := make(chan opened, 1)
	go func() {
		var o opened
		o.driver, o.store, o.err = j.line.openBy(ctx, j.t, func(ctx context.Context, url string) (driver.Driver, error) {
			return opening.Within(ctx, patience, func(ctx context.Context) (driver.Driver, error) {
				trying.at.RLock()
				d, err := driver.OpenURL(ctx, url)
				trying.at.RUnlock()
				if err != nil {
					text := oneLine(err)
					trouble.Store(&text)
				}
				return d, err
			})
		})
		done <- o
	}()
	late := time.NewTimer(time.Second)
	defer late.Stop()
	for {
		select {
		case o := <-done:
			return o.driver, o.store, o.err
		case s := <-j.signals.C:
			if err := j.whileWaiting(s); err != nil {
				return nil, "", err // nobody needs the store any more: the process ends
			}
		case <-late.C:
			if why := trouble.Load(); why != nil && j.t.person {
				j.say("waiting for the store: %s", *why)
			}
		}
	}
}
