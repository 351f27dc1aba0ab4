package memcachedlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/sessions"
)

// common is what the claims of a session share.
type common struct {
	owner   []byte
	seconds int // of the TTL

	mu     sync.Mutex // guards what is below, and claims
	closed bool
	began  time.Time // the last renewal
}

// life is for how many seconds an item is written.
func (s *common) life() int { return s.seconds + 1 }

// claim is one claim of a session, and the item that is its lock. The session's mutex guards it;
// but its requests follow each other, each call for it being a flight, so what only they change
// they read without the mutex.
type claim struct {
	driver.Claim
	sessions.Departure
	s      *common
	key    string
	server *memcache.Client

	held   bool
	passed bool  // a renewal began while it was being granted, and may have passed over it
	lost   error // ErrGone or ErrBroken, for good
	unsure bool  // a request that may have taken the lock had no answer
	holder *driver.Holder
	fence  uint64
	at     memcache.Version // of its item, as far as is known; zero where it is not
}

// value returns the value of the claim's item.
func (c *claim) value() []byte {
	return value{Name: c.Name, ID: c.ID, Owner: c.s.owner, Note: []byte(c.Note), Passes: c.Passes, Fence: c.fence}.encode()
}

// rounds is how many requests one call makes, at most: each had found another version than the one
// before.
const rounds = 8

// errRestless: an item changes each time before the request arrives.
var errRestless = fmt.Errorf("the item changes all the time")

// set makes a change of the claim with the mutex held.
func (c *claim) set(change func()) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	change()
}

// change sends the request that do returns, which is about the claim's item and names its version;
// nothing if do returns nil. Where the version is not known, or has changed, it reads the item
// first. It reports whether there was such an item.
//
// If enters is true it adds the item where there is none: at once, or if waits is true after a
// look, since most looks find an item, and a look needs no memory in the server.
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
			if c.at = r.Version; adds { // without a token it stays until it expires
				c.fence, err = token(r)
			}
			return err == nil, err
		case memcache.Value:
			it, err := read(r)
			switch {
			case err != nil:
				return false, err
			case !it.of(c.Claim):
				c.set(func() { c.holder = it.show() })
				return false, nil
			}
			c.set(func() {
				if c.at, c.fence = it.Version, it.Fence; it.Broken {
					c.lost = driver.ErrBroken
				}
			})
		default:
			add = enters && r.Status != memcache.NotStored // then the item that is there is read
			if c.at = (memcache.Version{}); !enters && r.Status != memcache.Changed {
				return false, nil
			}
		}
	}
	if enters {
		return false, nil // others hold it in turn
	}
	return false, errRestless
}

// hold renews the item, or adds it if enters is true. An item that is marked as broken is left to
// expire.
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

// ask renews the claim if it is held, and takes its lock otherwise if that is free.
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

// passedOver reports whether the claim is held and a renewal may have passed over it.
func (c *claim) passedOver() bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.held && c.passed
}

// leave deletes the item, once. The request is carried out after all that were sent for the claim
// before, unless the connection has ended since: a server that was stopped may carry those out
// later. So where one had no answer the item is deleted once more when the time for that is over.
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
	})
	if late {
		time.AfterFunc(c.server.Timeout, func() { _ = c.leave(context.Background()) })
	}
	return nil
}
