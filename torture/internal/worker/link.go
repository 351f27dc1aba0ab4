//go:build linux || darwin

package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// link is a driver whose link to the store fails by a schedule, and which can be made to lie.
//
// Each session has a link of its own. It is whole for a while, then slow, so that replies come
// late, and then cut: for half to three times the TTL requests do not get through, or only replies
// do not, and neither do notices. The process at this end of it is well all the time. Where a
// session is for one lease alone its schedule begins with the grant, so that the lease is always
// hit; others can be cut by cutSoon.
//
// With lie set it reports a Valid that counts from the reply and has the grace in it: what a client
// does that has no grace and starts its clock when the answer is there. Such a client must be seen
// to be told late, or the faults of the run did not bite.
type link struct {
	driver.Driver
	ttl, grace time.Duration
	cuts       bool
	alone      bool
	lie        bool
	spare      time.Duration     // of a lie
	end        monotonic.Instant // of all faults
	seed       uint64
	opened     atomic.Uint64
	current    atomic.Pointer[linkSession] // of the session opened last
	counted    *atomic.Int64               // calls that were held up
}

// cutSoon cuts the link of the session that was opened last, soon.
func (l *link) cutSoon() {
	if w := l.current.Load(); w != nil && l.cuts {
		w.schedule()
	}
}

// cut is a time in which the link of a session is not whole.
type cut struct {
	monotonic.Span
	kind cutKind
}

type cutKind int

const (
	slow     cutKind = iota // replies come late
	requests                // nothing leaves
	replies                 // nothing comes back
)

// Open implements driver.Driver.
func (l *link) Open(ctx context.Context, s driver.Spec) (driver.Session, error) {
	started := monotonic.Now()
	inner, err := l.Driver.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	w := &linkSession{Session: inner, link: l, late: monotonic.Now().Sub(started), done: make(chan struct{})}
	w.rand = rand.New(rand.NewPCG(l.seed, l.opened.Add(1)))
	l.current.Store(w)
	w.relay()
	if _, ok := inner.(driver.Requeuer); ok {
		return &requeuingSession{w}, nil
	}
	return w, nil
}

// linkSession is one session at the other end of a link.
type linkSession struct {
	driver.Session
	link  *link
	late  time.Duration // that the store took to open the session
	begun sync.Once
	cuts  atomic.Pointer[[]cut]

	mu   sync.Mutex
	rand *rand.Rand

	lost  chan driver.Loss
	nudge chan struct{}
	done  chan struct{}
	over  atomic.Bool
}

type requeuingSession struct{ *linkSession }

// schedule draws what will happen to a session from now on: once or, where the link is to be cut
// again and again, for as long as there are faults.
func (w *linkSession) schedule() {
	w.mu.Lock()
	defer w.mu.Unlock()
	some := func(low, high float64) time.Duration {
		return time.Duration((low + w.rand.Float64()*(high-low)) * float64(w.link.ttl))
	}
	var cuts []cut
	for t := monotonic.Now().Add(some(0, 1)); t < w.link.end; t = t.Add(some(0, 3)) {
		end := t.Add(some(0.5, 1.5))
		cuts = append(cuts, cut{monotonic.Span{From: t, To: end}, slow})
		t = end.Add(some(0.5, 3))
		kind := requests
		if w.rand.IntN(4) == 0 {
			kind = replies
		}
		cuts = append(cuts, cut{monotonic.Span{From: end, To: min(t, w.link.end)}, kind})
		if !w.link.alone {
			break
		}
	}
	w.cuts.Store(&cuts)
}

// granted begins the schedule of a session that is for one lease alone.
func (w *linkSession) granted(g driver.Grant, err error) {
	if err == nil && g.Held && w.link.cuts && w.link.alone {
		w.begun.Do(w.schedule)
	}
}

// at returns the cut that there is at t, if any.
func (w *linkSession) at(t monotonic.Instant) (cut, bool) {
	cuts := w.cuts.Load()
	if cuts == nil {
		return cut{}, false
	}
	for _, c := range *cuts {
		if t >= c.From && t < c.To {
			return c, true
		}
	}
	return cut{}, false
}

// send waits until a request gets through. One whose context ends first was not sent.
func (w *linkSession) send(ctx context.Context) error {
	for {
		t := monotonic.Now()
		c, ok := w.at(t)
		if !ok || c.kind != requests {
			return nil
		}
		if err := w.wait(ctx, c.To.Sub(t)); err != nil {
			return fmt.Errorf("torture: the link is cut: %w: %w", driver.ErrNotSent, err)
		}
	}
}

