package interlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/local"
)

// Lease is a lock that is held, and the only thing a holder needs. It is safe for concurrent use.
//
// It is guaranteed until [Lease.Context] ends, and nobody else gets in before a grace after that. A
// lease ends by Release, or by loss: the store could not be reached in time, an operator broke it,
// its MaxHold is over, or the client was shut down.
type Lease struct{ *lease }

// lease is what the inside of the package knows of a Lease. It must not refer to the Lease itself
// for long, which is watched for being dropped.
type lease struct {
	client *Client
	name   string          // for people: the first one
	place  [3]uintptr      // where Lock was called, behind at most two functions of this package
	values context.Context //nolint:containedctx // for the values of the lease's own
	parent *lease          // that the context of Lock descends from
	holds  []held          // one, or one for each name of a Multi
	single [1]held         // what holds is where there is one
	since  clock.Instant

	mu        sync.Mutex
	ctx       context.Context //nolint:containedctx // the lease's own, made when first asked for
	cancel    context.CancelCauseFunc
	err       error // how it ended: ErrReleased, or what matches ErrLost
	released  bool
	result    error           // of the first Release
	unwatched *Lease          // which nobody watches yet
	dropped   runtime.Cleanup // of who watches it
}

// held is one of the holds of a lease.
type held struct {
	*local.Hold
	pool *local.Pool
	name string
	kind driver.Kind // of the lease: by re-entry, one for reading can share an exclusive hold
}

// fence is the token of the hold for this lease.
func (h *held) fence() uint64 {
	if h.kind == driver.Read {
		return 0
	}
	return h.Fence
}

// leaseKey finds the innermost lease that a context descends from.
type leaseKey struct{}

func leaseOf(ctx context.Context) *lease {
	l, _ := ctx.Value(leaseKey{}).(*lease)
	return l
}

// newLease makes the lease of what was granted just now. It gives that back and returns nil if this
// goroutine was stopped between a grant and now, for so long that a hold is over or nearly so.
func newLease(ctx context.Context, parent *lease, c *Client, name string, holds []held) *Lease {
	l := &Lease{&lease{client: c, name: name, values: ctx, parent: parent, since: c.clock.Now()}}
	l.unwatched = l
	l.holds = append(l.single[:0], holds...)
	runtime.Callers(3, l.place[:])
	good := true
	for _, h := range l.holds {
		good = h.Begin((*onLine)(l.lease), l.since) && good
	}
	if !good {
		l.mu.Lock()
		if l.err == nil {
			l.finish(ErrReleased) // what becomes of the holds now is no loss of a lease
		}
		l.mu.Unlock()
		decline(ctx, l.holds, l.onLine())
		return nil
	}
	return l
}

// decline takes the lease l off holds that nobody will use, side by side.
func decline(ctx context.Context, holds []held, l local.Lease) {
	var declines sync.WaitGroup
	for _, h := range holds {
		declines.Go(func() { h.pool.Decline(h.Hold, l) })
	}
	if ctx.Err() == nil { // else the caller waits no longer
		declines.Wait()
	}
}

// Context ends when the lease can no longer be guaranteed, or was released: context.Cause is then
// an error that matches ErrLost, with the reason, or ErrReleased. It has the values of the context
// that Lock was called with, but not its cancellation, which bounded the waiting only. A Lock of
// the same name with a context derived from it is a re-entry.
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

