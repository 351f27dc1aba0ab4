package interlock

import "github.com/interlock-go/interlock/driver"

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
	since    instant
	try      bool

	ready chan struct{} // closed when hold or err is set
	hold  *hold
	err   error

	stands      bool // in the line's queue
	next, prior *waiter
	turn        hold // what hold points to, made together with its waiter
}

func (w *waiter) fail(err error) {
	w.err = err
	close(w.ready)
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
