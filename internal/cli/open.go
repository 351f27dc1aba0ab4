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

// openForJob opens the store of a job. One that cannot be reached is tried again for as long as the
// job waits, and for 15 s where no time was given; a job that does not wait tries it once. Signals
// are answered meanwhile: one that would end a process ends the opening.
func openForJob(ctx context.Context, t terminal, f *storeFlags, p patience, signals *caught) (driver.Driver, string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	most, trying := opening.Patience, new(tap) // of no store yet
	signals.outside = trying
	if p.bounded {
		ctx, cancel = context.WithTimeoutCause(ctx, p.forStore, fmt.Errorf("no answer within %v", p.forStore))
		defer cancel()
		most = p.forStore
	}
	if p.once {
		most = 0
	}
	var last atomic.Pointer[string] // the error of the last try
	done := make(chan opened, 1)
	go func() {
		var o opened
		o.driver, o.store, o.err = f.openBy(ctx, t, func(ctx context.Context, url string) (driver.Driver, error) {
			return opening.Within(ctx, most, func(ctx context.Context) (driver.Driver, error) {
				trying.at.RLock()
				d, err := driver.OpenURL(ctx, url)
				trying.at.RUnlock()
				if err != nil {
					text := oneLine(err)
					last.Store(&text)
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
		case s := <-signals.C:
			if err := signals.withoutCommand(s); err != nil {
				return nil, "", err // nobody needs the store any more: the process ends
			}
		case <-late.C:
			if why := last.Load(); why != nil && t.person {
				t.say("waiting for the store: %s", *why)
			}
		}
	}
}
