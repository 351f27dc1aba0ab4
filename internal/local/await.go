package local

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/keepalive"
	"github.com/interlock-go/interlock/internal/lazyctx"
)

// mayBeEarly is how often in a row a driver's Wait may return within a millisecond with a claim
// that is still waiting.
const mayBeEarly = 16

// awaitBy runs waitRemote in the goroutine of w, which has sent c itself: a grant then wakes no
// other goroutine first. It returns also when w is decided or ctx ends. Then c is awaited by a
// goroutine of its own, for the others.
func (p *Pool) awaitBy(ctx context.Context, w *waiter, c *claim) {
	own := lazyctx.Under(ctx)
	defer own.Finish()
	if p.beginAwait(own, w, c) {
		p.waitRemote(own, c) //nolint:contextcheck // it is made of ctx
	}
}

func (p *Pool) beginAwait(own *lazyctx.Context, w *waiter, c *claim) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case c.line.pending != c: // given up before it was awaited
		c.releaseInBackground()
		p.removeIfIdle(c.line)
		return false
	case !w.queued:
		go p.waitRemote(c.background(), c)
		return false
	}
	w.attending = own
	c.ctx, c.cancel = own, func() { own.End(context.Canceled) }
	return true
}

// waitRemote calls the driver's Wait for a claim that stands in the store's line, until it is
// granted or given up, or ctx ends. A Wait may return early, or with an error that says nothing of
// the claim: it is called again, after a pause where that goes on. A grant that comes long after
// the last renewal may be over at the store: the session is renewed first, and Wait asked again.
func (p *Pool) waitRemote(ctx context.Context, c *claim) {
	failures, early := 0, 0
	for {
		asked := p.Clock.Now()
		g, err := c.session.Driver.Wait(ctx, c.Claim)
		if p.Clock.NowSynced().Sub(asked) > time.Millisecond {
			early = 0
		}
		then, valid, err := p.onWait(c, ctx.Err() != nil, g, err)
		switch then {
		case waitedOut:
			return
		case waitRenewed:
			bounded := lazyctx.Within(ctx, valid)
			err = c.session.Renew(bounded) //nolint:contextcheck // it is made of ctx
			bounded.Finish()
		case waitOn:
			if err != nil {
				break
			}
			failures = 0
			if early++; early > mayBeEarly { // a driver that does not wait at all must not keep a core busy
				keepalive.Sleep(ctx, keepalive.FirstPause)
			}
		}
		if err != nil {
			failures++
			keepalive.Sleep(ctx, keepalive.Backoff(failures))
		}
	}
}

// What comes after a Wait.
const (
	waitedOut   = iota // nothing: the wait is over
	waitOn             // another Wait
	waitRenewed        // another Wait, once the session was renewed
)

// onWait handles the result of a Wait for c. over says that the context of the goroutine that waits
// has ended. valid is for how long the session is good that is to be renewed first.
func (p *Pool) onWait(c *claim, over bool, g driver.Grant, err error) (then int, valid time.Duration, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := c.line
	if err == nil {
		err = c.gone // what the store said by itself is younger, here, too
	}
	if err == nil && g.Held {
		c.fence = g.Fence
		l.checkGrace(c.session)
	}
	now := p.Clock.Now()
	switch {
	case l.pending != c: // given up
		c.releaseInBackground()
		p.removeIfIdle(l)
	case err == nil && g.Held && c.fresh(l.waiters.first.Grace, now):
		l.grant(c, now)
	case refused(err): // an operator broke it, or the store refuses it
		l.reject(err, c.fits)
		l.again(c)
	case errors.Is(err, driver.ErrGone), errors.Is(err, driver.ErrSessionLost):
		if errors.Is(err, driver.ErrSessionLost) {
			c.session.End(err)
		}
		l.again(c)
	case over: // it stands for others
		c.ctx = nil
		go p.waitRemote(c.background(), c)
	case err != nil:
		p.silence.Failed(now, err)
		return waitOn, 0, err
	case !g.Held:
		if g.Holder != nil {
			c.blocker = g.Holder
		}
		return waitOn, 0, nil
	case l.tooLate(c, now):
		l.again(c)
	default: // granted long after the last renewal: the lease may be over at the store; renewed, it is known
		return waitRenewed, c.session.Valid, nil
	}
	return waitedOut, 0, nil
}

// again gives the pending claim back. Where somebody waits, the line queues again at the end.
func (l *line) again(c *claim) {
	l.pending = nil
	c.stop()
	c.releaseInBackground()
	l.settle()
}
