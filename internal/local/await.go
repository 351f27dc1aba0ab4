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

// attend is await in the goroutine of w, which has asked for c itself: what the store says then
// wakes nobody else. It returns when w is decided or ctx ends, too; then c goes on in a goroutine
// of its own, for others.
func (p *Pool) attend(ctx context.Context, w *waiter, c *claim) {
	own := lazyctx.Under(ctx)
	defer own.Finish()
	if p.attends(own, w, c) {
		p.await(own, c) //nolint:contextcheck // it is made of ctx
	}
}

func (p *Pool) attends(own *lazyctx.Context, w *waiter, c *claim) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case c.line.standing != c: // given up before anybody came to await it
		c.discard()
		p.tidy(c.line)
		return false
	case !w.stands:
		go p.await(c.background(), c)
		return false
	}
	w.attending = own
	c.ctx, c.cancel = own, func() { own.End(context.Canceled) }
	return true
}

// await waits in the store's line for a claim that was queued, until it is granted or given up, or
// ctx ends.
func (p *Pool) await(ctx context.Context, c *claim) {
	failures, early := 0, 0
	for {
		asked := p.Clock.Now()
		g, err := c.session.Driver.Wait(ctx, c.Claim)
		if p.Clock.Look().Sub(asked) > time.Millisecond {
			early = 0
		}
		then, valid, err := p.waited(c, ctx.Err() != nil, g, err)
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
				keepalive.Rest(ctx, keepalive.FirstPause)
			}
		}
		if err != nil {
			failures++
			keepalive.Rest(ctx, keepalive.Backoff(failures))
		}
	}
}

// What comes after a Wait.
const (
	waitedOut   = iota // nothing: the wait is over
	waitOn             // another Wait
	waitRenewed        // another Wait, once the session was renewed
)

// waited acts on what a Wait for the claim returned; over says that who awaited it does no longer.
// A session that is to be renewed first is valid for so long.
func (p *Pool) waited(c *claim, over bool, g driver.Grant, err error) (then int, valid time.Duration, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := c.line
	if err == nil {
		err = c.gone // what the store said by itself is younger, here, too
	}
	if err == nil && g.Held {
		c.fence = g.Fence
		l.admit(c.session)
	}
	now := p.Clock.Now()
	switch {
	case l.standing != c: // given up
		c.discard()
		p.tidy(l)
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
		go p.await(c.background(), c)
	case err != nil:
		p.silence.Failed(now, err)
		return waitOn, 0, err
	case !g.Held:
		if g.Holder != nil {
			c.inWay = g.Holder
		}
		return waitOn, 0, nil
	case l.tooLate(c, now):
		l.again(c)
	default: // granted long after the last renewal: the lease may be over at the store; renewed, it is known
		return waitRenewed, c.session.Valid, nil
	}
	return waitedOut, 0, nil
}

// again gives the standing claim back; the line stands again at its end in the store, where
// somebody waits.
func (l *line) again(c *claim) {
	l.standing = nil
	c.stop()
	c.discard()
	l.settle()
}
