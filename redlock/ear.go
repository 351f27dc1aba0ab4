package redlock

import (
	"context"
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

// channels begins the channels of all processes.
const channels = "il:push:"

func newChannel() string { return channels + driver.NewID() }

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

// confirmed returns nil if the master has confirmed the subscription, or why it has not.
func (e *ear) confirmed(ctx context.Context, n *node) error {
	err := errNoAnswer
	if e.Settled() {
		err = e.Await(ctx)
	}
	if err != nil {
		return fmt.Errorf("redlock: %s: %w", n.name, err)
	}
	return nil
}

var errNoAnswer = fmt.Errorf("subscribe: %w: no answer yet", driver.ErrNotSent)

// listening subscribes at every master for a claim that may wait, and says where that failed.
func (s *session) listening(ctx context.Context, c *claim) []error {
	errs := make([]error, len(s.d.nodes))
	if !c.Queue {
		return errs
	}
	s.d.audience.Add(c.ID, s)
	ears := make([]*ear, len(s.d.nodes))
	// look reports how many masters that may vote have confirmed, and which others are worth waiting for.
	look := func() (ready int, missing uint64) {
		for i, n := range s.d.nodes {
			e := n.listen() // again, where it has failed meanwhile
			ears[i], errs[i] = e, e.confirmed(ctx, n)
			switch {
			case errs[i] == nil && n.votes():
				ready++
			case !e.Settled() && e.first && !n.ailing():
				missing |= 1 << i
			}
		}
		return ready, missing
	}
	if ready, missing := look(); ready < s.d.quorum || missing != 0 {
		s.awaitEars(ctx, ears, look)
	}
	return errs
}

// awaitEars waits until a majority has confirmed. It waits for the others as linger does: until they are late. Where one of
// them confirms then, the claims that wait here join its line.
func (s *session) awaitEars(ctx context.Context, ears []*ear, look func() (ready int, missing uint64)) {
	ctx, cancel := context.WithTimeout(ctx, s.d.options.NodeTimeout)
	defer cancel()
	news := make(chan struct{}, 1)
	watched := make([]*ear, len(ears))
	var late time.Time
	for since := time.Now(); ctx.Err() == nil; {
		ready, missing := look()
		limit := time.Now().Add(grace / 4) // what has failed is made again, and who has no vote may get it
		if ready >= s.d.quorum {
			if late.IsZero() {
				late = lateness(time.Since(since) / 2)
			}
			if limit = late; missing == 0 {
				return
			}
			if !time.Now().Before(late) {
				for _, n := range s.d.nodes {
					if missing&(1<<n.i) != 0 {
						n.isLate()
					}
				}
				return
			}
		}
		for i, e := range ears {
			if e != watched[i] && !e.Settled() {
				watched[i] = e
				go func() {
					_ = e.Await(ctx)
					select {
					case news <- struct{}{}:
					default:
					}
				}()
			}
		}
		timer := time.NewTimer(time.Until(limit))
		select {
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// open subscribes, and when the subscription ends has every claim that relied on it ask again. What is held asks then, too, and once
// more when there is another one. While something is held one that failed is tried again.
func (n *node) open(e *ear) {
	ctx, cancel := context.WithTimeout(n.d.ctx, n.d.options.NodeTimeout*4)
	err := e.Subscribe(ctx, n.conn, "", memberKey, e.channel, n.hear)
	cancel()
	if err == nil {
		for _, s := range n.d.sessions.All() {
			s.unheard(n) // who came when it was not settled stands in the lines of the other masters only
			if !e.first {
				s.deafened(n)
			}
		}
	}
	if !e.Listen(n.d.ctx) {
		return
	}
	for _, s := range n.d.sessions.All() {
		s.unheard(n)
		if err == nil {
			s.deafened(n)
		}
	}
	n.d.holding.Began()
}

// hear takes in a message for a claim.
func (n *node) hear(payload string) {
	m, s, ok := n.d.audience.Hear(payload)
	if m.Letter == "x" || m.Letter == "n" { // gone, or broken with its time left to finish: also a claim that never waited
		for _, s := range n.d.sessions.All() {
			s.told(m)
		}
		return
	}
	if !ok {
		return
	}
	switch m.Letter {
	case "h": // has this master: counter, and whether others wait
		s.promoted(n, m.ID, m.Numbers[0], m.Numbers[1] == 1)
	case "i": // one with an older ticket waits
		s.inquired(n, m.ID)
	case "g": // the first in line is to look: after so many ms, as when a gap for other programs ends
		s.gap(n, m.ID, m.Numbers[0])
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
				ctx, cancel := context.WithTimeout(d.ctx, d.options.NodeTimeout)
				made = e.Await(ctx) == nil || made
				cancel()
			}
		}
		if made {
			s.Hurry()
		}
	}
}

// confirms reports whether the master has confirmed the subscription, which stands.
func (n *node) confirms() bool {
	n.hearing.mu.Lock()
	defer n.hearing.mu.Unlock()
	e := n.hearing.ear
	return e != nil && e.Settled() && !e.Deaf()
}

// hearsBy reports whether what is told on a channel is heard.
func (n *node) hearsBy(channel string) bool {
	n.hearing.mu.Lock()
	defer n.hearing.mu.Unlock()
	e := n.hearing.ear
	return e != nil && e.channel == channel && !e.Deaf()
}

func (n *node) hears() bool {
	n.hearing.mu.Lock()
	defer n.hearing.mu.Unlock()
	return n.hearing.ear != nil && !n.hearing.ear.Deaf()
}

// voters counts the masters that had a vote when last heard of.
func (d *Driver) voters() (n int) {
	for _, node := range d.nodes {
		if node.votes() {
			n++
		}
	}
	return n
}
