package connlock

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// rest is how long nobody reads after the last answer, as the next one who asks may come soon; and
// how long who reads does not mind his context, as to watch that costs more than most answers take.
// It may last twice as long.
const rest = 5 * time.Millisecond

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

// tick looks after a connection every now and then, as long as it is used: so no call needs a timer
// of its own. Where nobody has read since the last time it reads; who has read since then is
// interrupted, to mind his context.
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

// read takes in answers until something has happened; without that, until nothing is asked any
// more. The caller is the one who reads.
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

// next hands out the answer that has come. It reports whether e has happened or, without that,
// whether nothing is asked any more.
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
