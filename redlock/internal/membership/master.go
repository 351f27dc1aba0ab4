package membership

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// Master is what a program knows of one master's vote. A probe writes that, and what the master
// answers to anybody may take it away until the next probe. It is safe for concurrent use.
type Master struct {
	Name string // for people

	conn       redisconn.Conn
	recheck    func() // requests a probe
	unanswered func() // the master has not answered
	forgot     func() // it has lost what it had given to claims

	status atomic.Pointer[status]
	vote   atomic.Pointer[string] // its vote in the set that the program knows
	id     string                 // its ID in the set when it was last met, or ""; guarded by the mutex of its group
}

// status is what is known of a master's vote. It is not changed, but replaced.
type status struct {
	generation uint64 // of the connections over which that was found out
	run        string // the run_id then, or ""
	err        error  // why it has no vote; nil if it has one
	silent     error  // why the last probe had no answer, which changes nothing of the above
}

// Err returns nil if the master had its vote when last heard of, or why it had none.
func (m *Master) Err() error {
	s := m.status.Load()
	if s == nil {
		return errNoVote
	}
	return s.err
}

// Votes reports whether the master had its vote when last heard of.
func (m *Master) Votes() bool { return m.Err() == nil }

// Vote returns the master's vote in the set that the program knows, which a script compares with
// the one on the master.
func (m *Master) Vote() string {
	if vote := m.vote.Load(); vote != nil {
		return *vote
	}
	return "-"
}

// Check returns nil if the master may vote over its connection as that is, or why it may not. A
// server that restarts ends its connections. Over a connection that is known it still is the one
// that had its vote; over a new one it is asked which start of the server it is.
func (m *Master) Check(ctx context.Context) error {
	s := m.status.Load()
	if s != nil && s.err == nil && s.generation != 0 && s.generation == redisconn.Generation(m.conn) {
		return nil
	}
	if s == nil || s.err != nil {
		m.recheck()
		if s == nil {
			return fmt.Errorf("redlock: %s: %w: it has not said yet whether it has a vote", m.Name, driver.ErrNotSent)
		}
		return s.err
	}
	generation := redisconn.Generation(m.conn)
	run, err := m.runID(ctx)
	if err != nil {
		m.unanswered()
		return fmt.Errorf("redlock: %s: %w: %w", m.Name, driver.ErrNotSent, err)
	}
	if run == s.run {
		m.status.Store(&status{generation: generation, run: run})
		return nil
	}
	err = fmt.Errorf("redlock: %s: %w: it has restarted", m.Name, driver.ErrNotSent)
	m.status.Store(&status{run: s.run, err: err})
	m.recheck()
	return err
}

// Refused returns why the master has no vote, after it has said that it has none.
func (m *Master) Refused() error {
	if s := m.status.Load(); s != nil && s.err != nil {
		return s.err
	}
	err := fmt.Errorf("redlock: %s: %w: %w among the masters of this program", m.Name, driver.ErrNotSent, errNoVote)
	m.Recheck(err)
	return err
}

// Recheck takes the vote of a master that says it has none, or that may be another one than before,
// and requests a probe.
func (m *Master) Recheck(why error) {
	if s := m.status.Load(); s != nil && s.err == nil {
		m.status.Store(&status{run: s.run, err: why})
	}
	m.recheck()
}

// update notes what a probe shows of the master, and why it has no vote. One that did not answer is
// what it was: it may be slow, and what it gave to claims still counts. It returns the status that
// was and the one that is.
func (m *Master) update(info Info, state State, generation uint64, why error) (before, now *status) {
	before, now = m.status.Load(), &status{generation: generation, run: info.Run}
	switch {
	case info.Err != nil && before != nil:
		m.unanswered()
		*now = *before
		now.silent = info.Err
		if !m.status.CompareAndSwap(before, now) { // something newer is known of it
			return before, before
		}
		return before, now
	case info.Err != nil:
		m.unanswered()
		now.err = fmt.Errorf("redlock: %s: %w: %w", m.Name, driver.ErrNotSent, info.Err)
	case info.Damaged != nil:
		now.err = fmt.Errorf("redlock: %s: %w", m.Name, why)
	case why != nil:
		now.err = fmt.Errorf("redlock: %s: %w: %w", m.Name, driver.ErrNotSent, why)
	}
	if info.Err == nil && before != nil && before.run != "" && before.run != info.Run && state != Voting {
		m.forgot()
	}
	return m.status.Swap(now), now
}

// useless notes that the set as a whole is of no use.
func (m *Master) useless(why error) {
	lost := &status{err: fmt.Errorf("%w: %w", driver.ErrNotSent, why)}
	if before := m.status.Load(); before != nil {
		lost.run = before.run
	}
	m.status.Store(lost)
}

// runID asks a master which start of the server it is.
func (m *Master) runID(ctx context.Context) (run string, err error) {
	err = m.conn.EachMaster(ctx, func(do redisconn.DoFunc) error {
		info, err := redisstore.About(ctx, do, "server")
		run = info["run_id"]
		return err
	})
	return run, redisconn.Classify(err)
}
