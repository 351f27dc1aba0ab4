package redislock_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// clocked starts a server whose clock can be stepped.
func clocked(t *testing.T) *servertest.Server {
	t.Helper()
	s, err := servertest.Start(t.Context(), servertest.Options{Clock: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func step(t *testing.T, s *servertest.Server, d time.Duration) {
	t.Helper()
	if err := s.Step(d); err != nil {
		t.Fatal(err)
	}
}

// lasts is how much longer a claim stands at the name, by the server's clock, as people are shown
// it.
func lasts(t *testing.T, s *servertest.Server, name string) time.Duration {
	t.Helper()
	d, err := driver.OpenURL(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(context.Background()) }()
	line, err := d.(driver.Inspector).Line(t.Context(), name)
	if err != nil || len(line.Claims) == 0 {
		t.Fatalf("line of %s: %+v, %v", name, line, err)
	}
	seconds, _, _ := strings.Cut(s.MustDo(t, "TIME"), "\n")
	now, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return line.Claims[0].Until.Sub(time.Unix(now, 0))
}

// R4: the server's wall clock is stepped. Forward by more than a lease, the key goes at once: the
// holder is told by its next renewal at the latest. Back, the key of a dead holder stays for as
// long, which people can see, while a living one renews it to its right length. Tokens grow through
// all of it.
func TestR04_TheServersClockIsStepped(t *testing.T) {
	t.Parallel()
	const lives = 3 * time.Second
	for _, d := range []time.Duration{time.Second, -time.Second, lives, -lives, time.Hour, -time.Hour} {
		t.Run(d.String(), func(t *testing.T) {
			if testing.Short() && d.Abs() != lives {
				t.Skip("one step either way is enough here: make proof")
			}
			t.Parallel()
			s := clocked(t)
			a, b := open(t, s.URL(), ttl(lives)), open(t, s.URL(), ttl(lives))
			last := uint64(0)
			again := func(what string) {
				for range 2 {
					for _, c := range []*interlock.Client{a, b} {
						l := hold(t, c.Mutex("other"))
						last = grows(t, what, last, l)
						release(t, l)
					}
				}
			}
			again("before")
			lease := hold(t, a.Mutex("m"))
			readers := hold(t, shared{b.RWMutex("r")})
			start := time.Now()
			step(t, s, d)
			if d >= lives {
				for what, l := range map[string]*interlock.Lease{"the holder": lease, "the reader": readers} {
					if took := told(t, l).Sub(start); took > lives/3+time.Second && !testing.Short() {
						t.Errorf("%s was told after %v, want the next renewal after %v at most", what, took, lives/3)
					}
				}
			} else {
				if shown := lasts(t, s, "m"); d < -lives && shown < -d {
					t.Errorf("the key of a lease of %v is shown to last for %v after a step of %v", lives, shown, d)
				}
				// Two renewals later the length is right again.
				eventually(t, "the key has its right length", func() bool {
					return number(t, s, "PTTL", "m") <= int(lives.Milliseconds())
				})
				timer := time.NewTimer(lives)
				defer timer.Stop()
				select {
				case <-lease.Context().Done():
					t.Errorf("a lease that is renewed was lost: %v", lease.Err())
				case <-readers.Context().Done():
					t.Errorf("a read lease that is renewed was lost: %v", readers.Err())
				case <-timer.C:
				}
				release(t, lease, readers)
			}
			grows(t, "the stepped name", lease.Fence(), hold(t, b.Mutex("m")))
			again("after the step")
			c := open(t, s.URL(), ttl(lives)) // it has seen the stepped clock only
			l := hold(t, c.Mutex("other"))
			last = grows(t, "a new client", last, l)
			release(t, l)
			step(t, s, -d)
			again("after the step back")
		})
	}
}

// shared takes a read lock where hold wants something to Lock.
type shared struct{ *interlock.RWMutex }

func (m shared) Lock(ctx context.Context) (*interlock.Lease, error) { return m.RLock(ctx) }

// R4: the gap that is left for other programs ends by the server's clock. A clock that is set back
// must not make it last.
func TestR04_AGapEndsAlthoughTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	s := clocked(t)
	url := s.URL() + "?shared=true"
	a, b := open(t, url, ttl(ample)), open(t, url, ttl(ample))
	last := uint64(0)
	turns := func(n int) {
		lease := hold(t, a.Mutex("m"))
		for range n {
			waiting := asking(t.Context(), b.Mutex("m"))
			waitsFor(t, s, "m", 1)
			last = grows(t, "turn", last, lease)
			release(t, lease)
			lease = within(t, ample/2, "the gap for other programs ends", waiting).Lease
			a, b = b, a
		}
		release(t, lease)
	}
	turns(40) // at every 32nd a gap
	step(t, s, -time.Hour)
	start := time.Now()
	turns(5)
	if d := time.Since(start); d > ample/2 {
		t.Errorf("five turns took %v after the clock was set back", d)
	}
}

// R13: nobody's clock but the server's counts, and that only for lengths: a client an hour ahead or
// behind takes a lock for as long as any other, and no moment of its own clock is ever sent.
func TestR13_TheClientsClockDoesNotCount(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, -10 * time.Second, 10 * time.Second, time.Hour} {
		s := clocked(t)
		step(t, s, -ahead) // the server's clock: what the client's is ahead of
		w := wire.New(t, s.Addr())
		var mu sync.Mutex
		var sent strings.Builder
		w.Filter(wire.Requests, func(frame []byte) bool {
			mu.Lock()
			defer mu.Unlock()
			sent.Write(frame)
			return true
		})
		a, b := open(t, "redis://"+w.Addr(), ttl(time.Second)), open(t, "redis://"+w.Addr(), ttl(time.Second))
		lease := hold(t, a.Mutex("m"))
		if got := number(t, s, "PTTL", "m"); got <= 0 || got > 1000 {
			t.Fatalf("the client's clock is ahead by %v: the key lasts for %d ms, want up to the TTL of 1s", ahead, got)
		}
		waiting := asking(t.Context(), b.Mutex("m"))
		waitsFor(t, s, "m", 1)
		release(t, lease)
		next := get(t, waiting)
		if got := number(t, s, "PTTL", "m"); got <= 0 || got > 1000 {
			t.Errorf("the client's clock is ahead by %v: the key that was handed on lasts for %d ms, want up to the TTL of 1s", ahead, got)
		}
		release(t, next.Lease)
		release(t, hold(t, shared{a.RWMutex("r")}))
		mu.Lock()
		for _, word := range []string{"PXAT", "EXAT", "EXPIREAT"} {
			if strings.Contains(strings.ToUpper(sent.String()), word) {
				t.Errorf("the client sends %s: a moment of its clock", word)
			}
		}
		mu.Unlock()
	}
}
