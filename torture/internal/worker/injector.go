//go:build linux || darwin

package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// links are those of the workers to the servers, by slot.
type links interface {
	// Whole reports whether nothing is wrong with the links of a slot.
	Whole(slot int) bool

	// Broken returns how many slots have links that are not whole.
	Broken() int

	// Damage damages links of a slot for a while: so many that it is cut off, if off is true.
	Damage(slot int, r *rand.Rand, off bool)
}

// Injector injects faults into the workers of a team and their links, by seed.
type Injector struct {
	Team  *Team
	Rand  *rand.Rand
	TTL   time.Duration
	Kills []int // slots that may be killed
	Stops bool  // workers may be stopped

	Links links             // of the workers; nil when they are not to be damaged
	next  monotonic.Instant // when the next of them is damaged

	due []repair
}

// repair is to be made later: a worker is to be continued or started again.
type repair struct {
	at      monotonic.Instant
	process *process // to be continued; nil: the slot is to be started
	slot    int
	number  int
}

// Run goes on until end, and leaves no worker stopped and no slot empty. tick is called about every
// 10 ms.
func (f *Injector) Run(ctx context.Context, end monotonic.Instant, tick func()) error {
	next := monotonic.Now().Add(f.some(0.2, 1))
	for monotonic.Now() < end && ctx.Err() == nil {
		tick()
		f.damageLinks(monotonic.Now())
		if err := f.repair(monotonic.Now()); err != nil {
			return err
		}
		if monotonic.Now() >= next {
			f.strike()
			next = monotonic.Now().Add(f.some(0.1, 1))
		}
		wake := min(end, next)
		for _, e := range f.due {
			wake = min(wake, e.at)
		}
		monotonic.Pause(min(max(wake.Sub(monotonic.Now()), 0), 10*time.Millisecond), ctx.Done())
	}
	return f.repair(1<<63 - 1)
}

// some is a random part of the TTL.
func (f *Injector) some(low, high float64) time.Duration {
	return time.Duration((low + f.Rand.Float64()*(high-low)) * float64(f.TTL))
}

// repair makes the repairs that are due.
func (f *Injector) repair(t monotonic.Instant) error {
	rest := f.due[:0]
	var failure error
	for _, e := range f.due {
		switch {
		case e.at > t:
			rest = append(rest, e)
		case e.process != nil:
			f.Team.resume(e.process)
		default:
			if err := f.Team.start(e.slot, e.number); err != nil && failure == nil {
				failure = err
			}
			f.Team.note(e.slot, "is started again")
		}
	}
	f.due = rest
	return failure
}

// damageLinks damages the links of workers that want that, and now and then those of another one:
// of a quarter of them at a time.
func (f *Injector) damageLinks(t monotonic.Instant) {
	if f.Links == nil {
		return
	}
	for slot, p := range f.Team.procs {
		if p != nil && p.log.head.wants.CompareAndSwap(1, 0) && f.Links.Whole(slot) {
			f.Links.Damage(slot, f.Rand, true)
		}
	}
	if t < f.next || f.Links.Broken() >= max(len(f.Team.jobs)/4, 1) {
		return
	}
	f.next = t.Add(f.some(0.2, 1))
	if p := f.Team.running(f.Rand); p != nil && f.Links.Whole(p.slot) {
		f.Links.Damage(p.slot, f.Rand, false)
	}
}

// strike stops a worker for half to three times the TTL, or kills one, which is started again. At
// most a quarter of the workers is out of action at a time, so that another one can take over.
func (f *Injector) strike() {
	if len(f.Kills) == 0 && !f.Stops {
		return
	}
	if len(f.due) >= max(len(f.Team.jobs)/4, 1) {
		return
	}
	p := f.Team.running(f.Rand)
	if p == nil {
		return
	}
	if f.Stops && (len(f.Kills) == 0 || f.Rand.IntN(4) > 0) {
		f.Team.stop(p)
		f.due = append(f.due, repair{at: monotonic.Now().Add(f.some(0.5, 3)), process: p})
		return
	}
	if len(f.Kills) == 0 {
		return
	}
	p = f.Team.procs[f.Kills[f.Rand.IntN(len(f.Kills))]]
	if p == nil || p.stopped || p.ended() {
		return
	}
	f.Team.kill(p)
	f.due = append(f.due, repair{at: monotonic.Now().Add(f.some(0.1, 1)), slot: p.slot, number: p.number + 1})
}
