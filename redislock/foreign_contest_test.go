//go:build linux || darwin

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/foreigntest"
)

// enough is how often everybody in a contest gets the lock, at least.
const enough = 5

// contest is some parties that all want one lock all the time. Whoever holds it adds itself to a
// number beside the lock and takes itself away again: one that finds somebody there who should not
// be tells that the lock failed.
type contest struct {
	guard   *redis.Client
	parties []party

	mu    sync.Mutex
	turns map[string]int
	ill   []error
}

type party struct {
	name   string
	weight int64 // alone, or 1 for one that shares the lock with its like
	lock   locking
}

// locking waits for the lock until the contest is over, and returns how to release it, or an error.
type locking func(over context.Context) (unlock func() error, err error)

// alone is the weight of a holder beside whom nobody may be; no contest has so many others.
const alone = 1000

func newContest(t *testing.T, m meeting) *contest {
	t.Helper()
	guard := redis.NewClient(&redis.Options{Addr: m.Addr(), PoolSize: 100})
	t.Cleanup(func() { _ = guard.Close() })
	return &contest{guard: guard, turns: map[string]int{}}
}

func (c *contest) join(name string, weight int64, lock locking) {
	c.parties = append(c.parties, party{name, weight, lock})
}

// joinTheirs lets a client of another library take part.
func (c *contest) joinTheirs(theirs *foreigntest.Client) {
	c.join(string(theirs.Kind()), alone, func(over context.Context) (func() error, error) {
		end, _ := over.Deadline()
		_, err := theirs.Lock(max(0, time.Until(end)))
		if errors.Is(err, foreigntest.ErrTimeout) {
			<-over.Done() // some give up when the time left is shorter than their pause
		}
		return theirs.Unlock, err
	})
}

// run is the contest. It sees that the lock never fails and that nobody starves.
func (c *contest) run(t *testing.T, length time.Duration) {
	t.Helper()
	over, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var group sync.WaitGroup
	for _, p := range c.parties {
		group.Go(func() {
			for over.Err() == nil {
				c.turn(over, p)
			}
		})
	}
	group.Wait()
	for _, err := range c.ill[:min(len(c.ill), 10)] {
		t.Error(err)
	}
	var all []int
	for _, p := range c.parties {
		n := c.turns[p.name]
		all = append(all, n)
		if n < enough {
			t.Errorf("%s got the lock %d times, want %d at least", p.name, n, enough)
		}
	}
	slices.Sort(all)
	t.Logf("turns of each: %v", all)
}

func (c *contest) turn(over context.Context, p party) {
	unlock, err := p.lock(over)
	if err == nil {
		err = errors.Join(c.hold(p.weight), unlock())
	} else if over.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.ill = append(c.ill, fmt.Errorf("%s: %w", p.name, err))
		return
	}
	c.turns[p.name]++
}

// hold is what is done under the lock.
func (c *contest) hold(weight int64) error {
	ctx := context.Background() // the contest may be over
	there, err := c.guard.IncrBy(ctx, "guard", weight).Result()
	if err != nil {
		return err
	}
	if there > alone || weight == alone && there != alone {
		err = fmt.Errorf("%d hold the lock alone and %d share it, all at once", there/alone, there%alone)
	}
	return errors.Join(err, c.guard.DecrBy(ctx, "guard", weight).Err())
}

// Three parties want one lock: a Python program, a Go program with another library, and eight
// clients of ours with eight goroutines each, who hand the lock to each other by themselves. Nobody
// starves, and never do two hold it.
func TestForeignContest(t *testing.T) {
	if testing.Short() {
		t.Skip("a contest: make proof")
	}
	for _, variant := range []struct {
		name       string
		parameters string // of our URL
		readers    bool   // half of our clients share the lock among each other
	}{
		{name: "seen"},
		{name: "told", parameters: "?shared=true"},
		{name: "readers", readers: true},
	} {
		t.Run(variant.name, func(t *testing.T) {
			t.Parallel()
			m := newMeeting(t)
			c := newContest(t, m)
			python := m.theirs(t, foreigntest.RedisPy, "wanted", ages)
			c.joinTheirs(python)
			c.joinTheirs(m.theirs(t, foreigntest.Redsync, "wanted", ages))
			for i := range 8 {
				client := m.openWith(t, variant.parameters, nil)
				lock, weight := client.RWMutex("wanted").Lock, int64(alone)
				if variant.readers && i%2 == 0 {
					lock, weight = client.RWMutex("wanted").RLock, 1
				}
				for j := range 8 {
					c.join(fmt.Sprintf("goroutine %d of our client %d", j, i), weight, func(over context.Context) (func() error, error) {
						lease, err := lock(over)
						if err != nil {
							return nil, err
						}
						return lease.Release, nil
					})
				}
			}
			if variant.parameters == "" {
				m.meet(t, python) // so ours know that others use the name
			}
			c.run(t, 10*time.Second)
		})
	}
}

// meet has ours wait for a client of another library.
func (m meeting) meet(t *testing.T, theirs *foreigntest.Client) {
	t.Helper()
	client := m.open(t, nil)
	theirs.MustLock(t, 0)
	waiting := make(chan *interlock.Lease)
	go func() {
		lease, _ := client.Mutex(theirs.Key()).Lock(t.Context())
		waiting <- lease
	}()
	m.stand(t, theirs.Key(), 2)
	theirs.MustUnlock(t)
	if lease := <-waiting; lease == nil {
		t.Fatal("ours did not get the lock that another program had released")
	} else {
		m.release(t, lease)
	}
}
