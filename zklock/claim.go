package zklock

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/internal/zk"
)

// state is how a claim stands. It only moves down the list, but that a claim which is taken out of
// line again is absent.
type state uint8

const (
	absent  state = iota // it is not known to be in line
	waiting              // in line
	held
	broken // its node was written to, as by an operator: see Driver.Break
	gone   // its node is no more
)

// claim is a place in line, or one that was asked for.
type claim struct {
	sessions.Departure
	driver.Claim
	top    string // the lock's node
	dir    string // the node below which it stands in line: of a semaphore the part for claims that wait
	leases string // of a semaphore the part for claims that are held, or ""
	prefix string // begins the names of its own nodes
	tag    string // follows in the name of the node in line
	wake   sessions.Signal

	// The session's mutex guards the rest.
	state   state
	asked   *zk.Call   // the request that gives it its nodes, as long as its outcome is not known
	makes   []*zk.Call // the parts of that which make nodes
	nodes   []string   // its node in line, or its leases, once they are known
	czxid   int64      // the change that made the first of them, or 0 if it is not known
	watched bool       // the servers tell the next change of its nodes: see watches
	ahead   []string   // the nodes whose change it waits for
	blocker string     // the node of the first claim that alone kept it from being held when the line was last read, or ""
	stale   bool       // the line may have changed since it was read
}

func newClaim(e *ensemble, c driver.Claim) *claim {
	n := &claim{Claim: c, top: e.dir(c.Name), prefix: prefixOf(c.ID), wake: sessions.NewSignal()}
	n.dir, n.tag = n.top, curatorTags[c.Kind]
	if e.options.Layout == Kazoo {
		n.prefix, n.tag = hashOf(c.ID), kazooTags[c.Kind]
	}
	if c.Kind == driver.Permit || c.Kind == driver.Mutex && e.options.SemaphoreMutex {
		n.dir, n.leases = n.top+waitingPart, n.top+leasesPart
		n.tag = fmt.Sprintf("%d-%d-lock-", c.Weight, c.Limit)
		if c.Kind == driver.Mutex {
			n.Weight, n.Limit, n.tag = 1, 1, mutexTag+"lock-"
		}
	}
	return n
}

// answer returns what Acquire and Wait answer, and whether that is final: it is not for a claim
// that waits, or of which nothing is known.
func (c *claim) answer() (g driver.Grant, final bool, err error) {
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

// loss returns the loss of the claim as it is reported.
func (c *claim) loss() driver.Loss {
	_, _, why := c.answer()
	return driver.Loss{ID: c.ID, Err: why}
}

// readLine returns the requests that read the claim's line.
func (c *claim) readLine() []*zk.Call {
	if c.leases == "" {
		return []*zk.Call{zk.Children(c.dir, false)}
	}
	return []*zk.Call{zk.Children(c.dir, false), zk.Children(c.leases, false), zk.Children(c.top, false)}
}

// line returns the line that the answers to these requests tell.
func (c *claim) line(reads []*zk.Call) ([]place, error) {
	for _, call := range reads {
		if call.Err != nil && call.Code != zk.NoNode {
			return nil, call.Err
		}
	}
	if c.leases == "" {
		return placesOf(c.dir, reads[0].Children), nil
	}
	return semaphoreOf(c.top, reads[0].Children, reads[1].Children, reads[0].Stat.Czxid), nil
}

// lineWithout is line without the places of some nodes.
func (c *claim) lineWithout(reads []*zk.Call, nodes map[string]bool) ([]place, error) {
	line, err := c.line(reads)
	return slices.DeleteFunc(line, func(p place) bool { return nodes[p.nodes[0]] }), err
}

// find returns the claim's place by its prefix, or -1.
func (c *claim) find(line []place) int {
	return slices.IndexFunc(line, func(p place) bool { return strings.HasPrefix(path.Base(p.nodes[0]), c.prefix) })
}

// place returns the claim's place by its node, or -1.
func (c *claim) place(line []place) int {
	if len(c.nodes) == 0 {
		return -1
	}
	return placeOf(line, c.nodes[0])
}

// holds reports whether a node of the claim is held by the answers to requests of readLine.
func (c *claim) holds(reads []*zk.Call, node string) bool {
	line, err := c.line(reads)
	at := placeOf(line, node)
	return err == nil && at >= 0 && holds(line, at)
}

// toWatch returns the nodes whose change may let in the claim, which is not held, and the requests
// that watch them. That is the nearest claim in its way, as long as all that wait ahead are let in
// before it. The first that waits for permits, and one that may pass others since its limit is
// larger, watches all that it waits for.
func (c *claim) toWatch(line []place, at, ahead int) ([]string, []*zk.Call) {
	first := true
	if c.leases != "" {
		ahead = -1
		for i, p := range line[:at] {
			if !p.lease {
				first = false
				if ahead = i; !p.foreign && p.limit < c.Limit {
					ahead = -1
					break
				}
			}
		}
	}
	if ahead >= 0 {
		node := line[ahead].nodes[0]
		return []string{node}, []*zk.Call{zk.Get(node, c.Queue)}
	}
	return []string{c.leases, c.dir}, []*zk.Call{zk.Children(c.dir, c.Queue && !first), zk.Children(c.leases, c.Queue)}
}
