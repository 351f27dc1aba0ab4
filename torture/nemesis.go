//go:build linux || darwin

package torture

import (
	"context"
	"math/rand/v2"
	"time"
)

// nemesis does things to the workers of a team, by seed.
type nemesis struct {
	team  *team
	rand  *rand.Rand
	ttl   time.Duration
	kills []int // slots that may be killed
	stops bool

	cables *cables // of the workers; nil when the nemesis has none
	next   instant // when the next of them is damaged

	due []errand
}

// errand is something to be done later: a worker to be continued or started again.
type errand struct {
	at      instant
	process *process // to be continued; nil: the slot is to be started
	slot    int
	number  int
}

// rage goes on until end, and leaves no worker stopped and no slot empty. tick is called about every 10 ms.
func (n *nemesis) rage(ctx context.Context, end instant, tick func()) error {
	next := now().add(n.some(0.2, 1))
	for now() < end && ctx.Err() == nil {
		tick()
		n.damage(now())
		if err := n.settle(now()); err != nil {
			return err
		}
		if now() >= next {
			n.strike()
			next = now().add(n.some(0.1, 1))
		}
		wake := min(end, next)
		for _, e := range n.due {
			wake = min(wake, e.at)
		}
		pause(min(max(wake.sub(now()), 0), 10*time.Millisecond), ctx.Done())
	}
	return n.settle(1<<63 - 1)
}

// some is a random part of the TTL.
func (n *nemesis) some(low, high float64) time.Duration {
	return time.Duration((low + n.rand.Float64()*(high-low)) * float64(n.ttl))
}

// settle runs the errands that are due.
func (n *nemesis) settle(t instant) error {
	rest := n.due[:0]
	var failure error
	for _, e := range n.due {
		switch {
		case e.at > t:
			rest = append(rest, e)
		case e.process != nil:
			n.team.resume(e.process)
		default:
			if err := n.team.start(e.slot, e.number); err != nil && failure == nil {
				failure = err
			}
			n.team.note(e.slot, "is started again")
		}
	}
	n.due = rest
	return failure
}

// damage strikes the cables of workers that want that, and now and then one of the others: a quarter of them at a time.
func (n *nemesis) damage(t instant) {
	if n.cables == nil {
		return
	}
	for slot, p := range n.team.procs {
		if p != nil && p.diary.head.wants.CompareAndSwap(1, 0) && n.cables.free(slot) {
			n.cables.strike(slot, n.rand, true)
		}
	}
	if t < n.next || n.cables.damaged() >= max(len(n.team.jobs)/4, 1) {
		return
	}
	n.next = t.add(n.some(0.2, 1))
	if p := n.team.running(n.rand); p != nil && n.cables.free(p.slot) {
		n.cables.strike(p.slot, n.rand, false)
	}
}

// strike stops a worker for half to three times the TTL, or kills one and has it started again. At most a quarter
// of the workers is out of action at a time, so that somebody is there to take over.
func (n *nemesis) strike() {
	if len(n.kills) == 0 && !n.stops {
		return
	}
	if len(n.due) >= max(len(n.team.jobs)/4, 1) {
		return
	}
	p := n.team.running(n.rand)
	if p == nil {
		return
	}
	if n.stops && (len(n.kills) == 0 || n.rand.IntN(4) > 0) {
		n.team.stop(p)
		n.due = append(n.due, errand{at: now().add(n.some(0.5, 3)), process: p})
		return
	}
	if len(n.kills) == 0 {
		return
	}
	p = n.team.procs[n.kills[n.rand.IntN(len(n.kills))]]
	if p == nil || p.stopped || p.ended() {
		return
	}
	n.team.kill(p)
	n.due = append(n.due, errand{at: now().add(n.some(0.1, 1)), slot: p.slot, number: p.number + 1})
}
