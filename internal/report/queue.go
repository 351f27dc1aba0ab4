// Package report tells a log or a tracer what happens, from a goroutine of its own.
package report

import (
	"sync"
	"time"
)

// most is how many reports may wait for a log or a tracer that blocks.
const most = 256

// A Queue is what a log or a tracer is still to be told, in order. A goroutine tells it, which is
// there while there is anything to tell: the user's code is called under no mutex, and whatever it
// does holds up no lease, no renewal and no timer. What does not fit is counted, and said where it
// would have stood. It is safe for concurrent use.
//
//	Tell ─▶ queue, of 256 ─▶ one goroutine tells, one after the other
//	   └─ full: counted ─▶ said before the next that fits, or last of all
type Queue struct {
	Omitted func(n int) // says how many did not fit; to be set before the first Tell

	mu    sync.Mutex // guards the rest; nothing is called under it
	queue []report
	lost  int           // since the last that fitted
	idle  chan struct{} // closed when all is told; nil where nothing is to be
}

type report struct {
	tell func()
	lost int // before it
}

// Tell calls tell later, in order.
func (q *Queue) Tell(tell func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) >= most {
		q.lost++
		return
	}
	q.queue = append(q.queue, report{tell, q.lost})
	q.lost = 0
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.work()
	}
}

// work tells what is in the queue until it is empty.
func (q *Queue) work() {
	for {
		q.mu.Lock()
		var next report
		switch {
		case len(q.queue) > 0:
			next = q.queue[0]
			q.queue[0], q.queue = report{}, q.queue[1:]
		case q.lost > 0:
			next.lost, q.lost = q.lost, 0
		default:
			close(q.idle)
			q.queue, q.idle = nil, nil
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		if next.lost > 0 {
			q.Omitted(next.lost)
		}
		if next.tell != nil {
			next.tell()
		}
	}
}

// Finish waits until everything is told, and for at most d.
func (q *Queue) Finish(d time.Duration) {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	}
}
