package redlock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
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

// print is what this master's vote is in the set that the program knows.
func (n *node) print() string {
	if vote := n.vote.Load(); vote != nil {
		return *vote
	}
	return "-"
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

// unsure has a master that says it has no vote, or that may be another one than before, asked again.
func (n *node) unsure(err error) {
	if s := n.standing.Load(); s != nil && s.err == nil {
		n.standing.Store(&standing{run: s.run, err: err})
	}
	n.d.resurvey()
}

// runID asks a master which start of the server it is.
func (n *node) runID(ctx context.Context) (run string, err error) {
	err = n.conn.EachMaster(ctx, func(do redisconn.DoFunc) error {
		info, err := redisstore.About(ctx, do, "server")
		run = info["run_id"]
		return err
	})
	return run, redisconn.Classify(err)
}