// Err returns nil while the lease is guaranteed, and then how it ended: ErrReleased, or an error
// that matches ErrLost, also after a Release that followed the loss; where an operator broke it,
// and the store can tell, also driver.ErrBroken. It asks the clock, so a process that was stopped
// hears of a loss from its first call.
func (l *Lease) Err() error {
	now := l.client.clock.NowSampled()
	for _, h := range l.holds {
		h.Check(now)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Fence returns the lease's token: larger than that of every earlier lease of this name, to be
// checked where the protected thing is written; see package fence. It is 0 for readers and permits,
// for stores without tokens, and for several names at once: see FenceOf.
func (l *Lease) Fence() uint64 {
	if len(l.holds) != 1 {
		return 0
	}
	return l.holds[0].fence()
}

// FenceOf returns the token for one of the lease's names, and 0 for any other.
func (l *Lease) FenceOf(name string) uint64 { return l.fenceOf(name) }

func (l *lease) fenceOf(name string) uint64 {
	for i := range l.holds {
		if h := &l.holds[i]; h.name == name {
			return h.fence()
		}
	}
	return 0
}

// Until returns the end of the lease as it is known now, for display. Renewals move it on; it is
// never a reason to do or not to do something: use Context.
func (l *Lease) Until() time.Time {
	first := l.holds[0].Until()
	for _, h := range l.holds[1:] {
		first = min(first, h.Until())
	}
	return l.client.clock.Display(first)
}

// Release ends the lease and lets in the next. It takes no context, because it must be sent
// even when the caller's is over; it waits for the store's answer until the end of trust and for 2
// s at most, and then returns ErrUncertain and goes on in the background. It returns ErrLost if the
// lease was lost before. Further calls return what the first returned, or nil while that is under
// way.
func (l *Lease) Release() error {
	now := l.client.clock.NowSampled()
	if again, result := l.startRelease(); again {
		return result
	}
	var was, err error
	if len(l.holds) == 1 {
		h := &l.holds[0]
		was, err = h.pool.Release(h.Hold, l.onLine(), now)
	} else {
		was, err = l.releaseAll(now)
	}
	if was != nil {
		err = was
	}
	if err != nil {
		err = &Error{Op: "release", Name: l.name, Err: err}
	}
	l.finishRelease(err)
	if t := l.client.opts.Tracer; t != nil && was == nil {
		t.HoldEnd(l.values, l.ended(err, now))
	}
	return err
}

// startRelease notes the first Release, and returns the result of that to others.
func (l *lease) startRelease() (again bool, result error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	again, l.released = l.released, true
	return again, l.result
}

func (l *lease) finishRelease(result error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.result = result
	l.dropped.Stop()
}

// releaseAll releases the holds of l side by side: a store that does not answer costs the time of
// one.
func (l *lease) releaseAll(now clock.Instant) (was, err error) {
	for _, h := range l.holds {
		h.Check(now)
	}
	was = l.onLine().End(ErrReleased)
	errs := make([]error, len(l.holds))
	var releases sync.WaitGroup
	for i, h := range l.holds {
		releases.Go(func() { _, errs[i] = h.pool.Release(h.Hold, l.onLine(), now) })
	}
	releases.Wait()
	return was, errors.Join(errs...)
}

// ended is what the tracer is told of the lease's end, once: at its loss, or else at its Release.
func (l *lease) ended(err error, now clock.Instant) HoldEnd {
	h := &l.holds[0]
	return HoldEnd{Name: l.name, Kind: h.kind, Held: now.Sub(l.since), Fence: h.fence(), Reason: reasonOf(err), Err: err}
}

// onLine is a lease as its line sees it.
type onLine lease

func (l *lease) onLine() *onLine { return (*onLine)(l) }

// End implements [local.Lease].
func (o *onLine) End(why error) (was error) {
	l := (*lease)(o)
	l.mu.Lock()
	defer l.mu.Unlock()
	if was = l.err; was != nil {
		return was
	}
	l.finish(why)
	if why != ErrReleased { //nolint:errorlint // a loss wraps its reason
		end := l.ended(why, l.client.clock.Now())
		l.client.trace(func(t Tracer) { t.HoldEnd(l.values, end) })
	}
	return nil
}

// finish sets the lease's end. The lease's mutex is held.
func (l *lease) finish(why error) {
	l.err = why
	if l.cancel != nil {
		l.cancel(why)
	}
}

// Watch implements [local.Lease]: from now on it is logged if the user drops the lease. To be told
// of that costs a fifth of what a lease does that is passed on and released at once, so it is left
// until the trust of the hold is looked at, within a second; till then the lease keeps itself
// alive.
func (o *onLine) Watch() {
	l := (*lease)(o)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unwatched != nil {
		l.dropped = runtime.AddCleanup(l.unwatched, (*lease).warnDropped, l)
		l.unwatched = nil
	}
}

// warnDropped says once that a lease was forgotten. It goes on being held: its user may still be at
// work with its context.
func (l *lease) warnDropped() {
	l.mu.Lock()
	over := l.err != nil
	l.mu.Unlock()
	if !over {
		l.client.log(slog.LevelWarn, "interlock: lease dropped without Release; it is held until the process ends or its MaxHold is over",
			"name", l.name, "locked_at", caller(l.place[:]))
	}
}

// caller returns the first place outside of this package.
func caller(pcs []uintptr) string {
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "github.com/interlock-go/interlock.") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return "unknown"
		}
	}
}
