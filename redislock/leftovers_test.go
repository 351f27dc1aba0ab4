package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// leftovers is how long anything was left, at the most.
type leftovers struct {
	raw   *redis.Client
	heart *heart

	mu      sync.Mutex
	longest time.Duration
}

// watch looks at the names from now on, and for longer than anything may be left: also what comes
// late is seen.
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

// Locks are given up while nothing comes through, or nothing comes back. A second after the link
// has healed nothing of them is left at the server.
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

// The server itself stands still: the lease ends before its key can go, and what was asked for
// meanwhile and given up leaves nothing.
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