// receive waits until a reply gets through. One whose context ends first is lost, and what it said
// unknown.
func (w *linkSession) receive(ctx context.Context) error {
	for slowed := false; ; {
		t := monotonic.Now()
		c, ok := w.at(t)
		switch {
		case !ok || c.kind == requests || c.kind == slow && slowed:
			return nil
		case c.kind == slow:
			slowed = true
			c.To = min(c.To, t.Add(time.Duration(rand.Int64N(int64(w.link.ttl)/2))))
		}
		if err := w.wait(ctx, c.To.Sub(t)); err != nil {
			return fmt.Errorf("torture: the reply is lost: %w", err)
		}
	}
}

// wait waits for d, and counts the call as held up.
func (w *linkSession) wait(ctx context.Context, d time.Duration) error {
	if w.link.counted != nil {
		w.link.counted.Add(1)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call sends a request and receives its reply.
func (w *linkSession) call(ctx context.Context, request func() error) error {
	if err := w.send(ctx); err != nil {
		return err
	}
	err := request()
	if lost := w.receive(ctx); lost != nil {
		return lost // and what the store said with it
	}
	return err
}

// Valid implements driver.Session.
func (w *linkSession) Valid() time.Duration {
	if w.link.lie {
		return w.Session.Valid() + w.link.grace + w.link.spare + w.late
	}
	return w.Session.Valid()
}

// Acquire implements driver.Session.
func (w *linkSession) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	err = w.call(ctx, func() (err error) {
		g, err = w.Session.Acquire(ctx, c)
		return err
	})
	w.granted(g, err)
	return g, err
}

// Wait implements driver.Session.
func (w *linkSession) Wait(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	err = w.call(ctx, func() (err error) {
		g, err = w.Session.Wait(ctx, c)
		return err
	})
	w.granted(g, err)
	return g, err
}

// Release implements driver.Session.
func (w *linkSession) Release(ctx context.Context, c driver.Claim) (held bool, err error) {
	err = w.call(ctx, func() (err error) {
		held, err = w.Session.Release(ctx, c)
		return err
	})
	return held, err
}

// Requeue implements driver.Requeuer, for sessions that have it.
func (w *requeuingSession) Requeue(ctx context.Context, old, next driver.Claim) (g driver.Grant, held bool, err error) {
	err = w.call(ctx, func() (err error) {
		g, held, err = w.Session.(driver.Requeuer).Requeue(ctx, old, next)
		return err
	})
	return g, held, err
}

// Renew implements driver.Session.
func (w *linkSession) Renew(ctx context.Context) (r driver.Renewal, err error) {
	started := monotonic.Now()
	err = w.call(ctx, func() (err error) {
		r, err = w.Session.Renew(ctx)
		return err
	})
	if w.link.lie {
		r.Valid += w.link.grace + w.link.spare + monotonic.Now().Sub(started)
	}
	return r, err
}

// Close implements driver.Session.
func (w *linkSession) Close(ctx context.Context) error {
	defer w.hangUp()
	return w.call(ctx, func() error { return w.Session.Close(ctx) })
}

// Lost implements driver.LossNotifier; it says nothing where the store does not.
func (w *linkSession) Lost() <-chan driver.Loss { return w.lost }

// Nudge implements driver.Nudger; it says nothing where the store does not.
func (w *linkSession) Nudge() <-chan struct{} { return w.nudge }

// relay carries the store's notices over the link, while it is whole, until the session is closed
// or lost.
func (w *linkSession) relay() {
	if n, ok := w.Session.(driver.LossNotifier); ok {
		w.lost = make(chan driver.Loss, 64)
		go func() {
			forward(w, n.Lost(), w.lost)
			w.hangUp()
		}()
	}
	if n, ok := w.Session.(driver.Nudger); ok {
		w.nudge = make(chan struct{}, 1)
		go forward(w, n.Nudge(), w.nudge)
	}
}

// hangUp ends the relays.
func (w *linkSession) hangUp() {
	if w.over.CompareAndSwap(false, true) {
		close(w.done)
	}
}

func forward[T any](w *linkSession, from <-chan T, to chan<- T) {
	for {
		select {
		case <-w.done:
			return
		case v, ok := <-from:
			for c, is := w.at(monotonic.Now()); is && c.kind != slow && !w.over.Load(); c, is = w.at(monotonic.Now()) {
				monotonic.Pause(c.To.Sub(monotonic.Now()), w.done)
			}
			if !ok {
				close(to)
				return
			}
			select {
			case to <- v:
			case <-w.done:
				return
			}
		}
	}
}
