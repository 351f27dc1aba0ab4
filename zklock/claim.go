package zklock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/internal/zk"
)

type state uint8

const (
	absent  state = iota // nothing is known to stand in line
	waiting              // in line
	held                 // the first of it
	broken               // its node was written to, as by an operator: see Driver.Break
	gone                 // its node is no more
)

// claim is a place in line, or one that was asked for.
type claim struct {
	sessions.Departure
	driver.Claim
	top    string // the lock's node
	dir    string // the node below which it stands in line: of a semaphore the part for who waits
	leases string // of a semaphore the part for who holds, or ""
	prefix string // begins the names of its own nodes
	tag    string // goes on in the name of the one in line
	wake   sessions.Signal

	// The session's mutex guards the rest.
	state state
	asked *zk.Call   // the request that puts it into line, or has it hold what it waited for, as long as its outcome is not known
	makes []*zk.Call // the parts of that which make nodes
	nodes []string   // its node in line, or its leases, once they are known
	czxid int64      // the change that made the node
	own   bool       // a change of its nodes is told
	ahead []string   // the nodes whose change it waits for
	bar   string     // the node of the first claim that alone kept it from holding when it last looked, or ""
	looks bool       // who is ahead may have changed
}

func (s *session) newClaim(c driver.Claim) *claim {
	n := &claim{Claim: c, top: s.d.dir(c.Name), prefix: prefixOf(c.ID), wake: sessions.NewSignal()}
	n.dir, n.tag = n.top, curatorTags[c.Kind]
	if s.d.options.Layout == Kazoo {
		n.prefix, n.tag = hashOf(c.ID), kazooTags[c.Kind]
	}
	if c.Kind == driver.Permit || c.Kind == driver.Mutex && s.d.options.SemaphoreMutex {
		n.dir, n.leases = n.top+waitingPart, n.top+leasesPart
		n.tag = fmt.Sprintf("%d-%d-lock-", c.Weight, c.Limit)
		if c.Kind == driver.Mutex {
			n.Weight, n.Limit, n.tag = 1, 1, mutexTag+"lock-"
		}
	}
	return n
}

// hashOf is what nodes' names have of a claim's ID, of which the public id is the beginning: who reads it can release nothing.
func hashOf(id string) string {
	sum := sha256.Sum256([]byte("interlock:" + id))
	return hex.EncodeToString(sum[:16])
}

// answer is what Acquire and Wait say of a claim. It reports false while that is not known, or it waits.
func (c *claim) answer() (driver.Grant, bool, error) {
	switch c.state {
	case held:
		g := driver.Grant{Held: true}
		if c.Kind.Exclusive() {
			g.Fence = tokenOf(c.czxid)
		}
		return g, true, nil
	case broken:
		return driver.Grant{}, true, driver.ErrBroken
	case gone:
		return driver.Grant{}, true, driver.ErrGone
	}
	return driver.Grant{}, false, nil
}

// loss is the claim as one that is lost.
func (c *claim) loss() driver.Loss {
	_, _, why := c.answer()
	return driver.Loss{ID: c.ID, Err: why}
}

// creation is the request for its node in line.
func (s *session) creation(c *claim) *zk.Call {
	return zk.Create(c.dir+"/"+c.prefix+c.tag, encode(s.owner, c.Claim), zk.EphemeralSequential, s.d.acl)
}

// stands takes in that the claim has these nodes. The session's mutex is held.
func (s *session) stands(c *claim, nodes []string, czxid int64) {
	s.disown(c)
	c.nodes, c.czxid = nodes, czxid
	if c.state == absent {
		c.state = waiting
	}
}

// read takes in what a read of one of the claim's own nodes says. The session's mutex is held.
func (s *session) read(c *claim, path string, get *zk.Call) {
	switch {
	case get.Err == nil && get.Stat.Owner == s.number:
		if path == c.nodes[0] {
			c.czxid = get.Stat.Czxid
		}
		if get.Stat.Version != 0 {
			s.ends(c, broken)
		}
	case get.Err == nil || get.Code == zk.NoNode:
		s.ends(c, gone)
	}
}

// ends takes in that the claim was lost. The session's mutex is held.
func (s *session) ends(c *claim, how state) {
	if c.state >= broken {
		return
	}
	c.state = how
	c.wake.Give()
	if !c.Leaving && !s.over() {
		select {
		case s.losses <- c.loss():
		default: // the next renewal says it
		}
	}
}

// forget drops a claim that stands in line no more. The session's mutex is held.
func (s *session) forget(c *claim) {
	s.claims.Forget(c.ID, c)
	s.disown(c)
	s.unwatch(c)
}

// disown has what is told of the claim's nodes mean nothing any more. The session's mutex is held.
func (s *session) disown(c *claim) {
	for _, node := range c.nodes {
		if s.own[node] == c {
			delete(s.own, node)
		}
	}
	c.own = false
}

// watch has the claim hear of changes of nodes. It is called before the server is asked to tell them. The session's mutex is held.
func (s *session) watch(c *claim, nodes ...string) {
	s.unwatch(c)
	c.ahead = nodes
	for _, node := range nodes {
		s.ahead[node] = append(s.ahead[node], c)
	}
}

func (s *session) unwatch(c *claim) {
	for _, node := range c.ahead {
		behind := slices.DeleteFunc(s.ahead[node], func(other *claim) bool { return other == c })
		if s.ahead[node] = behind; len(behind) == 0 {
			delete(s.ahead, node)
		}
	}
	c.ahead = nil
}
