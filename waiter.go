package interlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
)

// shape is what must agree for two goroutines to stand for each other.
type shape struct {
	kind          driver.Kind
	weight, limit int
	note          string
}

// waiter is one goroutine that wants the name.
type waiter struct {
	shape
	settings *settings
	grace    time.Duration // of the settings, or less of a default that the store cannot give
	since    clock.Instant
	try      bool
	bound    <-chan time.Time // fires when it has waited for long enough; nil where only its context says so

	ready chan *claim // closed when hold or err is set; before that it yields the standing claim, to be awaited by w itself
	hold  *hold
	err   error

	interrupt context.CancelFunc // of its awaiting a claim

	stands      bool // in the line's queue
	next, prior *waiter
	turn        hold // what hold points to, made together with its waiter
}

func (w *waiter) fail(err error) {
	w.err = err
	if w.interrupt != nil {
		w.interrupt()
	}
	close(w.ready)
}

// told waits until w is told something. decided says that hold or err is set, c is a claim that w is to await; neither
// means that w waits no longer.
func (w *waiter) told(ctx context.Context) (c *claim, decided bool) {
	select {
	case c = <-w.ready: // rather than the end of ctx, where both have come
		return c, c == nil
	default:
	}
	select {
	case c = <-w.ready:
		return c, c == nil
	case <-w.bound:
	case <-ctx.Done():
	}
	return nil, false
}

// refuse returns the claim that w was offered and will not await, or nil.
func (w *waiter) refuse() *claim {
	select {
	case c := <-w.ready:
		return c
	default:
		return nil
	}
}

// offer has w await c itself if it can: what the store says then wakes nobody but w.
func (w *waiter) offer(c *claim) bool {
	if w == nil || w.bound != nil {
		return false
	}
	select {
	case w.ready <- c:
		return true
	default:
		return false
	}
}

// queue is the waiters of a line in order of arrival, each linked to its neighbours: to stand in it costs no memory.
type queue struct {
	first, last *waiter
	length      int
}

func (q *queue) push(w *waiter) {
	w.stands, w.prior = true, q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.length++
}

func (q *queue) remove(w *waiter) {
	if w.prior == nil {
		q.first = w.next
	} else {
		w.prior.next = w.next
	}
	if w.next == nil {
		q.last = w.prior
	} else {
		w.next.prior = w.prior
	}
	w.stands, w.next, w.prior = false, nil, nil
	q.length--
}
