package etcdlock

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/internal/sessions"
)

// state is what this process knows of its sessions and claims. Requests and watches change it; its
// mutex also guards what leases, claims and views contain, and is not held during a request.
type state struct {
	mu     sync.Mutex
	leases map[string]*lease // by the ID of the session
	claims map[string]*claim // by ID
}

// lease is a session.
type lease struct {
	id     clientv3.LeaseID
	key    string // the session's own, which begins those of its marks
	person string // its value
	fresh  time.Duration
	nudge  sessions.Signal
	over   context.CancelFunc // ends the watch of its marks

	slots   map[string]*claim // by key: one that is in use, or may be by a request whose outcome is unknown
	epoch   int64             // the version of the session's key: see transaction
	renewed time.Time         // when the last renewal that was answered was sent
}

// claim is a claim and its key.
type claim struct {
	driver.Claim
	lease   *lease
	key     string
	value   string // of the key, as it was put
	create  int64  // the key's create revision; 0 as long as the key is not known to exist
	held    bool   // and not broken, as far as is known
	late    int    // how many requests that put the key had no answer, and may still arrive
	retired bool   // a request that deletes the key had no answer, and may still arrive
	first   entry  // the first of the line when the claim was last seen not to hold

	deep    bool                 // so many are before it that it watches only the last of them
	before  rowline.Subscription // that watch, or nil
	unwatch context.CancelFunc   // ends it
}

// mark is the key by which drivers of this namespace say that the claim is broken.
func (c *claim) mark() string { return c.lease.key + "/" + driver.PublicID(c.ID) }

// lease returns that of a session, or nil.
func (s *state) lease(session string) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[session]
}

// remove forgets a session and its claims. It returns the lease, or nil.
func (s *state) remove(session string) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[session]
	if l == nil {
		return nil
	}
	delete(s.leases, session)
	for _, c := range l.slots {
		s.drop(c)
	}
	return l
}

// add returns the claim of an ID. A new one gets the first key of its session under the prefix that
// is not in use. The mutex is held, here and below.
func (s *state) add(l *lease, dc driver.Claim, prefix string) *claim {
	c := s.claims[dc.ID]
	if c == nil {
		c = &claim{Claim: dc, lease: l, value: encode(valueOf(dc))}
		for n := 0; c.key == "" || l.slots[c.key] != nil; n++ {
			c.key = prefix + slot(l.id, n)
		}
		s.claims[dc.ID], l.slots[c.key] = c, c
	}
	return c
}

// drop forgets a claim.
func (s *state) drop(c *claim) {
	delete(s.claims, c.ID)
	delete(c.lease.slots, c.key)
	if c.retired {
		c.lease.slots[c.key] = c
	}
	c.stopWatch()
}

// stopWatch ends the watch of the claim before this one.
func (c *claim) stopWatch() {
	if c.before != nil {
		c.unwatch()
		c.before = nil
	}
}

// update returns how the claim stands in its line, if its key was created at that revision, and
// records it.
func (c *claim) update(n *line, create int64) (a rowline.Answer, err error) {
	i := n.find(c.key)
	if i < 0 || n.entries[i].create != create {
		return rowline.Answer{State: rowline.Gone}, nil
	}
	token, err := fence(c.Kind, create)
	if err != nil { // also of one that waits: it could never be granted
		return a, err
	}
	switch {
	case n.entries[i].Broken:
		a.State = rowline.Broken
	case n.holds(i):
		a.State, a.Fence = rowline.Held, token
	default:
		a = c.deny(n)
		a.State = rowline.Waiting
	}
	c.create, c.held = create, a.State == rowline.Held
	return a, nil
}

// deny returns the answer to a claim that does not hold, and records who is first in the line.
func (c *claim) deny(n *line) (a rowline.Answer) {
	a.Left = -1
	if len(n.entries) > 0 {
		h := n.holder(0)
		a.Holder, c.first = &h, n.entries[0]
	}
	return a
}
