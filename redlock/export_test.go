package redlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// Vain is how often a driver has waited for a master in vain, by master.
func (d *shared) Vain() []int64 {
	vain := make([]int64, len(d.nodes))
	for i, n := range d.nodes {
		vain[i] = n.vain.Load()
	}
	return vain
}

// Own has a driver close its connections with itself, as those that were opened by URL.
func Own(d *Driver) { d.owned = true }

// Voters counts the masters that had a vote when last heard of.
func (d *Driver) Voters() int { return d.members.Voters() }

// Hears counts the masters that have confirmed a subscription.
func (d *shared) Hears() (n int) {
	for _, node := range d.nodes {
		if node.subscribed() {
			n++
		}
	}
	return n
}

// Skew has the tickets of a driver come from a clock that is off by so much.
func (d *Driver) Skew(by time.Duration) { d.ahead.Store(by.Microseconds()) }

// LineText is the long script.
func LineText() string { return lineText }

// HoldText is the script that renews.
func HoldText() string { return holdText }

// Has is how many masters a claim has, as far as its session knows.
func Has(of driver.Session, id string) (n int) {
	s := of.(*session) //nolint:forcetypeassert // there is no other one
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ns := range s.claims[id].nodes {
		if ns.has {
			n++
		}
	}
	return n
}

// Overtaken asks three masters something, for which the third is late: the first two answer, and
// then, before whoever asked has looked at that, the third. It returns of how many it is said that
// they have answered, and how many answers were looked at.
func Overtaken() (said, seen int) {
	d := &Driver{shared: &shared{env: &env{options: Options{NodeTimeout: time.Hour}}, quorum: 2}}
	for i := range 3 {
		d.nodes = append(d.nodes, newNode(d.env, i, nil, &membership.Master{}))
	}
	d.nodes[2].markLate()
	over := make(chan *tally)
	go func() {
		f, _ := d.everywhere(context.Background(), func(*node) (redisconn.Call, bool) { return redisconn.Call{}, true }, func(*node, any) error {
			seen++
			return nil
		}, nil)
		over <- f
	}()
	for _, n := range d.nodes {
		n.mu.Lock()
		for len(n.queue) == 0 {
			n.some.Wait()
		}
		n.mu.Unlock()
	}
	for _, n := range d.nodes {
		n.queue[0].done(n, &n.queue[0], nil, nil)
	}
	return (<-over).answered(), seen
}

// Pending is how many questions of a claim that waits a master has yet to answer.
func Pending(of driver.Session, id string, master int) int {
	s := of.(*session) //nolint:forcetypeassert // there is no other one
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.claims[id]
	if c == nil {
		return 0
	}
	return c.nodes[master].pending
}

// Awake reports whether a claim's Wait has been woken by what happened last, or is about to see it.
func Awake(of driver.Session, id string) bool {
	s := of.(*session) //nolint:forcetypeassert // there is no other one
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.claims[id].change) == 0
}

// Gap has a session hear that a master has left a gap before a claim, of so many ms.
func Gap(of driver.Session, id string, master int, ms int64) {
	s := of.(*session) //nolint:forcetypeassert // there is no other one
	s.deferHead(s.d.nodes[master], id, ms)
}

// Ghosts is how many claims are released at the masters again and again.
func (d *Driver) Orphans() (n int) {
	for _, node := range d.nodes {
		node.mu.Lock()
		n += len(node.orphans)
		node.mu.Unlock()
	}
	return n
}

// Raise raises a claim that is held on all its masters once more, in a call that began at since,
// and returns from when on each has it then.
func Raise(ctx context.Context, of driver.Session, id string, since time.Time) (from []time.Time, err error) {
	s := of.(*session) //nolint:forcetypeassert // there is no other one
	f := newInflight(since)
	s.mu.Lock()
	c := s.claims[id]
	for _, n := range s.d.nodes {
		s.confirm(c, n, f)
	}
	s.mu.Unlock()
	err = s.await(ctx, f, func() bool { return f.out == 0 })
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range c.nodes {
		from = append(from, c.nodes[i].from)
	}
	return from, err
}
