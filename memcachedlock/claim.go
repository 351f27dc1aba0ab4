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
	lost   error // ErrGone or ErrBroken, for good
	unsure bool  // a request that may have taken the lock had no answer
	holder *driver.Holder
	fence  uint64
	cas    uint64 // of its item, as far as is known; 0: not at all
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

// has notes that the claim has an item of this version.
func (c *claim) has(cas, fence uint64) {
	c.set(func() { c.held, c.unsure, c.cas, c.fence = true, false, cas, fence })
}

// request writes the item, or deletes it, by its version; nil where nothing is to be done.
type request func(c *claim) memcache.Request

// change does something to the claim's item. Where the version is not known, or another one by now, it looks first. It reports whether
// there was such an item.
func (c *claim) change(ctx context.Context, do request) (there bool, err error) {
	for range rounds {
		what := memcache.Get(c.key)
		c.set(func() {
			if c.cas != 0 {
				what = do(c)
			}
		})
		if what == nil {
			return true, nil
		}
		r, err := c.server.Do(ctx, what)
		if err != nil {
			return false, err
		}
		switch r.Status {
		case memcache.Done:
			c.cas = r.CAS // 0 where it is deleted
			return true, nil
		case memcache.Changed:
			c.cas = 0
		case memcache.Value:
			it, err := read(r)
			if err != nil || !it.of(c) {
				return false, err
			}
			c.set(func() {
				c.cas, c.fence = it.CAS, it.Fence
				if it.Broken {
					c.lost = driver.ErrBroken
				}
			})
		default:
			return false, nil
		}
	}
	return false, errRestless
}

// renew writes the item anew, also where nobody knows yet whether it is there. One that is broken goes when its time is over.
func (c *claim) renew(ctx context.Context) error {
	there, err := c.change(ctx, func(c *claim) memcache.Request {
		if c.lost != nil {
			return nil
		}
		return memcache.Swap(c.key, c.value(), c.s.life(), c.cas)
	})
	if err != nil {
		return err
	}
	c.set(func() {
		switch c.unsure = false; {
		case there:
			c.held = true
		case c.held:
			c.lost = driver.ErrGone
		}
	})
	return nil
}

// enter adds the item where there is none. Who waits looks first: most looks find one, and one that adds nothing needs no memory.
func (c *claim) enter(ctx context.Context, waits bool) error {
	for tried := range rounds {
		if tried > 0 || !waits {
			r, err := c.server.Do(ctx, memcache.Add(c.key, c.value(), c.s.life()))
			if err != nil {
				c.set(func() { c.unsure = c.unsure || !errors.Is(err, driver.ErrNotSent) })
				return err
			}
			if r.Status == memcache.Done {
				fence, err := token(r)
				if err == nil {
					c.has(r.CAS, fence)
				}
				return err // without a token it is left until its time is over
			}
		}
		it, err := look(ctx, c.server, c.key)
		switch {
		case err != nil:
			return err
		case it == nil: // who was there has left
		case it.of(c): // an answer was lost
			c.has(it.CAS, it.Fence)
			return c.renew(ctx)
		default:
			c.set(func() { c.holder, c.unsure = it.show(), false })
			return nil
		}
	}
	return nil // to others, who come and go
}

// ask renews the claim where it is held, and else takes its lock if that is free.
func (c *claim) ask(ctx context.Context, waits bool) error {
	var leaving, done bool
	c.set(func() { leaving, done = c.Leaving || c.s.closed, c.lost != nil || c.held && waits })
	switch {
	case leaving:
		return fmt.Errorf("%w: the claim is being released", driver.ErrNotSent)
	case done:
		return nil
	case c.held:
		return c.renew(ctx)
	}
	return c.enter(ctx, waits)
}

// leave deletes the item, once. The request stands behind whatever was sent for the claim, unless the connection has ended since: a server
// that was stopped may carry that out later. So where one had no answer the item is deleted once more when its time is over.
func (c *claim) leave(ctx context.Context) error {
	late := c.unsure
	was, err := c.change(ctx, func(c *claim) memcache.Request { return memcache.Delete(c.key, c.cas) })
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
