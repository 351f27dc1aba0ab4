package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// message reports whether a reply is what somebody has published.
func message(frame []byte) bool {
	return bytes.Contains(frame[:min(len(frame), 20)], []byte("message"))
}

// R7: the server forgets scripts, by SCRIPT FLUSH as by a restart. No call notices: locks,
// hand-offs and shared ones.
func TestR07_ScriptsAreForgotten(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	a, b := open(t, s.URL(), nil), open(t, s.URL(), nil)
	last := uint64(0)
	for i := range 60 {
		if i%3 == 0 {
			s.MustDo(t, "SCRIPT", "FLUSH")
		}
		lease := hold(t, a.Mutex("m"))
		last = grows(t, "taken", last, lease)
		waiting := asking(t.Context(), b.Mutex("m"))
		waitsFor(t, s, "m", 1)
		if i%5 == 0 {
			s.MustDo(t, "SCRIPT", "FLUSH")
		}
		release(t, lease)
		next := get(t, waiting)
		last = grows(t, "handed on", last, next.Lease)
		release(t, next.Lease)
		release(t, hold(t, shared{a.RWMutex("r")}))
	}
}

// R7: nor does a renewal, which sends many scripts together.
func TestR07_ScriptsAreForgottenBetweenRenewals(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	for what, open := range map[string]opening{"by URL": byURL, "go-redis": byGoRedis} {
		d := open(t, s.Addr())
		session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ample})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range 250 {
			c := driver.Claim{Name: fmt.Sprint(what, i), ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
			if i >= 230 {
				c.Kind, c.Weight = driver.Read, 1
			}
			if g, err := session.Acquire(t.Context(), c); err != nil || !g.Held {
				t.Fatalf("%s: %+v, %v", what, g, err)
			}
			names = append(names, c.Name)
		}
		for range 3 {
			s.MustDo(t, each("for _, name in ipairs(KEYS) do redis.call('PEXPIRE', name, 20000) end", names)...)
			s.MustDo(t, "SCRIPT", "FLUSH")
			r, err := session.Renew(t.Context())
			if err != nil || len(r.Lost) > 0 {
				t.Errorf("%s: renewed after SCRIPT FLUSH: lost %d claims, %v", what, len(r.Lost), err)
			}
			late := each("local n = 0 for _, name in ipairs(KEYS) do if redis.call('PTTL', name) <= 20000 then n = n + 1 end end return n", names)
			if n := number(t, s, late...); n > 0 {
				t.Errorf("%s: %d of %d names were not renewed", what, n, len(names))
			}
		}
		s.MustDo(t, "SCRIPT", "FLUSH")
		if err := d.Close(t.Context()); err != nil {
			t.Errorf("%s: close after SCRIPT FLUSH: %v", what, err)
		}
		if n := number(t, s, append([]string{"EXISTS"}, names...)...); n != 0 {
			t.Fatalf("%s: %d names are still there after Close", what, n)
		}
	}
}

// each is a script over many names.
func each(script string, names []string) []string {
	return append([]string{"EVAL", script, strconv.Itoa(len(names))}, names...)
}

// R9: the message that tells of a grant is lost, and so is the one that tells of an end. Messages
// are only hints: the grant is found by the next renewal.
func TestR09_AMessageIsLost(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	w := wire.New(t, s.Addr())
	const lives = 6 * time.Second
	a, b, c := open(t, s.URL(), ttl(lives)), open(t, s.URL(), ttl(lives)), open(t, "redis://"+w.Addr(), ttl(lives))
	lease := hold(t, a.Mutex("m"))
	second := asking(t.Context(), b.Mutex("m"))
	waitsFor(t, s, "m", 1)
	third := asking(t.Context(), c.Mutex("m")) // not the head, which would look again by itself
	waitsFor(t, s, "m", 2)
	w.Filter(wire.Replies, func(frame []byte) bool { return !message(frame) })
	release(t, lease)
	next := get(t, second)
	released := time.Now()
	release(t, next.Lease)
	g := within(t, ample/2, "a renewal finds the grant whose message was lost", third)
	if d := g.at.Sub(released); d > lives/3+2*time.Second && !testing.Short() {
		t.Errorf("the grant was found after %v, want the next renewal after %v at most", d, lives/3)
	}
	if n := w.Count().Replies.Dropped; n == 0 {
		t.Error("no message was lost")
	}
	grows(t, "found", next.Fence(), g.Lease)
	release(t, g.Lease)
}

