package zklock

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// A semaphore, as Curator's InterProcessSemaphoreV2 has it, is a line of those who wait, and a lease for each permit that is taken: the first in line takes its leases when
// there is room for them, and leaves the line. Curator makes a lease before there is room, and waits beside it; ours are made, and the place in line left, by one
// transaction, so that a lease is always held.
const (
	waitingPart = "/locks"
	leasesPart  = "/leases"
	mutexTag    = "mutex-" // in the names of a mutex that is a semaphore of one
)

// maxLeases is the largest limit under which each permit is a node, as Curator counts them. Under a larger one a claim is one node, and its name says how many it is.
const maxLeases = 1000

// A server ends the connection by which a request of more than maxRequest bytes comes, unless its jute.maxbuffer says otherwise. Each lease of a transaction has up to
// leaseBytes beside the path of the lock's node.
const (
	maxRequest = 1<<20 - 1
	leaseBytes = 150
)

// semaphoreOf returns the line that the children of both parts make. Epoch is the change that made the part for who waits: numbers begin anew when it was empty
// and is made again. The names of ours have weight and limit, and those of leases also epoch and number of the place in line that was left: clients need not agree on the
// limit, and who holds may have been let in past others who want more than there is. Other libraries' leases are ahead of everybody.
func semaphoreOf(top string, waits, leases []string, epoch int64) []place {
	var ahead, line []place
	var last string
	for _, child := range slices.Sorted(slices.Values(leases)) {
		p, rest := permitOf(child)
		p.nodes, p.lease = []string{top + leasesPart + "/" + child}, true
		into, made := &line, int64(0)
		if _, err := fmt.Sscanf(rest, "%x.%d-lease-", &made, &p.number); err != nil || p.foreign || made != epoch {
			into = &ahead
		}
		claim, _, ours := strings.Cut(child, "-lease-")
		if ours && !p.foreign && claim == last { // one claim's leases are one place, and follow each other here
			at := &(*into)[len(*into)-1]
			at.nodes = append(at.nodes, p.nodes...)
			continue
		}
		last = claim
		*into = append(*into, p)
	}
	for _, child := range waits {
		var ok bool
		p, _ := permitOf(child)
		p.nodes = []string{top + waitingPart + "/" + child}
		if p.number, ok = numberOf(child); ok {
			line = append(line, p)
		}
	}
	sorted(line)
	return append(ahead, line...)
}

// prefixLen is how long what prefixOf makes is.
const prefixLen = len("_c_00000000-0000-0000-0000-000000000000-")

// permitOf reads the name of a semaphore's child, as far as weight and limit, and returns the rest.
func permitOf(child string) (p place, rest string) {
	if strings.HasPrefix(child, "_c_") && len(child) > prefixLen {
		rest = child[prefixLen:]
		if rest, ok := strings.CutPrefix(rest, mutexTag); ok {
			return place{kind: driver.Mutex, weight: 1, limit: 1}, rest
		}
		p.kind = driver.Permit
		if _, err := fmt.Sscanf(rest, "%d-%d-", &p.weight, &p.limit); err == nil && 1 <= p.weight && p.weight <= p.limit && p.limit <= driver.All {
			return p, strings.SplitN(rest, "-", 3)[2]
		}
	}
	return place{kind: driver.Permit, weight: 1, foreign: true}, ""
}

// look returns the requests that read the line of c.
func (c *claim) look() []*zk.Call {
	if c.leases == "" {
		return []*zk.Call{zk.Children(c.dir, false)}
	}
	return []*zk.Call{zk.Children(c.dir, false), zk.Children(c.leases, false), zk.Children(c.top, false)}
}

// consistent reads the line of c. The parts of a semaphore are read one after the other: who leaves and comes again meanwhile would be seen in neither, unless
// the first is seen not to have changed.
func (s *session) consistent(ctx context.Context, c *claim) (look []*zk.Call, err error) {
	for range enterAttempts {
		look = c.look()
		if c.leases == "" {
			return look, s.client.Do(ctx, look...)
		}
		again := zk.Children(c.dir, false)
		if err := s.client.Do(ctx, append(slices.Clone(look), again)...); err != nil || again.Stat.Pzxid == look[0].Stat.Pzxid {
			return look, err
		}
	}
	return look, nil // somebody is there all the time
}

