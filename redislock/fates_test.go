package redislock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

const (
	linkTTL   = 1500 * time.Millisecond
	linkGrace = linkTTL / 3
)

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

// fates is what became of holders whose links failed.
type fates struct {
	raw   *redis.Client
	heart *heart

	mu          sync.Mutex
	count, late int
	least       time.Duration // from when one was told until its key went
}

// end lets the link of a holder fail at a random phase of the renewals, and compares when the lease
// ended here with when the key goes at the server.
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
	if testing.Short() {
		t.Skip("a margin in time: make proof")
	}
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

// trusting is a driver that takes nothing off the time for which a claim can be trusted, nor lets
// the core.
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
