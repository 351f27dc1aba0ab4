package connlock

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/sessions"
)

// Wire is what a [Pipe] asks over: a server's protocol.
type Wire interface {
	// Conn is the connection below. Its deadline for reading interrupts Receive, which then may be
	// called again; where it has none, Receive is called by one goroutine alone.
	Conn() net.Conn

	// Send sends a query behind all that were sent before. It reports whether Receive will tell that
	// it begins. It is called by one goroutine at a time, also while another one is in Receive.
	Send(q Query) (tells bool, err error)

	// Receive returns what comes next.
	Receive() (Event, Reply, error)

	// Bye says that nothing more is asked.
	Bye()
}

// Event is what comes over a [Wire].
type Event uint8

// What may come. All answers come in the order of what was asked; what was said unasked is of no
// use, or an error.
const (
	Nothing  Event = iota
	Begins         // the first query that has no answer yet is carried out
	Answered       // it has one
)

// Pipe is a connection that is asked in order and answers in order, whoever still waits for an
// answer. One goroutine at a time reads: whoever asks while nobody does, since to be woken by
// another one costs more than the lock; and where nobody has asked for a while, one that notices
// the end. Who has his answer, or waits no longer, passes the reading on.
type Pipe struct {
	wire   Wire
	within time.Duration // what is not answered by then never is: the server has ended the backend
	ended  func()
	clock  *time.Timer // calls tick

	mu      sync.Mutex
	asked   []*request // in order
	wait    *request   // the last Wait
	reading bool
	eager   bool  // and whoever reads does not mind his context
	limited bool  // there was a deadline for reading
	ticking bool  // the clock is on
	turns   int   // how often somebody has begun to read
	seen    int   // by the clock
	err     error // why it has ended
}

// NewPipe returns a pipe over a wire that nobody else uses. What is not answered within so much
// time ends it; ended is called at its end.
func NewPipe(wire Wire, within time.Duration, ended func()) *Pipe {
	p := &Pipe{wire: wire, within: within, ended: ended}
	p.mu.Lock()
	defer p.mu.Unlock()
	if wire.Conn().SetReadDeadline(time.Time{}) != nil { // as of a tunnel through SSH: who reads could not be interrupted
		p.reading = true
		go p.readAlways()
	}
	p.clock = time.AfterFunc(rest, p.tick)
	p.ticking = true
	return p
}

// send sends a query behind all that were sent before. Where it returns true the caller has to
// read, or to pass that on.
func (p *Pipe) send(q Query, r *request) (reads bool) {
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		r.then(Reply{Err: p.err})
		r.begins.happen()
		r.over.happen()
		return false
	}
	p.asked = append(p.asked, r)
	tells, err := p.wire.Send(q)
	if err != nil {
		_ = p.wire.Conn().Close() // who reads tells everybody
	}
	if !tells {
		r.begins.happen()
	}
	if reads = !p.reading; reads {
		p.begin(true)
	}
	p.mu.Unlock()
	return reads
}

// Ask sends a query whose answer nobody waits for here.
func (p *Pipe) Ask(q Query, then func(Reply)) {
	if p.send(q, &request{then: then}) {
		p.pass(nil)
	}
}

// Call sends a query, and returns when then was called with the answer. When ctx ends it returns a
// [sessions.Underway], and then is called all the same. What is not answered in time ends the
// connection.
func (p *Pipe) Call(ctx context.Context, q Query, then func(Reply)) error {
	r := &request{then: then}
	if !p.send(q, r) {
		p.bound(r)
		return p.late(r, p.hear(ctx, p.told(&r.over)))
	}
	if err := p.read(&r.over); !errors.Is(err, os.ErrDeadlineExceeded) {
		p.pass(err)
		return nil
	}
	p.bound(r)
	p.mu.Lock()
	p.begin(false)
	p.mu.Unlock()
	return p.late(r, p.readOn(ctx, &r.over))
}

// Wait sends a query that may last. It is answered as soon as somebody awaits that, or later. It
// implements half of Conn.
func (p *Pipe) Wait(q Query, then func(Reply)) {
	p.wait = &request{lasts: true, then: then}
	if p.send(q, p.wait) {
		p.pass(nil)
	}
}

// Begins implements Conn.
func (p *Pipe) Begins(ctx context.Context) error { return p.await(ctx, &p.wait.begins) }

// Await implements Conn.
func (p *Pipe) Await(ctx context.Context) error { return p.await(ctx, &p.wait.over) }

// late says of a request whose caller goes when it is answered.
func (p *Pipe) late(r *request, why error) error {
	if why == nil {
		return nil
	}
	return &sessions.Underway{Cause: why, Over: p.told(&r.over)}
}

// await returns when something has happened to a request, or ctx has ended.
func (p *Pipe) await(ctx context.Context, e *event) error {
	p.mu.Lock()
	been, reads := e.been, !e.been && !p.reading
	if reads {
		p.begin(false)
	}
	p.mu.Unlock()
	switch {
	case been:
		return nil
	case reads:
		return p.readOn(ctx, e)
	}
	return p.hear(ctx, p.told(e))
}

// hear waits while somebody else reads.
func (p *Pipe) hear(ctx context.Context, told <-chan struct{}) error {
	var late <-chan time.Time
	if end, ok := ctx.Deadline(); ok { // of a context without a timer, perhaps
		timer := time.NewTimer(time.Until(end))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-told:
		return nil
	case <-ctx.Done():
	case <-late:
	}
	return cause(ctx)
}

// readOn reads until something has happened, or ctx has ended.
func (p *Pipe) readOn(ctx context.Context, e *event) error {
	stopAt := func(end time.Time) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.limit(end)
	}
	if end, ok := ctx.Deadline(); ok {
		stopAt(end)
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		stopAt(time.Unix(1, 0))
		close(woken)
	})
	err := p.read(e)
	if !stop() {
		<-woken // the next one who reads shall not find the deadline that it sets
	}
	p.pass(err)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return cause(ctx)
	}
	return nil
}

// Fetch is Call for an answer that is of use only to who waits for it.
func (p *Pipe) Fetch(ctx context.Context, q Query) (string, error) {
	answer := make(chan Reply, 1)
	if err := p.Call(ctx, q, func(r Reply) { answer <- r }); err != nil {
		return "", err
	}
	r := <-answer
	return r.Field, r.Err
}

// cause is why who waits goes.
func cause(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.DeadlineExceeded
}

// bound has a request that is not answered in time end the connection.
func (p *Pipe) bound(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !r.over.been {
		r.limit = time.AfterFunc(p.within, p.Close)
	}
}

// told returns what is closed when something has happened.
func (p *Pipe) told(e *event) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return e.tell()
}

// Close implements Conn.
func (p *Pipe) Close() {
	_ = p.wire.Conn().SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	p.mu.Lock()
	p.wire.Bye()
	p.mu.Unlock()
	_ = p.wire.Conn().Close()
	go p.listen() // to the end, if nobody does
}
