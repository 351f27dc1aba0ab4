package redlock

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// shared is what the sessions of a driver share.
type shared struct {
	*env
	nodes  []*node
	quorum int

	holding   *redisstore.Holding
	contended redisstore.Contention
	audience  redisstore.Receivers[*session] // of claims that may wait

	grants, raises, yields atomic.Uint64
	lastTicket             atomic.Int64 // of this driver, or met
	ahead                  atomic.Int64 // of the clock of this process, in µs: what a ticket is at least

	sessions sessions.Set[*session]
	seenMu   sync.Mutex
	seen     map[string]int64 // counters that are ahead of this process's clock
}

// ticket is a place in line: logical time in µs, the same on all masters. It decides the order of
// waiting and nothing else. It is the clock of this process, set forward to the largest ticket that
// it has met, so that a claim that comes later comes behind those that were there, however its
// clock is set. Source: L. Lamport, "Time, Clocks, and the Ordering of Events in a Distributed
// System", 1978.
func (d *shared) ticket() int64 {
	for {
		last := d.lastTicket.Load()
		t := max(clock()+d.ahead.Load(), last+1)
		if d.lastTicket.CompareAndSwap(last, t) {
			return t
		}
	}
}

// clock is that of this process for tickets, in µs: it began with the machine's and is set by
// nobody.
func clock() int64 { return epoch.UnixMicro() + time.Since(epoch).Microseconds() }

// tooFar is how far a ticket may be ahead of this process's clock to be believed: no wrong clock is
// to use up the numbers for all.
const tooFar = 365 * 24 * time.Hour

// observeTicket notes a ticket of another claim; "" is none.
func (d *shared) observeTicket(text string) {
	if text == "" {
		return
	}
	t, err := strconv.ParseInt(text, 10, 64)
	now := clock()
	if err != nil || t > now+tooFar.Microseconds() {
		return
	}
	raise(&d.lastTicket, t)
	raise(&d.ahead, t-now)
}

func raise(n *atomic.Int64, to int64) {
	for {
		old := n.Load()
		if old >= to || n.CompareAndSwap(old, to) {
			return
		}
	}
}

// propose makes up a counter for the next grant of a name: above what was seen, and at least the
// clock, so that masters whose counters differ answer the same one.
func (d *shared) propose(name string, above int64) int64 {
	d.seenMu.Lock()
	above = max(above, d.seen[name])
	d.seenMu.Unlock()
	return roundUp(max(time.Now().UnixMicro(), above+stride))
}

// saw remembers the counter of a name that is ahead of the clock.
func (d *shared) saw(name string, counter int64) {
	ahead := counter+stride > time.Now().UnixMicro()
	d.seenMu.Lock()
	defer d.seenMu.Unlock()
	switch {
	case !ahead:
		delete(d.seen, name)
	case len(d.seen) < 4096:
		d.seen[name] = max(d.seen[name], counter)
	default:
		clear(d.seen)
	}
}

// epoch is when this process began, for times of its own.
var epoch = time.Now()

// tell tells the masters that their set is in use, now and then.
func (d *shared) tell() {
	if !d.members.Used() {
		return
	}
	since := time.Now()
	for _, n := range d.nodes {
		n.give(order{
			call:  membership.Use(n.member.Vote(), d.options.MaxTTL),
			since: since, until: since.Add(d.options.NodeTimeout), done: func(*node, *order, any, error) {},
		})
	}
}
