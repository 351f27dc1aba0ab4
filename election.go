package interlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/fault"
	"github.com/interlock-go/interlock/internal/keepalive"
)

// Election chooses one leader at a time among all who stand for it, in the whole fleet, in order of
// their standing.
type Election struct{ handle }

// Leader is who leads. Its zero value means that nobody does.
type Leader struct {
	Owner driver.Owner
	Note  string // of the leader's option Note
	Fence uint64
	Since time.Time // by the store's clock
}

// equal compares what was read: two times of one moment may stand in two zones.
func (l Leader) equal(other Leader) bool {
	same := l.Since.Equal(other.Since) && l.Owner.Start.Equal(other.Owner.Start)
	l.Since, l.Owner.Start = other.Since, other.Owner.Start
	return same && l == other
}

// Election returns the election of this name. A name or choice that cannot be shows in Err.
func (c *Client) Election(name string, o ...LockOption) *Election {
	e := &Election{c.handle(name, o, 0)}
	e.settings.want.Alone = true // every leader has a claim of its own, so that its fence and note are to be seen
	return e
}

// Err returns why nobody can stand in this election, or nil.
func (e *Election) Err() error { return e.why() }

// Lead stands, waits to be elected, and runs fn while leading; the context of fn ends when the
// leadership can no longer be guaranteed. When fn returns as leader, Lead returns its result. After
// a loss it waits for fn to return, and stands again after a random pause, until ctx ends; but if
// fn returned nil its work is done, and Lead returns an error that matches ErrLost. Errors of the
// waiting are those of [Mutex.Lock].
func (e *Election) Lead(ctx context.Context, fn func(context.Context) error) error {
	for {
		var lease *Lease
		done := false
		work := func(ctx context.Context) error {
			err := fn(ctx)
			done = err == nil
			return err
		}
		err := do(ctx, work, func(ctx context.Context) (_ *Lease, err error) {
			lease, err = lock(ctx, "lead", mutexMode, false, &e.handle)
			return lease, err
		})
		if lease == nil {
			return err
		}
		// Of this lease only: what fn returned may speak of another that it lost.
		if lost := lease.Release(); done || !errors.Is(lost, ErrLost) || errors.Is(lost, ErrClosed) {
			return err
		}
		if !keepalive.Sleep(ctx, time.Duration(rand.Int64N(int64(min(e.settings.ttl/3, time.Second))))) {
			return errors.Join(err, fault.Context(ctx))
		}
	}
}

// Leader asks the store who leads now. errors.ErrUnsupported: this store cannot be looked into.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	if e.err != nil {
		return Leader{}, e.err
	}
	inspector, ok := e.client.driver.(driver.Inspector)
	if !ok {
		return Leader{}, e.failed(fmt.Errorf("this store cannot be looked into: %w", errors.ErrUnsupported))
	}
	l, err := inspector.Line(ctx, e.name)
	if err != nil {
		return Leader{}, e.unread(err)
	}
	return leaderOf(l), nil
}

// Observe yields the leader now and after every change, the zero Leader while there is none, until
// the caller stops or ctx ends. An error is the last thing that it yields: that of ctx,
// ErrUnavailable where the store does not answer, or what it refuses with. Where the store does not
// tell, it asks once a second.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		last, first := Leader{}, true
		for leader, err := range e.looks(ctx) {
			if err == nil && leader.equal(last) && !first {
				continue
			}
			if err != nil && ctx.Err() != nil && e.err == nil { // that ctx ends is no fault of the store
				err = e.failed(fault.Context(ctx))
			}
			if !yield(leader, err) || err != nil {
				return
			}
			last, first = leader, false
		}
	}
}

// looks yields the leader whenever the line may have changed.
func (e *Election) looks(ctx context.Context) iter.Seq2[Leader, error] {
	watcher, ok := e.client.driver.(driver.Watcher)
	return func(yield func(Leader, error) bool) {
		if e.err == nil && ok {
			for l, err := range watcher.Watch(ctx, e.name) {
				if err != nil {
					err = e.unread(err)
				}
				if !yield(leaderOf(l), err) || err != nil {
					return
				}
			}
			return
		}
		for {
			leader, err := e.Leader(ctx)
			if !yield(leader, err) || err != nil {
				return
			}
			if !keepalive.Sleep(ctx, time.Second) {
				yield(Leader{}, e.failed(fault.Context(ctx)))
				return
			}
		}
	}
}

// unread is the error of a look at the store that failed. What the store refuses it has answered.
func (e *Election) unread(err error) error {
	if fault.Final(err) {
		return e.failed(err)
	}
	return e.failed(fault.Unavailable(err))
}

func (e *Election) failed(err error) error { return &Error{Op: "observe", Name: e.name, Err: err} }

// leaderOf is the exclusive holder of a line.
func leaderOf(l driver.Line) Leader {
	for _, c := range l.Claims {
		if c.Held && c.Kind.Exclusive() {
			return Leader{Owner: c.Owner, Note: c.Note, Fence: c.Fence, Since: c.Since}
		}
	}
	return Leader{}
}
