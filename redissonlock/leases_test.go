//go:build linux || darwin

package redissonlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A reader whose own time is over is lost, although the hash lives for other readers.
func TestReaderExpiresAmongReaders(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, redistest.Durable...)
	for _, by := range []string{"Acquire", "Renew"} {
		short, long := newActor(t, byURL(t, server.Addr()), 300*time.Millisecond), newActor(t, byURL(t, server.Addr()), ages)
		dies, lives := claimOf(driver.Read, "readers by "+by), claimOf(driver.Read, "readers by "+by)
		short.holds(dies)
		long.holds(lives)
		until(t, "the first reader does not expire", func() bool {
			keys, err := server.Do("KEYS", "*readers by "+by+"*rwlock_timeout*")
			return err == nil && strings.Count(keys, "rwlock_timeout") == 1
		})
		if by == "Acquire" {
			if g, err := short.s.Acquire(t.Context(), dies); !errors.Is(err, driver.ErrGone) {
				t.Errorf("Acquire of a reader that had expired: %+v, %v: want %v", g, err, driver.ErrGone)
			}
		} else if r, err := short.s.Renew(t.Context()); err != nil || len(r.Lost) != 1 || r.Lost[0].ID != dies.ID {
			t.Errorf("Renew with a reader that had expired: %+v, %v: want it lost", r, err)
		}
		short.releases(dies, false)
		long.releases(lives, true)
	}
}

// A reader with a short lease that renews does not shorten the lease of another.
func TestReaderShortensNobody(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, redistest.Durable...)
	short, long := newActor(t, byURL(t, server.Addr()), time.Second), newActor(t, byURL(t, server.Addr()), ages)
	one, other := claimOf(driver.Read, "shorten"), claimOf(driver.Read, "shorten")
	long.holds(other)
	left := func(when string) {
		t.Helper()
		ms, err := server.Do("PTTL", "shorten")
		if err != nil || len(ms) < 5 { // fewer than 10 s of a minute
			t.Errorf("%s, the hash ends in %s ms, %v: want the time of the reader with the longer lease", when, ms, err)
		}
	}
	short.holds(one)
	left("after the take")
	short.holds(one)
	left("after the claim was asked for again")
	if _, err := short.s.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	left("after the renewal")
	short.releases(one, true)
	left("after the release")
	long.releases(other, true)
}

// The tokens start again where a server has lost its counter, and the traits say so.
func TestTokensAreAsDurableAsTheServer(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	d := byURL(t, server.Addr())
	if got := d.Traits().Fence; got != driver.UntilRestart {
		t.Errorf("without a log tokens are %v, want %v", got, driver.UntilRestart)
	}
	take := func() uint64 {
		d := byURL(t, server.Addr())
		defer func() { _ = d.Close(t.Context()) }()
		a, c := newActor(t, d, ages), claimOf(driver.Mutex, "restart")
		defer a.releases(c, true)
		return a.holds(c).Fence
	}
	if one, two := take(), take(); one != 1 || two != 1+driver.Stride {
		t.Errorf("the first tokens are %d and %d, want 1 and %d", one, two, 1+driver.Stride)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := take(); again != 1 {
		t.Errorf("after the counter was lost the token is %d, want 1 as Redisson counts", again)
	}
	logged := servertest.Redis(t, redistest.Durable...)
	if got := byURL(t, logged.Addr()).Traits().Fence; got != driver.Durable {
		t.Errorf("with a log that is written at once tokens are %v, want %v", got, driver.Durable)
	}
}
