package redlock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// order is one script for one master.
type order struct {
	call     redisconn.Call
	since    time.Time // when it was given: nothing that it brings about began before
	until    time.Time // it is not sent after that, and its answer is not awaited longer
	vote     bool      // it may give the master to a claim, so the master must be one that has a vote
	verify   bool      // it goes to a master without a vote as well, but its answer is to be that of the one that was met last:
	verified bool      // it is
	noRetry  bool      // it is not sent again when its connection has ended
	resent   bool      // it was, so that it may be carried out twice, and late
	done     func(n *node, o *order, v any, err error)
}

// env is what the masters of a driver share, and who hears of them.
type env struct {
	options  Options
	looks    bool            // the driver was opened for a look: it writes no record of a master, and opens no session
	ctx      context.Context //nolint:containedctx // of what goes on in the background; ends with Close
	cancel   context.CancelFunc
	serving  sync.WaitGroup
	members  *membership.Group
	observer observer
}

// observer hears of the subscription at a master.
type observer interface {
	message(n *node, payload string)
	subscribed(n *node, again bool)           // again: it takes the place of one that has ended
	subscriptionLost(n *node, confirmed bool) // it has ended, or was never confirmed
}

// node is one master. Its orders are carried out in the order in which they were given, by one
// goroutine: what has gathered while the last answer was awaited goes out together.
type node struct {
	d    *env
	i    int
	name string // for people
	conn redisconn.Conn
	run  redisconn.Runner

	mu       sync.Mutex
	some     sync.Cond
	queue    []order
	closed   bool
	doubt    time.Time // when a request last had no answer: it may be overtaken on another connection
	orphans  []orphan
	releases bool // releaseOrphans is running

	going []*order           // the last batch, for its room; guarded by serve, as is:
	reply [1]redisconn.Reply // where it was one

	member         *membership.Master
	lastUnanswered atomic.Int64  // when a request last had no answer, in ns; 0 for never
	late           atomic.Bool   // it has let somebody wait in vain, and has not answered in time since
	vain           atomic.Int64  // how often it has let somebody wait in vain
	served         chan struct{} // closed when the last order was carried out
	subs           subscriptions
}

func newNode(d *env, i int, conn redisconn.Conn, member *membership.Master) *node {
	n := &node{d: d, i: i, name: member.Name, member: member, conn: conn, run: redisconn.Runner{Conn: conn}, served: make(chan struct{})}
	n.some.L = &n.mu
	return n
}

func nameOfMaster(i int, conn redisconn.Conn) string {
	if l, ok := conn.(*lazyConn); ok {
		return fmt.Sprintf("master %d (%s)", i+1, strings.Join(l.config.Addrs, ", "))
	}
	return fmt.Sprintf("master %d", i+1)
}

// unresponsiveFor is how long a request without an answer makes a master a silent one.
const unresponsiveFor = time.Second

// unresponsive reports whether the master is late or silent, so that nobody waits for it who can do
// without it.
func (n *node) unresponsive() bool {
	return n.late.Load() || n.silent()
}

// markLate notes that the master has let somebody wait in vain.
func (n *node) markLate() {
	n.late.Store(true)
	n.vain.Add(1)
}

// unanswered notes that the master did not answer.
func (n *node) unanswered() { n.lastUnanswered.Store(time.Now().UnixNano()) }

// silent reports whether a request had no answer lately.
func (n *node) silent() bool {
	t := n.lastUnanswered.Load()
	return t != 0 && time.Now().UnixNano()-t < int64(unresponsiveFor)
}

// give hands the node an order. It never blocks.
func (n *node) give(o order) {
	n.mu.Lock()
	closed := n.closed
	if !closed {
		n.queue = append(n.queue, o)
		n.some.Signal()
	}
	n.mu.Unlock()
	if closed {
		late := o
		go late.done(n, &late, nil, errClosed) // the giver may have locked what done locks
	}
}

// serve carries out orders until the node is closed.
func (n *node) serve() {
	defer n.d.serving.Done()
	defer close(n.served)
	var batch []order
	for {
		n.mu.Lock()
		for len(n.queue) == 0 && !n.closed {
			n.some.Wait()
		}
		if len(n.queue) == 0 {
			n.mu.Unlock()
			return
		}
		batch, n.queue = n.queue, batch[:0]
		n.mu.Unlock()
		n.execute(batch)
		clear(batch)
	}
}

// straggling is how long a request that was given up may be under way on a connection that is still
// open.
const straggling = 10 * time.Second

