package redlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// standing is what this driver knows of a master's vote.
type standing struct {
	generation uint64 // of the connections over which that was found out
	run        string
	err        error // why it has no vote; nil if it has one
	silent     error // why the last look at it had no answer, which changes nothing of the above
}

// voteless says why this master may not give itself to claims, if it may not. A server that restarts ends its connections:
// over a connection that is known it still is the one that had its vote, over a new one it has to say so first.
func (n *node) voteless(ctx context.Context) error {
	s := n.standing.Load()
	if s != nil && s.err == nil && s.generation != 0 && s.generation == redisconn.Generation(n.conn) {
		return nil
	}
	if s == nil || s.err != nil {
		n.d.resurvey()
		if s == nil {
			return fmt.Errorf("redlock: %s: %w: it has not said yet whether it has a vote", n.name, driver.ErrNotSent)
		}
		return s.err
	}
	generation := redisconn.Generation(n.conn)
	run, err := n.runID(ctx)
	if err != nil {
		n.unanswered()
		return fmt.Errorf("redlock: %s: %w: %w", n.name, driver.ErrNotSent, err)
	}
	if run == s.run {
		n.standing.Store(&standing{generation: generation, run: run})
		return nil
	}
	err = fmt.Errorf("redlock: %s: %w: it has restarted", n.name, driver.ErrNotSent)
	n.standing.Store(&standing{run: s.run, err: err})
	n.d.resurvey()
	return err
}

// votes reports whether the master had its vote when last heard of.
func (n *node) votes() bool {
	s := n.standing.Load()
	return s != nil && s.err == nil
}

// noVote is the error of a master that has just answered that it has no vote.
func (n *node) noVote() error {
	if s := n.standing.Load(); s != nil && s.err != nil {
		return s.err
	}
	err := fmt.Errorf("redlock: %s: %w: %w among the masters of this program", n.name, driver.ErrNotSent, errNoVote)
	n.unsure(err)
	return err
}

// forgotten drops what claims that are not held yet have got of a master that has lost its memory.
func (d *Driver) forgotten(n *node) {
	for _, s := range d.sessions.All() {
		s.mu.Lock()
		for _, c := range s.claims {
			if sp := &c.spots[n.i]; c.state < held && sp.has {
				sp.lacks(sp.counter)
				c.asks(n)
			}
		}
		s.mu.Unlock()
	}
}

// unsure has a master that says it has no vote, or that may be another one than before, asked again.
func (n *node) unsure(err error) {
	if s := n.standing.Load(); s != nil && s.err == nil {
		n.standing.Store(&standing{run: s.run, err: err})
	}
	n.d.resurvey()
}

// sawOf takes in what a look shows of one master, and err, why it has no vote. One that did not answer is what it was: it may
// be slow, and what it gave to claims still counts. It reports whether the master is to be looked at again.
func (d *Driver) sawOf(n *node, p *portrait, generation uint64, err error) (missing bool) {
	before := n.standing.Load()
	s := &standing{generation: generation, run: p.run}
	switch {
	case p.err != nil && before != nil:
		n.unanswered()
		*s = *before
		s.silent = p.err
		if n.standing.CompareAndSwap(before, s) { // else something newer is known of it
			d.report(n, before, s)
		}
		return true
	case p.err != nil:
		n.unanswered()
		s.err = fmt.Errorf("redlock: %s: %w: %w", n.name, driver.ErrNotSent, p.err)
	case p.damaged != nil:
		s.err = fmt.Errorf("redlock: %s: %w", n.name, err)
	case err != nil:
		s.err = fmt.Errorf("redlock: %s: %w: %w", n.name, driver.ErrNotSent, err)
	}
	if p.err == nil && before != nil && before.run != "" && before.run != p.run && p.condition() != voting {
		d.forgotten(n)
	}
	d.report(n, n.standing.Swap(s), s)
	return s.err != nil
}

// report logs that a master is not there with its vote, or is there again. A log that blocks must not hold up the survey.
func (d *Driver) report(n *node, before, now *standing) {
	was := before == nil || before.err == nil && before.silent == nil
	switch log := d.options.Logger; {
	case errors.Is(now.err, errUnmade): // it is as it should be
	case was && now.err != nil:
		go log.Warn("interlock: redlock: a master has no vote", "master", n.name, "reason", now.err)
	case was && now.silent != nil:
		go log.Warn("interlock: redlock: a master does not answer", "master", n.name, "reason", now.silent)
	case !was && now.err == nil && now.silent == nil:
		go log.Info("interlock: redlock: a master has its vote again", "master", n.name)
	}
}
