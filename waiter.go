package interlock

import (
	"container/list"

	"github.com/interlock-go/interlock/driver"
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
	since    instant
	try      bool

	ready chan struct{} // closed when hold or err is set
	hold  *hold
	err   error
	place *list.Element // in line.waiters, while it waits
}

func (w *waiter) fail(err error) {
	w.err = err
	close(w.ready)
}
