package connlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/sessions"
)

// Wire is what a [Pipe] asks over: a server's protocol.
type Wire interface {
	// Conn is the connection below. Its deadline for reading interrupts Receive, which then may be called again; where it has none,
	// Receive is called by one goroutine alone.
	Conn() net.Conn

	// Send sends a query behind all that were sent before. It reports whether Receive will tell that it begins. It is called by one
	// goroutine at a time, also while another one is in Receive.
	Send(q Query) (tells bool, err error)

	// Receive returns what comes next.
	Receive() (Event, Reply, error)

	// Bye says that nothing more is asked.
	Bye()
}

// Event is what comes over a [Wire].
type Event uint8

// What may come. All answers come in the order of what was asked; what was said unasked is of no use, or an error.
const (
	Nothing  Event = iota
	Begins         // the first query that has no answer yet is carried out
	Answered       // it has one
)

// Pipe is a connection that is asked in order and answers in order, whoever still waits for an answer. One goroutine at a time reads: whoever
// asks while nobody does, since to be woken by another one costs more than the lock; and where nobody has asked for a while, one that
// notices the end. Who has his answer, or waits no longer, passes the reading on.
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

// rest is how long nobody reads after the last answer, as the next one who asks may come soon; and how long who reads does not mind his
// context, as to watch that costs more than most answers take. It may last twice as long.
const rest = 5 * time.Millisecond

// NewPipe returns a pipe over a wire that nobody else uses. What is not answered within so much time ends it; ended is called at its end.
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

// send sends a query behind all that were sent before. Where it returns true the caller has to read, or to pass that on.
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

// begin has the caller read from now on. p.mu is held.
func (p *Pipe) begin(eager bool) {
	p.reading, p.eager = true, eager
	p.turns++
	if p.limited {
		p.limited = false
		_ = p.wire.Conn().SetReadDeadline(time.Time{})
	}
	if eager && !p.ticking {
		p.ticking = true
		p.clock.Reset(rest)
	}
}

// limit has who reads stop at a time. p.mu is held.
func (p *Pipe) limit(end time.Time) {
	p.limited = true
	_ = p.wire.Conn().SetReadDeadline(end)
}

// tick looks after a connection every now and then, as long as it is used: so no call needs a timer of its own. Where nobody has read since
// the last time it reads; who has read since then is interrupted, to mind his context.
func (p *Pipe) tick() {
	p.mu.Lock()
	switch {
	case p.turns != p.seen:
		p.seen = p.turns
	case !p.reading:
		p.ticking = false
		p.mu.Unlock()
		p.listen()
		return
	case p.eager:
		p.limit(time.Unix(1, 0))
	default:
		p.ticking = false
		p.mu.Unlock()
		return
	}
	p.clock.Reset(rest)
	p.mu.Unlock()
}

// Ask sends a query whose answer nobody waits for here.
func (p *Pipe) Ask(q Query, then func(Reply)) {
	if p.send(q, &request{then: then}) {
		p.pass(nil)
	}
}

// Call sends a query, and returns when then was called with the answer. When ctx ends it returns a [sessions.Underway], and then is called
// all the same. What is not answered in time ends the connection.
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

// Wait sends a query that may last. It is answered as soon as somebody awaits that, or later. It implements half of Conn.
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

// read takes in answers until something has happened; without that, until nothing is asked any more. The caller is the one who reads.
func (p *Pipe) read(e *event) error {
	for {
		event, answer, err := p.wire.Receive()
		switch {
		case err != nil:
			return err
		case event == Begins && p.begun(e), event == Answered && p.next(e, answer):
			return nil
		}
	}
}

// begun takes in that the first request is carried out now. It reports whether e has happened.
func (p *Pipe) begun(e *event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) > 0 {
		p.asked[0].begins.happen()
	}
	return e != nil && e.been
}

// next hands out the answer that has come. It reports whether e has happened or, without that, whether nothing is asked any more.
func (p *Pipe) next(e *event, answer Reply) bool {
	p.mu.Lock()
	if len(p.asked) == 0 {
		p.mu.Unlock()
		return false
	}
	first := p.asked[0]
	p.asked = slices.Delete(p.asked, 0, 1)
	p.mu.Unlock()
	p.tell(first, answer)
	p.mu.Lock()
	defer p.mu.Unlock()
	return e != nil && e.been || e == nil && len(p.asked) == 0
}

// tell hands an answer out.
func (p *Pipe) tell(r *request, answer Reply) {
	r.then(answer)
	p.mu.Lock()
	defer p.mu.Unlock()
	r.begins.happen()
	r.over.happen()
	if r.limit != nil {
		r.limit.Stop()
	}
}

// pass ends the reading of one who is back from it with err.
func (p *Pipe) pass(err error) {
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		p.fail(err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) > 0 && !p.asked[0].lasts {
		p.begin(false)
		go p.watch()
		return
	}
	p.reading = false
	if !p.ticking {
		p.ticking = true
		p.clock.Reset(rest)
	}
}

// watch reads for others.
func (p *Pipe) watch() { p.pass(p.read(nil)) }

// readAlways reads to the end.
func (p *Pipe) readAlways() {
	var err error
	for err == nil {
		err = p.read(nil)
	}
	p.fail(err)
}

// listen reads where nobody does.
func (p *Pipe) listen() {
	p.mu.Lock()
	reads := !p.reading
	if reads {
		p.begin(false)
	}
	p.mu.Unlock()
	if reads {
		p.watch()
	}
}

// fail takes in the end of the connection. Nobody reads from then on.
func (p *Pipe) fail(err error) {
	_ = p.wire.Conn().Close()
	p.mu.Lock()
	p.err = fmt.Errorf("%w: %w", ErrEnded, err)
	asked := p.asked
	p.asked, p.eager = nil, false
	p.mu.Unlock()
	p.ended()
	for _, r := range asked {
		p.tell(r, Reply{Err: p.err})
	}
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
