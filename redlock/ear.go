package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
)

// ear is one subscription of this process, to one master. Its channel is new with each connection, so that a message to
// the channel reaches exactly this connection or nobody: a script that is told "nobody" knows that whoever wrote the
// channel beside its claim is dead or will ask again.
type ear struct {
	redisstore.Ear
	channel string
	begun   time.Time
	first   bool // of this master
}

// hearing is the ear at one master, and the channel of the next one.
type hearing struct {
	mu   sync.Mutex
	ear  *ear
	next string
}

func newChannel() string { return "il:push:" + driver.NewID() }

// channel is the channel of the ear, or of the next one.
func (n *node) channel() string {
	n.hearing.mu.Lock()
	defer n.hearing.mu.Unlock()
	if e := n.hearing.ear; e != nil && !e.Deaf() {
		return e.channel
	}
	if n.hearing.next == "" {
		n.hearing.next = newChannel()
	}
	return n.hearing.next
}

// A master that does not let us subscribe is asked again after pause. Nobody waits for a subscription that takes the place of
// another: the other masters decide meanwhile.
const pause = 100 * time.Millisecond

// listen returns the ear at the master, and makes it if it is missing. No ID enters a line before its channel is confirmed:
// a master that is given to it by a message that nobody hears would skip the claim.
func (n *node) listen() *ear {
	n.hearing.mu.Lock()
	defer n.hearing.mu.Unlock()
	e := n.hearing.ear
	if e == nil || e.Deaf() && time.Since(e.begun) > pause {
		if n.hearing.next == "" {
			n.hearing.next = newChannel()
		}
		e = &ear{channel: n.hearing.next, begun: time.Now(), first: e == nil, Ear: redisstore.NewEar()}
		n.hearing.ear, n.hearing.next = e, ""
		go n.open(e)
	}
	return e
}

// await waits until the master has confirmed the subscription, but not longer than until limit.
func (e *ear) await(ctx context.Context, n *node, limit time.Time) error {
	if !e.Settled() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, limit, errNoAnswer)
		defer cancel()
	}
	if err := e.Await(ctx); err != nil {
		return fmt.Errorf("redlock: %s: %w", n.name, err)
	}
	return nil
}

var errNoAnswer = errors.New("no answer yet")

// listening subscribes at every master for a claim that may wait, and says where that failed. Where a majority
// that may vote has confirmed it, nobody waits long for the others.
func (s *session) listening(ctx context.Context, c *claim) []error {
	errs := make([]error, len(s.d.nodes))
	if !c.Queue {
		return errs
	}
	s.d.audience.Add(c.ID, s)
	ears := make([]*ear, len(s.d.nodes))
	for i, n := range s.d.nodes {
		ears[i] = n.listen()
	}
	now := time.Now()
	confirmed := func(limit func(i int) time.Time) (n int) {
		for i := range ears {
			if errs[i] = ears[i].await(ctx, s.d.nodes[i], limit(i)); errs[i] == nil && s.d.nodes[i].votes() {
				n++
			}
		}
		return n
	}
	ready := confirmed(func(i int) time.Time {
		if s.d.nodes[i].ailing() || !ears[i].first {
			return now
		}
		return now.Add(5 * grace)
	})
	for end := now.Add(s.d.options.NodeTimeout); ready < s.d.quorum && time.Now().Before(end) && ctx.Err() == nil; {
		for i, n := range s.d.nodes {
			ears[i] = n.listen() // again, where it has failed meanwhile
		}
		ready = confirmed(func(int) time.Time { return time.Now().Add(grace / 4) })
	}
	return errs
}

// open subscribes, and when the subscription ends has every claim that relied on it ask again.
func (n *node) open(e *ear) {
	ctx, cancel := context.WithTimeout(n.d.ctx, n.d.options.NodeTimeout*4)
	sub, err := n.conn.Subscribe(ctx, "x", e.channel, n.hear)
	cancel()
	if err != nil {
		e.Settle(nil, nil, err)
	} else {
		e.Settle(sub.Done, sub.Close, nil)
	}
	if !e.Listen(n.d.ctx) {
		return
	}
	for _, s := range n.d.sessions.All() {
		s.deafened(n)
	}
}

// hear takes in a message for a claim.
func (n *node) hear(payload string) {
	m, s, ok := n.d.audience.Hear(payload)
	if !ok {
		return
	}
	switch m.Letter {
	case "h": // has this master: counter, and whether others wait
		s.promoted(n, m.ID, m.Numbers[0], m.Numbers[1] == 1)
	case "i": // one with an older ticket waits
		s.inquired(n, m.ID)
	case "g": // a gap for other programs: ms until it ends
		s.gap(n, m.ID, m.Numbers[0])
	case "x": // gone
		s.told(m.ID)
	case "n": // broken, with its time left to finish
		s.Hurry()
	}
}

// listenForHolders subscribes at every master if something is held.
func (d *Driver) listenForHolders() {
	sessions, closed := d.sessions.All(), d.sessions.Closed()
	for _, s := range sessions {
		s.mu.Lock()
		holds, _ := s.standing()
		s.mu.Unlock()
		if closed || len(holds) == 0 {
			continue
		}
		made := false
		for _, n := range d.nodes {
			before := n.hears()
			if e := n.listen(); !before {
				made = true
				_ = e.await(d.ctx, n, time.Now().Add(d.options.NodeTimeout))
			}
		}
		if made {
			s.Hurry()
		}
	}
}

func (n *node) hears() bool {
	n.hearing.mu.Lock()
	defer n.hearing.mu.Unlock()
	return n.hearing.ear != nil && !n.hearing.ear.Deaf()
}
