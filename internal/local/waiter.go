package local

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/lazyctx"
)

// Mode is what must agree for two goroutines to stand for each other.
type Mode struct {
	Kind          driver.Kind
	Weight, Limit int
	Note          string
}

// Request is what a goroutine wants.
type Request struct {
	Name string
	Mode
	Grace            time.Duration
	AnyGrace         bool // Grace is a default: less of it will do, where the store cannot give as much
	MinHold, MaxHold time.Duration
	Alone            bool             // with a claim of its own, which is not passed on to it
	Try              bool             // it does not wait for others
	Bound            <-chan time.Time // fires when it has waited for long enough; nil where only its context says so
	Wait             time.Duration    // how long that is
}

// waiter is one goroutine that wants the name.
type waiter struct {
	Request
	since clock.Instant

	ready chan struct{} // closed when hold or err is set
	hold  *Hold
	err   error

	acquires    bool             // it sends the claim itself
	attending   *lazyctx.Context // of its awaiting a claim; nil where it does not
	queued      bool             // in the line's queue
	next, prior *waiter
	own         Hold // what hold points to, made together with its waiter
}

func (w *waiter) fail(err error) {
	w.err = err
	w.decided()
}

func (w *waiter) decided() {
	if w.attending != nil {
		w.attending.End(context.Canceled)
	}
	close(w.ready)
}

// queue is the waiters of a line in order of arrival, each linked to its neighbours: to stand in it
// costs no memory.
type queue struct {
	first, last *waiter
	length      int
	tries       int // of these, the ones who do not wait for others
}

func (q *queue) push(w *waiter) {
	w.queued, w.prior = true, q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.length++
	if w.Try {
		q.tries++
	}
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
	w.queued, w.next, w.prior = false, nil, nil
	q.length--
	if w.Try {
		q.tries--
	}
}
