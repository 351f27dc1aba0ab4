package redissonlock

import (
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
)

// place is what the claims of a group wait for: a lock of one kind on one name.
type place struct {
	name string
	kind driver.Kind
}

// groups are the groups of a driver, and its listeners.
type groups struct {
	store   *redisstore.Store
	sharded bool // messages are those of a shard

	mu        sync.Mutex // guards all groups, listeners and claims of the driver
	all       map[place]*group
	listeners map[string]*listener // by master
	sweeper   *time.Timer
	sweeping  bool // the sweeper is going to run
	closed    bool
}

// group is the claims of this process that wait for one place. One of them asks for all: when a
// message says that the place may be free, or when the hold expires that they wait for. The answer
// is for all.
//
// version counts the messages, and the times when one may have been lost. checked is the last
// version for which the server answered "held". A waiter asks while checked is less than version.
// So a message that comes during a request is not lost, and when a waiter gives up during a request
// another one asks.
type group struct {
	in      *groups
	place   place
	channel string
	by      *listener // that is subscribed for it; nil: none
	inside  map[*claim]struct{}
	empty   time.Time // since when it has no waiters

	version, checked uint64
	asking           bool          // a waiter asks
	at               time.Time     // when to ask by time alone; zero: a message or a renewal will say
	changed          chan struct{} // closed, and another made, when any of these changes
}

// linger is how long the subscription of a group without waiters stays: under contention there is
// always a next waiter.
const linger = time.Second

func newGroups(store *redisstore.Store, sharded bool) *groups {
	all := &groups{store: store, sharded: sharded, all: map[place]*group{}, listeners: map[string]*listener{}}
	all.sweeper = time.AfterFunc(time.Hour, all.sweep)
	all.sweeper.Stop()
	return all
}

// enter puts c into its group, which is made if it is missing. The caller holds mu.
func (all *groups) enter(c *claim) {
	p := place{c.Name, c.Kind}
	g := all.all[p]
	if g == nil {
		g = &group{in: all, place: p, channel: c.keys.channel(c.Kind), inside: map[*claim]struct{}{}, empty: time.Now(), changed: make(chan struct{})}
		all.all[p] = g
		all.sweepLater()
	}
	c.group = g
	g.inside[c] = struct{}{}
}

// remove takes c out of the group. The caller holds mu, as for all methods of a group that do not
// lock it.
func (g *group) remove(c *claim, now time.Time) {
	delete(g.inside, c)
	if len(g.inside) == 0 {
		g.empty = now
		g.in.sweepLater()
	}
}

// wake wakes all waiters of the group.
func (g *group) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// recheck makes the waiters ask: the place may be free.
func (g *group) recheck() {
	g.version++
	g.wake()
}

// subscribed reports whether no message is missed.
func (g *group) subscribed() bool { return g.by != nil && !g.by.Lost() }

// due reports whether it is time to ask.
func (g *group) due(now time.Time) bool {
	return !g.subscribed() || g.checked < g.version || !g.at.IsZero() && !now.Before(g.at)
}

// begin reports whether the caller is to ask now.
func (g *group) begin() bool {
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	if g.asking || !g.due(time.Now()) {
		return false
	}
	g.asking = true
	return true
}

// done records that a request is answered, or has failed: then the next one follows after a moment.
func (g *group) done(err error) {
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	g.asking = false
	if err != nil {
		g.checked, g.at = g.version, time.Now().Add(10*time.Millisecond)
	}
	g.wake()
}

// taken records the answer to a question that began at a version: the place is taken for so long,
// or, where left is negative, until a message.
func (g *group) taken(version uint64, left time.Duration) {
	g.checked = max(g.checked, version)
	g.at = time.Time{}
	if left >= 0 {
		g.at = time.Now().Add(left + time.Millisecond) // the server's clock ticks in milliseconds
	}
	g.wake()
}

// sweepLater schedules the removal of groups without waiters. The caller holds mu.
func (all *groups) sweepLater() {
	if !all.sweeping && !all.closed {
		all.sweeping = true
		all.sweeper.Reset(linger)
	}
}

// sweep removes them.
func (all *groups) sweep() {
	now := time.Now()
	all.mu.Lock()
	defer all.mu.Unlock()
	all.sweeping = false
	for p, g := range all.all {
		switch {
		case len(g.inside) > 0 || g.asking:
		case now.Sub(g.empty) < linger:
			all.sweepLater()
		default:
			delete(all.all, p)
			for _, l := range all.listeners { // also one whose subscription was not confirmed while there were waiters
				l.drop(g)
			}
		}
	}
}
