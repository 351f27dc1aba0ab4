//go:build linux || darwin

package servers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/internal/history"
)

// Injector injects faults into servers, by seed, one after the other. Each is over, and the servers
// are whole, before the next. One goroutine uses it.
type Injector struct {
	Use func(context.Context) // acquires and releases a lock, as any program; nil: nobody does

	Faults []history.Fault     // what was done
	Count  map[string]int      // how often, by fault
	Healed []monotonic.Instant // when all servers were there again, of independent masters
	Stuck  []history.Violation // servers that did not recover, which is what the locks did not do

	target target
	kinds  []string // the faults to inject
	rand   *rand.Rand
	ttl    time.Duration
	end    monotonic.Instant
}

// target is what an Injector harms.
type target interface {
	// harm injects one fault and returns when everything is whole again.
	harm(ctx context.Context, i *Injector, fault string) error

	// lasts returns how much time a fault needs at least: with less the Injector leaves it out.
	lasts(fault string) time.Duration

	// recovers reports whether locks are to be had soon after each fault, by themselves.
	recovers() bool
}

// startTimeout is how long servers may take to start, or to recover from a fault.
const startTimeout = time.Minute

// errStuck: nobody made the servers recover, though the locks on them should have.
var errStuck = errors.New("torture: a master was there again, and has got no vote since")

func (i *Injector) note(format string, args ...any) {
	i.Faults = append(i.Faults, history.Fault{At: monotonic.Now(), Slot: history.AnyServer, What: fmt.Sprintf(format, args...)})
}

// some returns a random part of the TTL.
func (i *Injector) some(low, high float64) time.Duration {
	return time.Duration((low + i.rand.Float64()*(high-low)) * float64(i.ttl))
}

// Run injects faults until end. Between two there is time for everybody to get in again.
func (i *Injector) Run(ctx context.Context, end monotonic.Instant) error {
	i.end = end
	if len(i.kinds) == 0 {
		return nil
	}
	for turn := i.rand.IntN(len(i.kinds)); ; turn++ {
		monotonic.Pause(min(i.some(2, 6), max(end.Sub(monotonic.Now()), 0)), ctx.Done())
		if monotonic.Now() >= end {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		fault := i.kinds[turn%len(i.kinds)]
		if end.Sub(monotonic.Now()) < i.target.lasts(fault) {
			continue
		}
		if err := i.inject(ctx, fault); err != nil {
			return err
		}
	}
}

// RunOnce injects the first fault at once, and no other.
func (i *Injector) RunOnce(ctx context.Context, end monotonic.Instant) error {
	i.end = end
	return i.inject(ctx, i.kinds[0])
}

// inject injects one fault, and returns when everything is whole again.
func (i *Injector) inject(ctx context.Context, fault string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	i.Count[fault]++
	switch err := i.target.harm(ctx, i, fault); {
	case errors.Is(err, errStuck):
		i.Stuck = append(i.Stuck, history.Violation{At: monotonic.Now(), What: err.Error()})
		return nil
	case err != nil:
		return fmt.Errorf("%s of a server: %w", fault, err)
	}
	if i.target.recovers() {
		i.Healed = append(i.Healed, monotonic.Now())
	}
	return nil
}

// pause stops a server for half to three times the TTL.
func (i *Injector) pause(ctx context.Context, s *servertest.Server) error {
	i.note("is stopped")
	if err := s.Pause(); err != nil {
		return err
	}
	monotonic.Pause(i.some(0.5, 3), ctx.Done())
	defer i.note("is continued")
	return s.Resume()
}

// restart kills a server or stops it in an orderly way, and starts it again up to twice the TTL
// later.
func (i *Injector) restart(ctx context.Context, s *servertest.Server) error {
	return i.restartNamed(ctx, s, "")
}

// restartNamed is restart of a server that the notes call by name.
func (i *Injector) restartNamed(ctx context.Context, s *servertest.Server, name string) error {
	end, how := s.Kill, "is killed"
	if i.rand.IntN(2) == 0 {
		end, how = s.Stop, "ends"
	}
	i.note("%s%s", name, how)
	if err := end(); err != nil {
		return err
	}
	monotonic.Pause(i.some(0, 2), ctx.Done())
	defer i.note("%sis there again, with all its data", name)
	return s.Restart(ctx)
}

// takeAll opens all connections that a database has left, by dial, which returns what closes one,
// and keeps them for half to three times the TTL.
func (i *Injector) takeAll(ctx context.Context, dial func() (closeConn func() error, err error)) error {
	var mu sync.Mutex
	var all []func() error
	var dialling sync.WaitGroup
	for range 8 {
		dialling.Go(func() {
			for ctx.Err() == nil {
				closeConn, err := dial()
				if err != nil {
					return
				}
				mu.Lock()
				all = append(all, closeConn)
				mu.Unlock()
			}
		})
	}
	dialling.Wait()
	i.note("has no connection left: others have taken %d", len(all))
	monotonic.Pause(i.some(0.5, 3), ctx.Done())
	var errs []error
	for _, closeConn := range all {
		errs = append(errs, closeConn())
	}
	i.note("has connections again")
	return errors.Join(errs...)
}

// until calls check every 20 ms until it returns nil.
func until(ctx context.Context, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		monotonic.Pause(20*time.Millisecond, ctx.Done())
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}