// execute sends orders together and passes their answers on.
func (n *node) execute(batch []order) {
	generation := redisconn.Generation(n.conn)
	var until time.Time
	for i := range batch {
		if batch[i].until.After(until) {
			until = batch[i].until
		}
	}
	ctx, cancel := n.within(until)
	defer cancel()
	due, votes := n.due(ctx, batch)
	if len(due) == 0 {
		return
	}
	n.mu.Lock()
	behind := !n.doubt.IsZero() && time.Since(n.doubt) < straggling
	n.mu.Unlock()
	replies := n.ask(ctx, due, behind)
	n.resend(ctx, due, replies)
	n.retryRefused(due, replies)
	var foreign error // the votes are perhaps of another start of the server
	if votes && generation != redisconn.Generation(n.conn) {
		foreign = n.member.Check(ctx)
	}
	for i, o := range due {
		err := replies[i].Err
		if err != nil && redisconn.Is(err, "NOVOTE") {
			err = fmt.Errorf("%w: %w", driver.ErrNotSent, err)
			n.member.Recheck(err)
		} else if err != nil && redisconn.Is(err, "READONLY") { // it has become a replica
			n.member.Recheck(err)
		}
		o.verified = o.verified && foreign == nil
		if foreign != nil && o.vote && err == nil {
			err = fmt.Errorf("the answer does not count: %v", foreign) //nolint:errorlint // something was done
		}
		if err != nil {
			err = fmt.Errorf("redlock: %s: %w", n.name, err)
			if uncertain(err) {
				n.mu.Lock()
				n.doubt = time.Now()
				n.mu.Unlock()
				n.unanswered()
			}
		}
		o.done(n, o, replies[i].Value, err)
	}
}

// within returns a context that ends at a time. Where the connection lets go by itself then, it
// costs no timer.
func (n *node) within(until time.Time) (context.Context, context.CancelFunc) {
	if n.conn.Abandons() {
		return sessions.Within(n.d.ctx, time.Until(until)), func() {}
	}
	return context.WithDeadline(n.d.ctx, until)
}

// due returns the orders that are to be sent, and whether there are votes among them. The others
// are over.
func (n *node) due(ctx context.Context, batch []order) (due []*order, votes bool) {
	now := time.Now()
	due = n.going[:0]
	defer func() { n.going = due }()
	var voteless error
	for i := range batch {
		o := &batch[i]
		if (o.vote || o.verify && n.member.Votes()) && !votes && voteless == nil && now.Before(o.until) {
			voteless = n.member.Check(ctx)
			votes = voteless == nil
		}
		o.verified = o.verify && votes
		var err error
		if !now.Before(o.until) {
			err = fmt.Errorf("redlock: %s: %w: it has not answered what was asked before", n.name, driver.ErrNotSent)
		} else if o.vote {
			err = voteless
		}
		if err != nil {
			o.done(n, o, nil, err)
		} else {
			due = append(due, o)
		}
	}
	return due, votes
}

// resend sends what a connection that had ended unnoticed did not bring through once more.
func (n *node) resend(ctx context.Context, due []*order, replies []redisconn.Reply) {
	until, _ := ctx.Deadline()
	for range 2 { // a single command and several together have a connection each
		var again []*order
		var at []int
		for i, o := range due {
			if err := replies[i].Err; err != nil && uncertain(err) && !answered(err) && !o.noRetry && ctx.Err() == nil && time.Now().Before(until) {
				o.resent = true
				again, at = append(again, o), append(at, i)
			}
		}
		if len(again) == 0 {
			return
		}
		for i, reply := range n.ask(ctx, again, true) {
			replies[at[i]] = reply
		}
	}
}

// printAt is where a script takes the vote that its master has in the set of the program.
var printAt = map[*redisconn.Script]int{takeScript: 3, raiseScript: 3, holdScript: 1, lineScript: 11}

// A master that refuses because the set has changed is waited for so long until this program knows
// the new one: about what two looks at all masters take where one of them is silent.
const probeWait = 250 * time.Millisecond

// retryRefused asks once more what the master refused because it has no vote in the set that this
// program knows. Where another master has taken a new place in the set, the healthy ones refuse all
// programs that have not heard of it.
func (n *node) retryRefused(due []*order, replies []redisconn.Reply) {
	var again []*order
	var at []int
	for i, o := range due {
		if redisconn.Is(replies[i].Err, "NOVOTE") {
			again, at = append(again, o), append(at, i)
		}
	}
	if len(again) == 0 || !n.member.Votes() { // what has no vote by now is looked at in time
		return
	}
	n.d.members.ProbeSince(time.Now(), probeWait)
	ctx, cancel := n.within(again[0].until)
	defer cancel()
	if !n.member.Votes() || ctx.Err() != nil || !time.Now().Before(again[0].until) {
		return
	}
	for _, o := range again {
		o.call.Args[printAt[o.call.Script]] = n.member.Vote()
	}
	for i, reply := range n.ask(ctx, again, true) {
		replies[at[i]] = reply
	}
}

// ask runs scripts on this master together.
func (n *node) ask(ctx context.Context, orders []*order, behind bool) []redisconn.Reply {
	if len(orders) == 1 {
		orders[0].call.Behind = behind
		v, err := n.run.Run(ctx, orders[0].call)
		n.reply[0] = redisconn.Reply{Value: v, Err: err}
		return n.reply[:]
	}
	calls := make([]redisconn.Call, len(orders))
	for i, o := range orders {
		calls[i] = o.call
	}
	return n.run.RunAll(ctx, calls)
}

// drain closes the node to new orders, and waits until it has carried out those that it has.
func (n *node) drain(ctx context.Context) {
	n.mu.Lock()
	n.closed = true
	n.some.Signal()
	n.mu.Unlock()
	select {
	case <-n.served:
	case <-ctx.Done():
	}
}
