//go:build linux || darwin

package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// link is a driver whose wire to the store fails by a timetable, and which can be made to lie.
//
// Each session has a wire of its own. It is whole for a while, then slow, so that replies come late, and then cut: for
// half to three times the TTL requests do not get through, or only replies do not, and neither do notices. The
// process at this end of it is well all the time. Where a session is for one lease alone its timetable begins with the
// grant, so that the lease is always hit; others can be cut by strike.
//
// With lie set it reports a Valid that counts from the reply and has the grace in it: what a client does that has no
// grace and starts its clock when the answer is there. Such a client must be seen to be told late, or the faults of
// the run did not bite.
type link struct {
	driver.Driver
	ttl, grace time.Duration
	cuts       bool
	alone      bool
	lie        bool
	spare      time.Duration // of a lie
	end        instant       // of all faults
	seed       uint64
	opened     atomic.Uint64
	current    atomic.Pointer[wire] // of the session opened last
	counted    *atomic.Int64        // calls that were held up
}

// strike cuts the wire of the session that was opened last, soon.
func (l *link) strike() {
	if w := l.current.Load(); w != nil && l.cuts {
		w.timetable()
	}
}

// cut is a time in which the wire of a session is not whole.
type cut struct {
	span
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
	started := now()
	inner, err := l.Driver.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	w := &wire{Session: inner, link: l, late: now().sub(started), done: make(chan struct{})}
	w.rand = rand.New(rand.NewPCG(l.seed, l.opened.Add(1)))
	l.current.Store(w)
	w.relay()
	if _, ok := inner.(driver.Requeuer); ok {
		return &requeuingWire{w}, nil
	}
	return w, nil
}

// wire is one session at the other end of a link.
type wire struct {
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

type requeuingWire struct{ *wire }

// timetable draws what will happen to a session from now on: once or, where the wire is to be cut again and again, for as
// long as there are faults.
func (w *wire) timetable() {
	w.mu.Lock()
	defer w.mu.Unlock()
	some := func(low, high float64) time.Duration {
		return time.Duration((low + w.rand.Float64()*(high-low)) * float64(w.link.ttl))
	}
	var cuts []cut
	for t := now().add(some(0, 1)); t < w.link.end; t = t.add(some(0, 3)) {
		end := t.add(some(0.5, 1.5))
		cuts = append(cuts, cut{span{t, end}, slow})
		t = end.add(some(0.5, 3))
		kind := requests
		if w.rand.IntN(4) == 0 {
			kind = replies
		}
		cuts = append(cuts, cut{span{end, min(t, w.link.end)}, kind})
		if !w.link.alone {
			break
		}
	}
	w.cuts.Store(&cuts)
}

// granted begins the timetable of a session that is for one lease alone.
func (w *wire) granted(g driver.Grant, err error) {
	if err == nil && g.Held && w.link.cuts && w.link.alone {
		w.begun.Do(w.timetable)
	}
}

// at returns the cut that there is at t, if any.
func (w *wire) at(t instant) (cut, bool) {
	cuts := w.cuts.Load()
	if cuts == nil {
		return cut{}, false
	}
	for _, c := range *cuts {
		if t >= c.from && t < c.to {
			return c, true
		}
	}
	return cut{}, false
}

// send waits until a request gets through. One whose context ends first was not sent.
func (w *wire) send(ctx context.Context) error {
	for {
		t := now()
		c, ok := w.at(t)
		if !ok || c.kind != requests {
			return nil
		}
		if err := w.stand(ctx, c.to.sub(t)); err != nil {
			return fmt.Errorf("torture: the link is cut: %w: %w", driver.ErrNotSent, err)
		}
	}
}

// receive waits until a reply gets through. One whose context ends first is lost, and what it said unknown.
func (w *wire) receive(ctx context.Context) error {
	for slowed := false; ; {
		t := now()
		c, ok := w.at(t)
		switch {
		case !ok || c.kind == requests || c.kind == slow && slowed:
			return nil
		case c.kind == slow:
			slowed = true
			c.to = min(c.to, t.add(time.Duration(rand.Int64N(int64(w.link.ttl)/2))))
		}
		if err := w.stand(ctx, c.to.sub(t)); err != nil {
			return fmt.Errorf("torture: the reply is lost: %w", err)
		}
	}
}

// stand waits for d, and counts it.
func (w *wire) stand(ctx context.Context, d time.Duration) error {
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
func (w *wire) call(ctx context.Context, request func() error) error {
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
func (w *wire) Valid() time.Duration {
	if w.link.lie {
		return w.Session.Valid() + w.link.grace + w.link.spare + w.late
	}
	return w.Session.Valid()
}

// Acquire implements driver.Session.
func (w *wire) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	err = w.call(ctx, func() (err error) {
		g, err = w.Session.Acquire(ctx, c)
		return err
	})
	w.granted(g, err)
	return g, err
}

// Wait implements driver.Session.
func (w *wire) Wait(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	err = w.call(ctx, func() (err error) {
		g, err = w.Session.Wait(ctx, c)
		return err
	})
	w.granted(g, err)
	return g, err
}

// Release implements driver.Session.
func (w *wire) Release(ctx context.Context, c driver.Claim) (held bool, err error) {
	err = w.call(ctx, func() (err error) {
		held, err = w.Session.Release(ctx, c)
		return err
	})
	return held, err
}

// Requeue implements driver.Requeuer, for sessions that have it.
func (w *requeuingWire) Requeue(ctx context.Context, old, next driver.Claim) (g driver.Grant, held bool, err error) {
	err = w.call(ctx, func() (err error) {
		g, held, err = w.Session.(driver.Requeuer).Requeue(ctx, old, next)
		return err
	})
	return g, held, err
}

// Renew implements driver.Session.
func (w *wire) Renew(ctx context.Context) (r driver.Renewal, err error) {
	started := now()
	err = w.call(ctx, func() (err error) {
		r, err = w.Session.Renew(ctx)
		return err
	})
	if w.link.lie {
		r.Valid += w.link.grace + w.link.spare + now().sub(started)
	}
	return r, err
}

// Close implements driver.Session.
func (w *wire) Close(ctx context.Context) error {
	defer w.hangUp()
	return w.call(ctx, func() error { return w.Session.Close(ctx) })
}

// Lost implements driver.LossNotifier; it says nothing where the store does not.
func (w *wire) Lost() <-chan driver.Loss { return w.lost }

// Nudge implements driver.Nudger; it says nothing where the store does not.
func (w *wire) Nudge() <-chan struct{} { return w.nudge }

// relay carries the store's notices over the wire, when it is whole, until the session is closed or says that it is lost.
func (w *wire) relay() {
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
func (w *wire) hangUp() {
	if w.over.CompareAndSwap(false, true) {
		close(w.done)
	}
}

func forward[T any](w *wire, from <-chan T, to chan<- T) {
	for {
		select {
		case <-w.done:
			return
		case v, ok := <-from:
			for c, is := w.at(now()); is && c.kind != slow && !w.over.Load(); c, is = w.at(now()) {
				pause(c.to.sub(now()), w.done)
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