// R10: however many names are waited for, a process listens over one connection. The race detector
// would keep two gigabytes for ten thousand that wait, so make proof has a part without it.
func TestR10_ManyNamesAreWaitedForOverOneConnection(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	w := wire.New(t, s.Addr())
	long := &interlock.Options{TTL: 5 * time.Minute, Patience: 5 * time.Minute}
	a, b := open(t, s.URL(), long), open(t, "redis://"+w.Addr()+"?timeout=1m", long)
	total, many := 0, 10_000
	if raceDetector {
		many = 1000
	}
	for _, n := range []int{50, many} {
		var held []*interlock.Lease
		for i := range n {
			held = append(held, hold(t, a.Mutex(fmt.Sprintf("%d/%d", n, i))))
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		granted := make(chan error, n)
		for i := range n {
			go func() {
				l, err := b.Mutex(fmt.Sprintf("%d/%d", n, i)).Lock(ctx)
				if err == nil {
					err = l.Release()
				}
				granted <- err
			}()
		}
		eventually(t, "all wait", func() bool {
			return len(granted) > 0 || number(t, s, "LLEN", fmt.Sprintf("il:{%d/%d}:line:%[1]d/%[2]d", n, n-1)) == 1
		})
		// The last is not the last to be sent: look at them all, from the end.
		for i := n - 1; i >= 0 && len(granted) == 0; i -= max(1, n/100) {
			key := fmt.Sprintf("il:{%d/%d}:line:%[1]d/%[2]d", n, i)
			eventually(t, key, func() bool { return len(granted) > 0 || number(t, s, "LLEN", key) == 1 })
		}
		if c := w.Count(); c.Open > 3 {
			t.Fatalf("%d names are waited for over %d connections, want one for the messages and two for commands at most", n, c.Open)
		}
		for _, l := range held {
			release(t, l)
		}
		for range n {
			if err := <-granted; err != nil {
				t.Fatal(err)
			}
		}
		total += n
	}
	if c := w.Count(); c.Connections > 4 {
		t.Errorf("%d names took %d connections", total, c.Connections)
	}
}

// R11: calls are cancelled while their answers are under way, and no answer goes to another call.
// Each name has tokens of a range of its own, so that an answer that is not its own shows.
func TestR11_AnswersOfCancelledCalls(t *testing.T) {
	t.Parallel()
	for what, open := range map[string]opening{"by URL": byURL, "go-redis": byGoRedis} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			const (
				names = 16
				apart = 1 << 40
				rival = 2 // goroutines a name
			)
			s := servertest.Redis(t)
			for i := range names {
				s.MustDo(t, "SET", fmt.Sprintf("il:{n%d}:fence:n%[1]d", i), strconv.Itoa(1<<51+i*apart))
			}
			w := wire.New(t, s.Addr())
			client, err := interlock.New(open(t, w.Addr()), &interlock.Options{TTL: ample, Patience: ample})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			w.Delay(200*time.Microsecond, 2*time.Millisecond)
			var got, cancelled atomic.Int64
			var all sync.WaitGroup
			for i := range names {
				var mu sync.Mutex
				last := uint64(0)
				for range rival {
					all.Go(func() {
						// A busy machine cancels most: this goes on until there are some of both.
						few := func() bool { return got.Load() < 20 || cancelled.Load() < 20 }
						for n := 0; n < 60 || n < 3000 && few(); n++ {
							ctx, cancel := context.WithTimeout(t.Context(), rand.N(6*time.Millisecond))
							l, err := client.Mutex(fmt.Sprint("n", i)).Lock(ctx)
							switch {
							case errors.Is(err, context.DeadlineExceeded):
								cancelled.Add(1)
							case err != nil:
								t.Errorf("n%d: %v", i, err)
							default:
								got.Add(1)
								mu.Lock()
								if f := l.Fence(); f < uint64(1<<51+i*apart) || f >= uint64(1<<51+(i+1)*apart) {
									t.Errorf("n%d got the token %d of another name", i, f)
								} else if f <= last {
									t.Errorf("n%d got the token %d after %d", i, f, last)
								} else {
									last = f
								}
								mu.Unlock()
								if err := l.Release(); err != nil {
									t.Errorf("n%d: %v", i, err)
								}
							}
							cancel()
						}
					})
				}
			}
			all.Wait()
			t.Logf("%d granted, %d cancelled", got.Load(), cancelled.Load())
			if got.Load() < 20 || cancelled.Load() < 20 {
				t.Errorf("%d granted and %d cancelled: want many of both", got.Load(), cancelled.Load())
			}
			w.Delay(0, 0)
			if t.Failed() {
				return
			}
			for i := range names { // nothing of the cancelled calls stays
				key := fmt.Sprint("n", i)
				eventually(t, key+" is free", func() bool { return s.MustDo(t, "EXISTS", key) == "0" })
			}
		})
	}
}
