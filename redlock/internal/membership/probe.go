package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/gather"
)

// Result is what a probe has found.
type Result struct {
	Infos   []Info
	Away    []error // by master: why it is none for now
	Missing bool    // one has no vote, so the masters are to be probed again
	Err     error   // why the set as a whole is of no use

	refusal error
}

// overtakings is how often other programs may change the masters' records before this one leaves it
// to them for a while.
const overtakings = 5

// passing is how long a program waits for another one that bootstraps the set.
const passing = time.Second

// probe is Probe. mu is held.
func (g *Group) probe(ctx context.Context, giveUp []int) Result {
	g.begun = time.Now()
	var r Result
	var plan Plan
	var why []error
	var generations []uint64
	patience := time.Now().Add(passing)
	for tries := overtakings; tries > 0; {
		r.Infos, generations = g.infos(ctx)
		plan = Decide(g.question(r.Infos, giveUp))
		if plan.Passing && time.Now().Before(patience) && gather.Sleep(ctx, soonest) {
			continue
		}
		r.refusal = plan.Refusal
		why = g.carryOut(ctx, &r, plan)
		if !slices.ContainsFunc(why, func(err error) bool { return errors.Is(err, errOvertaken) }) {
			break
		}
		tries--
	}
	r.Err, r.Missing = plan.Err, plan.Err != nil || plan.Unmade != nil
	for i := range plan.Masters {
		r.Away = append(r.Away, plan.Masters[i].Away)
	}
	g.unmade.Store(plan.Unmade)
	if plan.Err != nil && g.set.Load() == nil {
		return r // of who opens: it says by itself who is away, and may be tried again and again
	}
	if plan.Err == nil && plan.Unmade == nil {
		for i, m := range g.masters {
			m.id = cmp.Or(plan.Masters[i].ID, m.id)
			vote := plan.Set.Vote(m.id)
			m.vote.Store(&vote)
		}
		g.set.Store(&plan.Set)
		g.told.Store(int64(time.Since(epoch)))
	}
	heard := 0
	for _, info := range r.Infos {
		if info.Err == nil {
			heard++
		}
	}
	for i, m := range g.masters {
		switch info := r.Infos[i]; {
		case plan.Err == nil || info.Err != nil:
			before, now := m.update(info, plan.Masters[i].State, generations[i], why[i])
			g.report(m, before, now)
			r.Missing = r.Missing || info.Err != nil || now.err != nil
		case heard >= Majority(len(g.masters)) || m.status.Load() == nil: // what a minority says takes no vote
			m.useless(plan.Err)
		}
	}
	return r
}

// report logs that a master is not there with its vote, or is there again. A log that blocks must
// not hold up the probe.
func (g *Group) report(m *Master, before, now *status) {
	was := before == nil || before.err == nil && before.silent == nil
	switch {
	case errors.Is(now.err, errUnmade): // it is as it should be
	case was && now.err != nil:
		go g.Logger.Warn("interlock: redlock: a master has no vote", "master", m.Name, "reason", now.err)
	case was && now.silent != nil:
		go g.Logger.Warn("interlock: redlock: a master does not answer", "master", m.Name, "reason", now.silent)
	case !was && now.err == nil && now.silent == nil:
		go g.Logger.Info("interlock: redlock: a master has its vote again", "master", m.Name)
	}
}

// question is what Decide is asked. mu is held.
func (g *Group) question(infos []Info, giveUp []int) Question {
	q := Question{MaxTTL: g.MaxTTL, Known: g.set.Load() != nil, Looks: g.Looks, GiveUp: giveUp}
	for i, m := range g.masters {
		seen := Seen{Info: infos[i], Name: m.Name, Was: m.id}
		if s := m.status.Load(); s != nil {
			seen.Ran = s.run
		}
		q.Masters = append(q.Masters, seen)
	}
	return q
}

// carryOut writes what a plan says, and returns why masters have no vote then. Those that lost
// their memory are told last: a majority must know of their places.
func (g *Group) carryOut(ctx context.Context, r *Result, plan Plan) []error {
	why, knows := make([]error, len(g.masters)), 0
	for i, s := range plan.Masters {
		why[i] = s.Why
		if s.Action == Bootstrap || s.Action == Reconcile {
			if err := g.write(ctx, i, r.Infos[i], s.Write); err != nil {
				why[i] = err
				if s.Action == Bootstrap {
					g.Recheck() // another program does so, too
				}
				continue
			}
		}
		if s.Action == Keep || s.Action == Reconcile {
			knows++
		}
	}
	quorum := Majority(len(g.masters))
	if plan.GivesUp && knows < quorum && r.refusal == nil {
		r.refusal = fmt.Errorf("redlock: %d of %d masters have it on record, want %d: give up again", knows, len(g.masters), quorum)
	}
	for i, s := range plan.Masters {
		switch {
		case s.Action != Register:
		case knows < quorum:
			why[i] = fmt.Errorf("it has lost its memory, and %d of %d masters know its new place, want %d", knows, len(g.masters), quorum)
		default:
			if err := g.write(ctx, i, r.Infos[i], s.Write); err != nil {
				why[i] = err
			}
		}
	}
	return why
}

// write writes to a master, unless the program only looks.
func (g *Group) write(ctx context.Context, i int, was Info, w Write) error {
	if g.Looks {
		return nil
	}
	return write(ctx, g.masters[i].conn, g.Names[i], was, w)
}

// infos asks all masters who they are. One that does not answer is not waited for when a majority
// has, unless none of those that did knows of a set: a new one begins with all. mu is held.
func (g *Group) infos(ctx context.Context) ([]Info, []uint64) {
	ctx, cancel := context.WithTimeout(ctx, max(2*g.Timeout, redisconn.DefaultTimeout))
	defer cancel()
	infos, generations, known := make([]Info, len(g.masters)), make([]uint64, len(g.masters)), 0
	for i, m := range g.masters {
		generations[i] = redisconn.Generation(m.conn)
		infos[i].Err = fmt.Errorf("%w: no answer yet", driver.ErrNotSent)
	}
	since, patience := time.Now(), max(g.patience, Hesitation)
	all := gather.Answers(ctx, len(g.masters), patience, func(i int) Info { return ask(ctx, g.masters[i].conn, g.Needs, since) }, func(i int, info Info) bool {
		infos[i] = info
		if info.Err == nil && info.Record.Version > 0 {
			known++
		}
		return known >= Majority(len(g.masters))
	})
	if g.patience = Hesitation; !all {
		g.patience = min(2*patience, endurance)
	}
	return infos, generations
}

// Hesitation is how long the first probe waits for the last masters after a majority has answered,
// and any that follows one that had all answers. While answers are missing each waits twice as long
// as the one before: a master that is slow is heard of in the end, and one that is dead does not
// hold up the others for longer than endurance.
const (
	Hesitation = 100 * time.Millisecond
	endurance  = 3 * time.Second
)
