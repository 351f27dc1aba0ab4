package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redislock"
)

// What a crowd asks goes to the server by the hundred, before the last answers are there. The rest
// is not forgotten when they are: it is fewer than would go before.
func TestBatch_SeveralAreUnderWay(t *testing.T) {
	t.Parallel()
	const crowd = 340 // one alone, two times a hundred, and the rest
	s := servertest.Redis(t)
	w := wire.New(t, s.Addr())
	client := open(t, "redis://"+w.Addr(), ttl(ample))
	release(t, hold(t, client.Mutex("first")))
	heal := w.Stall(wire.Replies)
	t.Cleanup(heal)
	crowded, over := context.WithCancel(t.Context())
	defer over()
	turn := func(i int) error {
		ctx, cancel := context.WithTimeout(crowded, 2*prompt)
		defer cancel()
		l, err := client.Mutex(fmt.Sprint("m", i)).TryLock(ctx)
		if err == nil {
			err = l.Release()
		}
		return err
	}
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() {
			for range 20 { // of which the first meets the stall, and the crowd's end leaves few behind the last requests
				err := turn(i)
				if crowded.Err() != nil {
					return
				}
				if err != nil {
					t.Errorf("m%d: %v; want it sent when the last request under way is answered", i, err)
					over()
				}
			}
		})
	}
	held := func() int { return len(strings.Fields(s.MustDo(t, "KEYS", "m*"))) }
	eventually(t, "three requests are carried out", func() bool { return held() >= 201 })
	if n := held(); n != 201 {
		t.Errorf("%d names are held while no answer comes, want 1 + 100 + 100", n)
	}
	heal()
	all.Wait()
	if n := held(); n != 0 {
		t.Errorf("%d names are held, want none", n)
	}
}

// Requests that go to the server together are refused together where the user lacks the right to
// one of the names. Nobody is refused a name for the sake of another.
func TestBatch_OneNameIsRefused(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	s.MustDo(t, append([]string{"ACL", "SETUSER", "locker", "on", ">pw"}, strings.Fields(redislock.ACL(redislock.Options{}, "a/*"))...)...)
	client := open(t, "redis://locker:pw@"+s.Addr(), ttl(ample))
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for range 20 {
				if i%4 == 0 {
					if _, err := client.Mutex(fmt.Sprint("b/", i)).TryLock(t.Context()); !errors.Is(err, driver.ErrRefused) {
						t.Errorf("a name that is not ours: %v", err)
					}
					continue
				}
				l, err := client.Mutex(fmt.Sprint("a/", i)).TryLock(t.Context())
				if err == nil {
					err = l.Release()
				}
				if err != nil {
					t.Errorf("a name that is ours: %v", err)
				}
			}
		})
	}
	all.Wait()
}

// A script that meets an error has done what comes before it. Where a name's counter is somebody's
// data, the lock is refused, and the name does not stay taken.
func TestTake_NothingStaysOfARefusal(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	client := open(t, s.URL(), ttl(ample))
	s.MustDo(t, "RPUSH", "il:{m}:fence:m", "data")
	_, err := client.Mutex("m").TryLock(t.Context())
	damaged(t, "try", err, "il:{m}:fence:m")
	eventually(t, "the name is free", func() bool { return s.MustDo(t, "EXISTS", "m") == "0" })
}
