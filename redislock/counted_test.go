package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redislock"
)

// counted is a client whose requests are counted, but for those with which the client itself greets
// a server.
type counted struct {
	*interlock.Client
	mu   sync.Mutex
	sent []bool // whether each is a script
}

func newCounted(t *testing.T, server *servertest.Server, o *interlock.Options) *counted {
	t.Helper()
	c := &counted{}
	w := wire.New(t, server.Addr())
	w.Filter(wire.Requests, func(frame []byte) bool {
		if !redistest.Overhead(frame) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.sent = append(c.sent, bytes.Contains(frame[:min(len(frame), 24)], []byte("EVAL")))
		}
		return true
	})
	c.Client = open(t, "redis://"+w.Addr(), o)
	return c
}

// cost is how many requests are sent until the last script of what. What follows that in the
// background holds up nobody: after a grant by a new connection the client asks for the server's
// time once.
func (c *counted) cost(what func()) int {
	c.settle()
	what()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.sent)
	for n > 0 && !c.sent[n-1] {
		n--
	}
	return n
}

// settle forgets what was sent, when nothing has been for a while.
func (c *counted) settle() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for quiet := false; !quiet; {
		c.mu.Lock()
		c.sent = nil
		c.mu.Unlock()
		<-tick.C
		c.mu.Lock()
		quiet = len(c.sent) == 0
		c.mu.Unlock()
	}
}

// The first lock of a process, a free lock and its release, a lock after the server has forgotten
// the scripts, and one after a rest in which the server has closed the connections.
func TestRequestsOfAFreeLock(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	c := newCounted(t, server, &interlock.Options{Idle: 200 * time.Millisecond})
	var lease *interlock.Lease
	lock := func() { lease = hold(t, c.Mutex("counted")) }
	unlock := func() { release(t, lease) }
	expect := func(what string, got, want int) {
		t.Helper()
		if got > want || got == 0 {
			t.Errorf("%s cost %d requests, want 1 to %d", what, got, want)
		}
	}
	expect("the first lock", c.cost(lock), 3)
	// Half a second later, and once for all, it listens for whoever breaks what it holds, and is
	// renewed after that.
	eventually(t, "the holder listens, and has been renewed after that", listensAndRenewed(t, server))
	unlock() // the first release tells the server its script
	for range 10 {
		expect("a free lock", c.cost(lock), 1)
		expect("its release", c.cost(unlock), 1)
	}
	server.MustDo(t, "SCRIPT", "FLUSH")
	expect("a lock after the scripts were forgotten", c.cost(lock), 2)
	expect("its release", c.cost(unlock), 2)

	rest := time.NewTimer(500 * time.Millisecond) // longer than Idle: the session is over
	defer rest.Stop()
	<-rest.C
	server.MustDo(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	expect("a lock after a long rest", c.cost(lock), 3+1) // the last asks the time for the next lock; nobody waits for it
	unlock()
}

// A lock goes to and fro between two clients whose goroutines want it all the time: each turn is
// one script, and the packets of its request, its answer and the message to the next one. Once a
// second the name rests for a moment, to see whether another program polls for it.
func TestPacketsOfAHandoff(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	a, b := s.actor(t), s.actor(t)
	name := s.name("handoff")
	packets := func() (n int64) {
		for _, c := range []*cable{a.first, a.rest, b.first, b.rest} {
			count := c.count()
			n += count.Requests.Packets + count.Replies.Packets
		}
		return n
	}
	mine, next := a.hold(mutex(name)), b.queue(mutex(name))
	turn := func() {
		waiting, again := b.waiting(next), mutex(name)
		g, held, err := a.session.(driver.Requeuer).Requeue(t.Context(), mine, again)
		if err != nil || !held || g.Held {
			t.Fatalf("requeue: %+v, %v, %v", g, held, err)
		}
		granted(t, waiting)
		mine, next, a, b = next, again, b, a
	}
	for range 10 {
		turn()
	}
	const handoffs = 1000
	began, scripts, sent := time.Now(), scriptsOf(t, server), packets()
	for range handoffs {
		turn()
	}
	rests := int64(time.Since(began)/time.Second) + 1 // each costs the one who comes back a question
	if n := scriptsOf(t, server) - scripts; n < handoffs || n > handoffs+2*rests {
		t.Errorf("%d handoffs took %d scripts, want one each, and up to %d after rests", handoffs, n, 2*rests)
	}
	n := packets() - sent
	t.Logf("%d handoffs, %d packets", handoffs, n)
	if n > 4*handoffs {
		t.Errorf("%d handoffs took %d packets, want 4 each at most", handoffs, n)
	}
}

// commandCount finds how often a command ran in INFO commandstats.
var commandCount = regexp.MustCompile(`(?m)^cmdstat_(evalsha|eval|fcall):calls=(\d+)`)

// scriptsOf is how many scripts the server has run.
func scriptsOf(t testing.TB, server *servertest.Server) (n int64) {
	t.Helper()
	text := server.MustDo(t, "INFO", "commandstats")
	for _, m := range commandCount.FindAllStringSubmatch(text, -1) {
		calls, _ := strconv.ParseInt(m[2], 10, 64)
		n += calls
	}
	return n
}

// A thousand leases of a process are renewed by a hundred a script.
func TestScriptsOfAThousandLeases(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	a := s.actor(t)
	const leases = 1000
	if err := all(leases, func(i int) error {
		g, err := a.session.Acquire(t.Context(), mutex(fmt.Sprintf("lease/%d", i)))
		if err == nil && !g.Held {
			err = fmt.Errorf("lease %d is not held", i)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.session.Renew(t.Context()); err != nil { // the first one tells the server its script
		t.Fatal(err)
	}
	before := scriptsOf(t, server)
	if r, err := a.session.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
		t.Fatalf("renew: %+v, %v", r, err)
	}
	if n := scriptsOf(t, server) - before; n > leases/100 {
		t.Errorf("%d leases were renewed by %d scripts, want %d at most", leases, n, leases/100)
	}
}

// A thousand claims of a process wait and nothing happens. For as long as no holder's time is over,
// that costs nothing but renewals.
func TestRequestsOfIdleWaiters(t *testing.T) {
	t.Parallel()
	s := newStage(t, servertest.Redis(t))
	const waiters, ttl = 1000, 2 * time.Second
	a, b := s.actor(t), s.actorWith(t, ttl, redislock.Options{Timeout: age})
	if err := all(waiters, func(i int) error {
		name := fmt.Sprintf("idle/%d", i)
		if g, err := a.session.Acquire(t.Context(), mutex(name)); err != nil || !g.Held {
			return fmt.Errorf("acquire: %+v, %w", g, err)
		}
		c := mutex(name)
		if err := tries(func() error { // one answer may take longer than this session's time
			g, err := b.session.Acquire(t.Context(), c)
			if err == nil && g.Held {
				return errors.New("a claim is held behind another")
			}
			if err != nil {
				return errAgain
			}
			return nil
		}); err != nil {
			return err
		}
		b.waiting(c)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	first, rest := b.first.calls(), b.rest.calls()
	const times = 2
	idle := time.NewTimer(times * ttl)
	defer idle.Stop()
	<-idle.C
	if n := first.Load() + rest.Load(); n > 0 {
		t.Errorf("%d waiters sent %d requests in %d times their TTL, want none", waiters, n, times)
	}
	if _, err := b.session.Renew(t.Context()); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	t.Logf("a renewal of %d that wait: %d requests", waiters, first.Load()+rest.Load())
}
