package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/wire"
)

// link is one client of ours behind a wire of its own.
type link struct {
	*wire.Wire
	client *interlock.Client
}

func newLink(t *testing.T, server *servertest.Server, parameters string, o interlock.Options, wrap func(driver.Driver) driver.Driver) *link {
	t.Helper()
	l := &link{Wire: wire.New(t, server.Addr())}
	d, err := driver.OpenURL(t.Context(), "redis://"+l.Addr()+parameters)
	if err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		d = wrap(d)
	}
	o.Logger, o.Patience = slog.New(slog.DiscardHandler), age
	if l.client, err = interlock.New(d, &o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		_ = l.client.Close() // there is nobody to tell
	})
	return l
}

// rest waits for a random part of d.
func rest(d time.Duration) {
	timer := time.NewTimer(rand.N(d))
	defer timer.Stop()
	<-timer.C
}

// faults are what can befall the link of a holder.
var faults = []func(*link) (heal func()){
	func(l *link) func() {
		l.Refuse()
		l.Cut()
		return func() { _ = l.Accept() }
	},
	func(l *link) func() { return l.Stall(wire.Both) },
	func(l *link) func() { return l.Stall(wire.Requests) },
	func(l *link) func() { return l.Stall(wire.Replies) },
}

const (
	linkTTL   = 1500 * time.Millisecond
	linkGrace = linkTTL / 3
)

// fates is what became of holders whose links failed.
type fates struct {
	raw   *redis.Client
	heart *heart

	mu          sync.Mutex
	count, late int
	least       time.Duration // from when one was told until its key went
}

