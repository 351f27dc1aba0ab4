package redissonlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

// session is a session of this layout. The mutex of groups is that of all sessions.
type session struct {
	redisstore.Session[*claim]

	d *Driver
}

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	return redisstore.Open(ctx, d.store, &d.sessions, spec, func() *session {
		s := &session{d: d}
		s.Session = redisstore.NewSession(d.store, &d.groups.mu, spec, redisstore.Layout[*claim]{Check: check, Claim: func(c driver.Claim) *claim {
			return &claim{Claim: redisstore.NewClaim(c), keys: keysOf(c.Name, d.store.Cluster), field: fieldOf(d.client, c.ID, c.Kind)}
		}})
		return s
	})
}

var errPermit = errors.New("the semaphores of Redisson know no owners, so that a crash loses permits for good, and its expirable ones trust the clocks of clients: use another store for semaphores")

// check refuses a claim that cannot be kept.
func check(c driver.Claim) error {
	if c.ID == "" {
		return fmt.Errorf("redissonlock: a claim without an ID: want one of driver.NewID: %w", driver.ErrRefused)
	}
	if c.Kind == driver.Permit {
		return fmt.Errorf("redissonlock: name %q: %w: %w", c.Name, driver.ErrRefused, errPermit)
	}
	return redisstore.CheckName("redissonlock", c.Name)
}

// holders is the prefix of the channels for messages of breaks: the client's id follows. Redisson
// has no such channel.
const holders = "redisson_lock__channel:interlock:"

// unsubscribed handles the loss of the subscription at a master, which may have lost its data: its
// claims are renewed at once, and once more when there is another subscription.
func (d *Driver) unsubscribed(sub *redisstore.Subscription) {
	if d.renew(func(c *claim) bool { return d.store.Conn.Node(c.Name) == sub.Node }) {
		d.subs.Began()
	}
}

// broken handles the message that a claim of this process was broken. A renewal says which.
func (d *Driver) broken(string) { d.renew(func(*claim) bool { return true }) }

// renew renews every session with such a claim, and reports whether there is any.
func (d *Driver) renew(such func(*claim) bool) (some bool) {
	for _, s := range d.sessions.All() {
		if s.has(such) {
			s.Hurry()
			some = true
		}
	}
	return some
}

// has reports whether the session has such a claim, which holds or waits.
func (s *session) has(such func(*claim) bool) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, c := range s.Claims {
		if c.Live() && such(c) {
			return true
		}
	}
	return false
}

// publishBroken sends the message of a break to the process of a claim of ours, by the claim's
// field. If it is lost, the next renewal finds the break.
func (d *Driver) publishBroken(ctx context.Context, field string) {
	if client := clientOf(field); client != "" {
		words := []string{"PUBLISH", holders + client, "broken"} // on a Cluster every master passes it on
		_, _ = d.store.Conn.Do(sessions.Within(ctx, d.store.Timeout), redisconn.Command{Words: words})
	}
}
