package zklock

import (
	"crypto/sha256"

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
	dir    string // the lock's node
	prefix string // begins its own node's name
	wake   sessions.Signal

	// The session's mutex guards the rest.
	state  state
	create *zk.Call // the request that puts it into line, as long as its outcome is not known, or it stands there
	node   string   // its node, once that is known
	czxid  int64    // the change that made it
	own    bool     // a change of its node is told
	ahead  string   // the node whose end it waits for
	look   bool     // who is ahead may have changed
}

func (s *session) newClaim(c driver.Claim) *claim {
	return &claim{Claim: c, dir: s.d.dir(c.Name), prefix: prefixOf(c.ID), wake: sessions.NewSignal()}
}

func hashOf(id string) [sha256.Size]byte { return sha256.Sum256([]byte("interlock:" + id)) }

// answer is what Acquire and Wait say of a claim. It reports false while that is not known, or it waits.
func (c *claim) answer() (driver.Grant, bool, error) {
	switch c.state {
	case held:
		return driver.Grant{Held: true, Fence: tokenOf(c.czxid)}, true, nil
	case broken:
		return driver.Grant{}, true, driver.ErrBroken
	case gone:
		return driver.Grant{}, true, driver.ErrGone
	}
	return driver.Grant{}, false, nil
}

// stands takes in that the claim has its node. The session's mutex is held.
func (s *session) stands(c *claim, node string, czxid int64) {
	c.node, c.czxid = node, czxid
	if c.state == absent {
		c.state = waiting
	}
}

// read takes in what a read of the claim's own node says. The session's mutex is held.
func (s *session) read(c *claim, get *zk.Call) {
	switch {
	case get.Err == nil && get.Stat.Owner == s.number:
		c.czxid = get.Stat.Czxid
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
		case s.losses <- c.ID:
		default: // the next renewal says it
		}
	}
}

// forget drops a claim that stands in line no more. The session's mutex is held.
func (s *session) forget(c *claim) {
	s.claims.Forget(c.ID, c)
	if s.own[c.node] == c {
		delete(s.own, c.node)
	}
	s.unwatch(c)
}

// watch has the claim hear of the end of a node. It is called before the server is asked to tell it. The session's mutex is held.
func (s *session) watch(c *claim, node string) {
	s.unwatch(c)
	c.ahead = node
	s.ahead[node] = append(s.ahead[node], c)
}

func (s *session) unwatch(c *claim) {
	behind := s.ahead[c.ahead]
	for i, other := range behind {
		if other == c {
			s.ahead[c.ahead] = append(behind[:i], behind[i+1:]...)
			break
		}
	}
	if len(s.ahead[c.ahead]) == 0 {
		delete(s.ahead, c.ahead)
	}
	c.ahead = ""
}