// line returns the line that they have answered.
func (c *claim) line(look []*zk.Call) ([]place, error) {
	for _, call := range look {
		if call.Err != nil && call.Code != zk.NoNode {
			return nil, call.Err
		}
	}
	if c.leases == "" {
		return placesOf(c.dir, look[0].Children), nil
	}
	return semaphoreOf(c.top, look[0].Children, look[1].Children, look[0].Stat.Czxid), nil
}

// apart insists that c goes with those who stand there: permits and locks share no name.
func (s *session) apart(ctx context.Context, c *claim, look []*zk.Call) error {
	line, err := c.line(look)
	if err != nil {
		return err
	}
	if c.leases != "" {
		for _, p := range line {
			if !p.foreign && p.kind != c.Kind {
				return fmt.Errorf("%s has a %s claim, so it takes no %s claim: use another name: %w", c.top, p.kind, c.Kind, driver.ErrName)
			}
		}
		for _, p := range placesOf(c.top, look[2].Children) {
			get := zk.Get(p.nodes[0], false)
			if err := s.client.Do(ctx, get); err != nil {
				return err
			}
			if get.Err == nil && get.Stat.Owner != 0 {
				return fmt.Errorf("%s has a %s claim, so it takes no %s claim: use another name: %w", c.top, p.kind, c.Kind, driver.ErrName)
			}
		}
		return nil
	}
	if !slices.Contains(look[0].Children, waitingPart[1:]) && !slices.Contains(look[0].Children, leasesPart[1:]) {
		return nil
	}
	parts := []*zk.Call{zk.Children(c.top+waitingPart, false), zk.Children(c.top+leasesPart, false)}
	if err := s.client.Do(ctx, parts...); err != nil {
		return err
	}
	for _, part := range parts {
		if len(part.Children) > 0 {
			return fmt.Errorf("%s is in use as a semaphore, so it takes no %s claim: use another name: %w", c.top, c.Kind, driver.ErrName)
		}
	}
	return nil
}

// watching returns the nodes whose change may let c in, which does not hold, and the calls that have it told: the nearest in its way, as long as all who wait ahead
// are let in before c. The first of who waits for permits, and one who may be let in past others since its limit is larger, hears of every change of what it waits for.
func (c *claim) watching(line []place, at, ahead int) ([]string, []*zk.Call) {
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

// takeLeases has c leave the line and hold, by one transaction. Nobody ahead can come any more, so that there is room stays true. The part for who holds is made only now where it
// is missing, since the servers remove no container that never had a child.
func (s *session) takeLeases(ctx context.Context, c *claim, p place, look []*zk.Call) error {
	name := fmt.Sprintf("%s/%s%s%x.%d-lease-", c.leases, c.prefix, strings.TrimSuffix(c.tag, "lock-"), look[0].Stat.Czxid, p.number)
	missing := look[1].Code == zk.NoNode
	for range enterAttempts {
		out, data := zk.Delete(p.nodes[0], 0), encode(s.owner, c.Claim)
		calls := []*zk.Call{out}
		for range leaseCount(c.Claim) {
			calls = append(calls, zk.Create(name, data, zk.EphemeralSequential, s.d.acl))
			data = nil
		}
		take, part := zk.Multi(calls...), zk.Create(c.leases, nil, zk.Container, s.d.acl)
		flight := []*zk.Call{part, take}
		if !missing {
			flight = flight[1:]
		}
		if err := s.launch(ctx, c, take, calls[1:], flight...); err != nil {
			return err
		}
		switch {
		case take.Err == nil:
			return s.hold(ctx, c)
		case out.Code == zk.NoNode, out.Code == zk.BadVersion:
			how := gone
			if out.Code == zk.BadVersion {
				how = broken
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ends(c, how)
			return nil
		case missing && part.Err != nil && part.Code != zk.NodeExists:
			return part.Err
		case take.Code != zk.NoNode:
			return take.Err
		}
		missing = true
	}
	return fmt.Errorf("the node %s goes whenever it is to have a child: %w", c.leases, driver.ErrNotSent)
}

// leaseCount is how many nodes a claim of permits has when it holds.
func leaseCount(c driver.Claim) int {
	if c.Limit > maxLeases {
		return 1
	}
	return c.Weight
}