// end lets the link of a holder fail at a random phase of the renewals, and compares when the lease ended here with when
// the key goes at the server.
func (f *fates) end(l *link, name string, fault func(*link) func()) error {
	began := time.Now()
	lease, err := l.client.Mutex(name).Lock(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release() }() // it is lost
	ended := make(chan time.Time, 1)
	context.AfterFunc(lease.Context(), func() { ended <- time.Now() })
	rest(linkTTL)
	heal := fault(l)
	defer heal()
	gone := f.raw.PExpireTime(context.Background(), name).Val() // or later, if a renewal was ahead of the fault
	told := <-ended
	if again := f.raw.PExpireTime(context.Background(), name).Val(); again > 0 {
		gone = again
	}
	end := time.UnixMilli(gone.Milliseconds())
	if (gone <= 0 || told.After(end)) && f.heart.stopped(began) {
		return errAgain
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if told.After(end) {
		f.late++
	}
	if left := end.Sub(told); f.count == 1 || left < f.least {
		f.least = left
	}
	return nil
}

// Whatever befalls a holder's link, its lease ends before the server lets in anybody else.
func TestHolderIsToldBeforeItsKeyIsGone(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	raw := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 50})
	defer raw.Close()
	const clients, twins, rounds = 40, 8, 5
	h := newHeart(t)
	told, twin := &fates{raw: raw, heart: h}, &fates{raw: raw, heart: h}
	var links []*link
	for range clients {
		links = append(links, newLink(t, server, "", interlock.Options{TTL: linkTTL, Grace: linkGrace}, nil))
	}
	for range twins {
		links = append(links, newLink(t, server, "", interlock.Options{TTL: linkTTL, Grace: noMargin}, func(d driver.Driver) driver.Driver { return trusting{d} }))
	}
	if err := all(len(links), func(i int) error {
		f := told
		if i >= clients {
			f = twin
		}
		for round := range rounds {
			if err := tries(func() error {
				return f.end(links[i], fmt.Sprintf("told/%d", i), faults[(i+round)%len(faults)])
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d told %v before the key went at the least; of %d without a margin %d were late", told.count, told.least, twin.count, twin.late)
	if told.late > 0 || told.count != clients*rounds {
		t.Errorf("%d of %d were told after their keys had gone", told.late, told.count)
	}
	if twin.late == 0 {
		t.Errorf("%d without a margin were all told in time: nothing is seen here", twin.count)
	}
}

// trusting is a driver that takes nothing off the time for which a claim can be trusted, nor lets the core.
type trusting struct{ driver.Driver }

// noMargin is the smallest grace there is.
const noMargin = 2 * time.Millisecond

func (d trusting) Open(ctx context.Context, s driver.Spec) (driver.Session, error) {
	session, err := d.Driver.Open(ctx, s)
	return trustingSession{session, s.TTL + noMargin}, err
}

type trustingSession struct {
	driver.Session
	valid time.Duration
}

func (s trustingSession) Valid() time.Duration { return s.valid }

func (s trustingSession) Renew(ctx context.Context) (driver.Renewal, error) {
	r, err := s.Session.Renew(ctx)
	r.Valid = s.valid
	return r, err
}

// Locks are given up while nothing comes through, or nothing comes back. A second after the link has healed nothing of
// them is left at the server.
func TestCancelledAcquiresLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, way := range []wire.Direction{wire.Replies, wire.Requests} {
		t.Run(way.String(), func(t *testing.T) {
			t.Parallel()
			server := servertest.Redis(t)
			raw := redis.NewClient(&redis.Options{Addr: server.Addr()})
			defer raw.Close()
			const clients, each = 10, 50
			h := newHeart(t)
			var links []*link
			for i := range clients {
				parameters := []string{"", "?timeout=1s"}[i%2] // so some requests are given up before the link heals
				links = append(links, newLink(t, server, parameters, interlock.Options{}, nil))
			}
			left := &leftovers{raw: raw, heart: h}
			if err := all(clients, func(i int) error {
				return tries(func() error {
					names, err := links[i].use(fmt.Sprintf("cancelled/%d", i), each)
					if err != nil {
						return err
					}
					heal := links[i].Stall(way)
					defer heal()
					if err := links[i].cancel(names); err != nil {
						return err
					}
					rest(1500 * time.Millisecond)
					heal()
					return left.watch(names)
				})
			}); err != nil {
				t.Fatal(err)
			}
			t.Logf("nothing was left after %v, at the most", left.longest)
		})
	}
}

// use uses the link, and makes names to use it for.
func (l *link) use(prefix string, n int) (names []string, err error) {
	lease, err := l.client.Mutex(prefix).Lock(context.Background())
	if err != nil {
		return nil, err
	}
	for i := range n {
		names = append(names, fmt.Sprintf("%s/%d", prefix, i))
	}
	if err := lease.Release(); err != nil && !errors.Is(err, interlock.ErrUncertain) {
		return nil, err
	}
	return names, nil
}

// cancel wants the locks, each for a moment only.
func (l *link) cancel(names []string) error {
	return all(len(names), func(i int) error {
		ctx, cancel := context.WithTimeout(context.Background(), rand.N(100*time.Millisecond))
		defer cancel()
		if _, err := l.client.Mutex(names[i]).Lock(ctx); err == nil {
			return fmt.Errorf("%s was acquired although nothing comes through", names[i])
		}
		return nil
	})
}

// leftovers is how long anything was left, at the most.
type leftovers struct {
	raw   *redis.Client
	heart *heart

	mu      sync.Mutex
	longest time.Duration
}

// watch looks at the names from now on, and for longer than anything may be left: also what comes late is seen.
func (l *leftovers) watch(names []string) error {
	var keys []string
	for _, name := range names {
		_, line, claims := sideKeys(name)
		keys = append(keys, name, line, claims)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	healed, seen := time.Now(), time.Duration(0)
	for time.Since(healed) < 1200*time.Millisecond {
		asked := time.Since(healed)
		if l.raw.Exists(context.Background(), keys...).Val() > 0 {
			seen = asked
		}
		<-tick.C
	}
	if seen > time.Second {
		if l.heart.stopped(healed) {
			return errAgain
		}
		return fmt.Errorf("of %s and others something was left %v after the link had healed", names[0], seen)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, seen)
	return nil
}

// The server itself stands still: the lease ends before its key can go, and what was asked for meanwhile and given up
// leaves nothing.
func TestServerStandsStill(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	raw := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	defer raw.Close()
	holder := newLink(t, server, "", interlock.Options{TTL: linkTTL, Grace: linkGrace}, nil)
	other := newLink(t, server, "?timeout=1s", interlock.Options{}, nil)
	h := newHeart(t)
	left := &leftovers{raw: raw, heart: h}
	if err := tries(func() error {
		names, err := other.use("asked", 50)
		if err != nil {
			return err
		}
		lease, err := holder.client.Mutex("held").Lock(t.Context())
		if err != nil {
			return err
		}
		defer func() { _ = lease.Release() }() // it is lost
		began := time.Now()
		gone := raw.PExpireTime(t.Context(), "held").Val()
		if err := server.Pause(); err != nil {
			return err
		}
		err = other.cancel(names)
		<-lease.Context().Done()
		late := time.Since(time.UnixMilli(gone.Milliseconds()))
		if err := errors.Join(err, server.Resume(), left.watch(names)); err != nil {
			return err
		}
		if late > 0 && h.stopped(began) {
			return errAgain
		}
		if late > 0 {
			return fmt.Errorf("the holder was told %v after its key could go", late)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
