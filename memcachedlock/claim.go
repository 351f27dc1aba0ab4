package memcachedlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/sessions"
)

// claim is one claim of a session, and the item that is its lock. The session's mutex guards it; but its requests follow each other, each
// call for it being a flight, so what they alone change they may read without.
type claim struct {
	driver.Claim
	sessions.Departure
	s      *session
	key    string
	server *memcache.Client

	held   bool
	passed bool  // a renewal began while it was let in, and may have passed over it
	lost   error // ErrGone or ErrBroken, for good
	unsure bool  // a request that may have taken the lock had no answer
	holder *driver.Holder
	fence  uint64
	at     memcache.Version // of its item, as far as is known; the zero one: not at all
}

// rounds is how often one call asks before it gives up: each time something else had come in between.
const rounds = 8

// errRestless: an item changes each time before what was asked about it arrives.
var errRestless = fmt.Errorf("the item changes all the time")

// set changes what others look at.
func (c *claim) set(change func()) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	change()
}

// change does something to the claim's item, by its version; nothing where do returns nil. Where the version is not known, or another one by
// now, it looks first. It reports whether there was such an item.
//
// A claim that enters adds the item where there is none: at once, or where it waits after a look, since most looks find one, and what adds
// nothing needs no memory.
func (c *claim) change(ctx context.Context, enters, waits bool, do func() *memcache.Request) (there bool, err error) {
	add := enters && !waits
	for range rounds {
		var what *memcache.Request
		adds := add && c.at.CAS == 0
		c.set(func() {
			switch {
			case adds:
				what = memcache.Add(c.key, c.value(), c.s.life())
			case c.at.CAS != 0:
				what = do()
			default:
				what = memcache.Get(c.key)
			}
		})
		if what == nil {
			return true, nil
		}
		r, err := c.server.Do(ctx, what)
		if err != nil {
			c.set(func() { c.unsure = c.unsure || adds && !errors.Is(err, driver.ErrNotSent) })
			return false, err
		}
		switch r.Status {
		case memcache.Done:
			if c.at = r.Version; adds { // without a token it is left until its time is over
				c.fence, err = token(r)
			}
			return err == nil, err
		case memcache.Value:
			it, err := read(r)
			switch {
			case err != nil:
				return false, err
			case !it.of(c):
				c.set(func() { c.holder = it.show() })
				return false, nil
			}
			c.set(func() {
				if c.at, c.fence = it.Version, it.Fence; it.Broken {
					c.lost = driver.ErrBroken
				}
			})
		default:
			add = enters && r.Status != memcache.NotStored // else who is there is looked at
			if c.at = (memcache.Version{}); !enters && r.Status != memcache.Changed {
				return false, nil
			}
		}
	}
	if enters {
		return false, nil // to others, who come and go
	}
	return false, errRestless
}

// hold renews the item, also where nobody knows yet whether it is there, or enters. One that is broken goes when its time is over.
func (c *claim) hold(ctx context.Context, enters, waits bool) error {
	started := time.Now()
	there, err := c.change(ctx, enters, waits, func() *memcache.Request {
		if c.lost != nil {
			return nil
		}
		return memcache.Swap(c.key, c.value(), c.s.life(), c.at)
	})
	if err != nil {
		return err
	}
	c.set(func() {
		switch c.unsure = false; {
		case there:
			c.passed = c.passed || !c.held && c.s.began.After(started)
			c.held = true
		case c.held:
			c.lost = driver.ErrGone
		}
	})
	return nil
}

// ask renews the claim where it is held, and else takes its lock if that is free.
func (c *claim) ask(ctx context.Context, waits bool) error {
	var leaving, done, enters bool
	c.set(func() {
		leaving, done, enters = c.Leaving || c.s.closed, c.lost != nil || c.held && waits, !c.held
	})
	switch {
	case leaving:
		return fmt.Errorf("%w: the claim is being released", driver.ErrNotSent)
	case done:
		return nil
	}
	return c.hold(ctx, enters, waits)
}

// leave deletes the item, once. The request stands behind whatever was sent for the claim, unless the connection has ended since: a server
// that was stopped may carry that out later. So where one had no answer the item is deleted once more when its time is over.
func (c *claim) leave(ctx context.Context) error {
	late := c.unsure
	was, err := c.change(ctx, false, false, func() *memcache.Request { return memcache.Delete(c.key, c.at) })
	if err != nil {
		return fmt.Errorf("memcachedlock: release %q: %w", c.Name, err)
	}
	c.set(func() {
		if !c.Left {
			c.Left, c.Was = true, was && c.lost == nil
		}
		c.unsure = false
		c.s.claims.Forget(c.ID, c)
	})
	if late {
		time.AfterFunc(c.server.Timeout, func() { _ = c.leave(context.Background()) })
	}
	return nil
}
