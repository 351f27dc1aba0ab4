package interlock

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/clock"
)

// Lease is a lock that is held, and the only thing a holder needs. It is safe for concurrent use.
//
// It is guaranteed until [Lease.Context] ends, and nobody else gets in before a grace after that. A lease ends by
// Release, or by loss: the store could not be reached in time, an operator broke it, its MaxHold is over, or the client
// was shut down.
type Lease struct {
	*lease
	dropped runtime.Cleanup // once it is watched: see pool.young
}

// lease is what the inside of the package knows of a Lease. It must not refer to the Lease itself, which is watched for
// being dropped.
type lease struct {
	client *Client
	op     string
	name   string          // for people: the first one
	place  [3]uintptr      // where Lock was called, behind at most two functions of this package
	values context.Context //nolint:containedctx // for the values of the lease's own
	parent *lease          // that the context of Lock descends from
	turns  []turn          // one, or one for each name of a Multi
	single [1]turn         // what turns is where there is one
	since  clock.Instant

	mu       sync.Mutex
	ctx      context.Context //nolint:containedctx // the lease's own, made when first asked for
	cancel   context.CancelCauseFunc
	err      error // how it ended: ErrReleased, or what matches ErrLost
	released bool
	result   error // of the first Release
}

// leaseKey finds the innermost lease that a context descends from.
type leaseKey struct{}

// newLease makes the lease of turns that were granted just now. It gives them back and returns nil if this goroutine was
// stopped between a grant and now, for so long that a turn is over or nearly so.
func newLease(ctx context.Context, c *Client, op, name string, turns ...turn) *Lease {
	l := &Lease{lease: &lease{client: c, op: op, name: name, values: ctx, parent: leaseOf(ctx), since: c.clock.Now()}}
	l.turns = append(l.single[:0], turns...)
	runtime.Callers(3, l.place[:])
	fresh := true
	for _, t := range l.turns {
		fresh = t.begin(l) && fresh
	}
	if !fresh {
		l.mu.Lock()
		l.finish(ErrReleased) // what becomes of the turns now is no loss of a lease
		l.mu.Unlock()
		giveBack(ctx, l.turns, l)
		return nil
	}
	return l
}

// Context ends when the lease can no longer be guaranteed, or was released: context.Cause is then an error that matches
// ErrLost, with the reason, or ErrReleased. It has the values of the context that Lock was called with, but not its
// cancellation, which bounded the waiting only. A Lock of the same name with a context derived from it is a re-entry.
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancelCause(context.WithValue(context.WithoutCancel(l.values), leaseKey{}, l.lease))
		if l.err != nil {
			l.cancel(l.err)
		}
	}
	return l.ctx
}

// Err returns nil while the lease is guaranteed, and then how it ended: ErrReleased, or an error that matches ErrLost, also
// after a Release that followed the loss; where an operator broke it, and the store can tell, also driver.ErrBroken. It asks the clock, so a process that was stopped hears of a loss from its first call.
func (l *Lease) Err() error {
	now := l.client.clock.Glance()
	for _, t := range l.turns {
		t.pool.mu.Lock()
		t.look(now)
		t.pool.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Fence returns the lease's token: larger than that of every earlier lease of this name, to be checked where the
// protected thing is written; see package fence. It is 0 for readers and permits, for stores without tokens, and for
// several names at once: see FenceOf.
func (l *Lease) Fence() uint64 {
	if len(l.turns) != 1 {
		return 0
	}
	return l.turns[0].fence()
}

// FenceOf returns the token for one of the lease's names, and 0 for any other.
func (l *Lease) FenceOf(name string) uint64 { return l.fenceOf(name) }

func (l *lease) fenceOf(name string) uint64 {
	for _, t := range l.turns {
		if t.name == name {
			return t.fence()
		}
	}
	return 0
}

// Until returns the end of the lease as it is known now, for display. Renewals move it on; it is never a reason to do
// or not to do something: use Context.
func (l *Lease) Until() time.Time {
	first := clock.Instant(0)
	for i, t := range l.turns {
		t.pool.mu.Lock()
		if u := t.hold.until(); i == 0 || u.Before(first) {
			first = u
		}
		t.pool.mu.Unlock()
	}
	return l.client.clock.Display(first)
}

// Release ends the lease and lets in whoever is next. It takes no context, because it must be sent even when the
// caller's is over; it waits for the store's answer until the end of trust and for 2 s at most, and then returns
// ErrUncertain and goes on in the background. It returns ErrLost if the lease was lost before. Further calls return
// what the first returned, or nil while that is under way.
func (l *Lease) Release() error {
	now := l.client.clock.Glance()
	last := len(l.turns) - 1
	for _, t := range l.turns[:last] {
		t.pool.mu.Lock()
		t.look(now)
		t.pool.mu.Unlock()
	}
	t := l.turns[last]
	t.pool.mu.Lock() // once for all that is to be done with one name: the goroutines that want it meet here
	t.look(now)
	l.mu.Lock()
	if l.released {
		defer l.mu.Unlock()
		t.pool.mu.Unlock()
		return l.result
	}
	was := l.err
	l.released = true
	l.finish(ErrReleased)
	l.mu.Unlock()
	var err error
	if last == 0 {
		err = t.release(l, now)
	} else {
		t.pool.mu.Unlock()
		err = releaseAll(l, now)
	}
	l.dropped.Stop()
	if was != nil {
		err = was
	}
	if err != nil {
		err = &Error{Op: "release", Name: l.name, Err: err}
		l.mu.Lock()
		l.result = err
		l.mu.Unlock()
	}
	if t := l.client.opts.Tracer; t != nil && was == nil {
		t.HoldEnd(l.values, l.ended(err, now))
	}
	return err
}

// ended is what the tracer is told of the lease's end, once: at its loss, or else at its Release.
func (l *lease) ended(err error, now clock.Instant) HoldEnd {
	t := l.turns[0]
	return HoldEnd{Name: l.name, Kind: t.kind, Held: now.Sub(l.since), Fence: t.fence(), Reason: reasonOf(err), Err: err}
}

// end makes the lease lost. It may be called with the pool's mutex held.
func (l *lease) end(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.finish(why)
		end := l.ended(why, l.client.clock.Now())
		l.client.trace(func(t Tracer) { t.HoldEnd(l.values, end) })
	}
}

// finish sets the lease's end, unless it has ended before. The lease's mutex is held.
func (l *lease) finish(why error) {
	if l.err != nil {
		return
	}
	l.err = why
	if l.cancel != nil {
		l.cancel(why)
	}
}
