//go:build linux || darwin

package redissonlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// The holder releases after a waiter has looked and before it listens: nobody tells it, so it has
// to look again.
func TestReleaseBetweenLookAndListen(t *testing.T) {
	t.Parallel()
	_, g, holder, waiter := newGated(t)
	mine := holder.takes(driver.Mutex, "look")
	g.set(func(g *gate) { g.listen = func() { holder.releases(mine, true) } })
	next := claimOf(driver.Mutex, "look")
	next.Queue = true
	grant, err := waiter.s.Acquire(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	if !grant.Held {
		if err := within(t, "the one who looked before the release", waiter.waits(next)); err != nil {
			t.Error(err)
		}
	}
	waiter.releases(next, true)
}

// A message comes while the waiter asks because of an earlier one: the answer that is under way is
// too old to sleep on.
func TestMessageWhileAsking(t *testing.T) {
	t.Parallel()
	server, g, holder, waiter := newGated(t)
	mine, next := holder.takes(driver.Mutex, "asking"), waiter.queues(driver.Mutex, "asking")
	asked, told := make(chan struct{}), make(chan struct{})
	g.set(func(g *gate) {
		g.after = func(redisconn.Command, any, error) {
			close(asked)
			<-told
		}
	})
	got := waiter.waits(next)
	server.MustDo(t, "PUBLISH", "redisson_lock__channel:{asking}", "0")
	within(t, "the question", asked)
	holder.releases(mine, true)
	// The message of the release has reached the waiter's process when one that was sent behind it
	// on the same connection has: another name's waiter there shows it.
	other, gone := holder.takes(driver.Mutex, "asking too"), waiter.queues(driver.Mutex, "asking too")
	second := waiter.waits(gone)
	holder.releases(other, true)
	if err := within(t, "the other name's waiter", second); err != nil {
		t.Fatal(err)
	}
	close(told)
	if err := within(t, "the one who was asking", got); err != nil {
		t.Fatal(err)
	}
	waiter.releases(next, true)
	waiter.releases(gone, true)
}

// A claim that is known to be gone is asked for once more. It is not put there again.
func TestGoneIsNotTakenAgain(t *testing.T) {
	t.Parallel()
	server, _, other, mine := newGated(t)
	c := mine.takes(driver.Mutex, "gone")
	server.MustDo(t, "DEL", "gone")
	if r, err := mine.s.Renew(t.Context()); err != nil || len(r.Lost) != 1 {
		t.Fatalf("Renew of a claim that was deleted: %+v, %v: want it lost", r, err)
	}
	if g, err := mine.s.Acquire(t.Context(), c); !errors.Is(err, driver.ErrGone) {
		t.Fatalf("Acquire of a claim that is gone: %+v, %v: want ErrGone", g, err)
	}
	other.takes(driver.Mutex, "gone")
	mine.releases(c, false)
}

// A request that was given up arrives after the claim's release. It takes nothing.
func TestLateRequest(t *testing.T) {
	t.Parallel()
	server, g, b, a := newGated(t)
	for _, kind := range []driver.Kind{driver.Mutex, driver.Write, driver.Read} {
		for _, queue := range []bool{false, true} {
			name := fmt.Sprintf("late %v %v", kind, queue)
			a.releases(a.takes(kind, name), true) // the server knows the script
			late := claimOf(kind, name)
			late.Queue = queue
			var request redisconn.Command
			g.set(func(g *gate) {
				g.do = func(cmd redisconn.Command) (any, error, bool) {
					request = cmd
					return nil, errLost, true
				}
			})
			if _, err := a.s.Acquire(t.Context(), late); !errors.Is(err, errLost) {
				t.Fatalf("Acquire: %v, want %v", err, errLost)
			}
			a.releases(late, false)
			if _, err := g.Conn.Do(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			other := driver.Mutex
			if kind != driver.Mutex {
				other = driver.Write
			}
			b.releases(b.takes(other, name), true)
			if n, err := server.Do("EXISTS", name); err != nil || n != "0" {
				t.Errorf("%s: the key is there (%s, %v) when nobody holds", name, n, err)
			}
		}
	}
}

// The connection that listens ends while somebody waits, and the holder releases before it is made
// again.
func TestListenerEnds(t *testing.T) {
	t.Parallel()
	server, g, holder, waiter := newGated(t)
	mine, next := holder.takes(driver.Mutex, "deaf"), waiter.queues(driver.Mutex, "deaf")
	got := waiter.waits(next)
	g.set(func(g *gate) { g.listen = func() { holder.releases(mine, true) } })
	server.MustDo(t, "CLIENT", "KILL", "TYPE", "pubsub")
	if err := within(t, "the one whose connection was ended", got); err != nil {
		t.Fatal(err)
	}
	waiter.releases(next, true)
}

// What nobody waits for any more is listened to no more, however those who waited gave up; and who
// comes while a channel is being given up is told all the same.
func TestChannelsGoWithTheLastWaiter(t *testing.T) {
	t.Parallel()
	server, g, holder, waiter := newGated(t)
	channels := func() string { return server.MustDo(t, "PUBSUB", "CHANNELS", "*{channels}*") }
	for round := range 3 {
		mine := holder.takes(driver.Mutex, "channels")
		gone := claimOf(driver.Mutex, mine.Name) // gives up while its channel is being asked for
		gone.Queue = true
		ctx, cancel := context.WithCancel(t.Context())
		back := make(chan struct{})
		g.set(func(g *gate) {
			g.subscribe = func() {
				cancel()
				<-back
			}
		})
		_, err := waiter.s.Acquire(ctx, gone)
		cancel()
		close(back)
		g.set(func(g *gate) { g.subscribe = nil })
		if round == 0 && err == nil {
			t.Error("the Acquire was answered although it was cancelled while it subscribed")
		}
		waiter.releases(gone, false)
		if round != 1 { // the second time somebody comes at once
			until(t, "channels that nobody waits for are listened to", func() bool { return channels() == "" })
		}
		next := waiter.queues(driver.Mutex, mine.Name)
		if got := channels(); !strings.Contains(got, "{channels}") {
			t.Errorf("somebody waits, and listened to is %q", got)
		}
		got := waiter.waits(next)
		holder.releases(mine, true)
		if err := within(t, "the one who waits", got); err != nil {
			t.Fatal(err)
		}
		waiter.releases(next, true)
	}
}
