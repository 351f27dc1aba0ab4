package interlock

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// mostReports is how many reports may wait for a log or a tracer that blocks.
const mostReports = 256

// reports is what a log or a tracer is still to be told, in order. A goroutine tells it, which is there while there is anything to tell:
// the user's code is called under no mutex, and whatever it does holds up no lease, no renewal and no timer. What does not fit is counted,
// and said where it would have stood.
//
//	report ─▶ queue, of mostReports ─▶ one goroutine tells, one after the other
//	   └─ full: counted ─▶ said before the next that fits, or last of all
type reports struct {
	omitted func(n int) // says how many did not fit

	mu    sync.Mutex // guards the rest; nothing is called under it
	queue []report
	lost  int           // since the last that fitted
	idle  chan struct{} // closed when all is told; nil where nothing is to be
}

type report struct {
	tell func()
	lost int // before it
}

// report has tell called after what was reported before.
func (r *reports) report(tell func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) >= mostReports {
		r.lost++
		return
	}
	r.queue = append(r.queue, report{tell, r.lost})
	r.lost = 0
	if r.idle == nil {
		r.idle = make(chan struct{})
		go r.work()
	}
}

// work tells what is in the queue until it is empty.
func (r *reports) work() {
	for {
		r.mu.Lock()
		var next report
		switch {
		case len(r.queue) > 0:
			next = r.queue[0]
			r.queue[0], r.queue = report{}, r.queue[1:]
		case r.lost > 0:
			next.lost, r.lost = r.lost, 0
		default:
			close(r.idle)
			r.queue, r.idle = nil, nil
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		if next.lost > 0 {
			r.omitted(next.lost)
		}
		if next.tell != nil {
			next.tell()
		}
	}
}

// finish waits until everything is told, and for at most d.
func (r *reports) finish(d time.Duration) {
	r.mu.Lock()
	idle := r.idle
	r.mu.Unlock()
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

// log has the log told, with the time of now.
func (c *Client) log(level slog.Level, what string, args ...any) {
	r := slog.NewRecord(time.Now(), level, what, 0)
	r.Add(args...)
	c.logs.report(func() { c.write(r) })
}

func (c *Client) write(r slog.Record) {
	if h := c.opts.Logger.Handler(); h.Enabled(context.Background(), r.Level) {
		_ = h.Handle(context.Background(), r) // there is nobody else to tell
	}
}

// trace has the tracer told, if there is one.
func (c *Client) trace(tell func(Tracer)) {
	if t := c.opts.Tracer; t != nil {
		c.traces.report(func() { tell(t) })
	}
}

// logsOmitted says that the log blocks, or did, and tracesOmitted that the tracer does.
func (c *Client) logsOmitted(n int) {
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "interlock: the log blocked, and was not told of everything", 0)
	r.Add("omitted", n)
	c.write(r)
}

func (c *Client) tracesOmitted(n int) {
	c.log(slog.LevelWarn, "interlock: the tracer blocked, and was not told of everything", "omitted", n)
}
