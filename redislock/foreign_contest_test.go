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

	"github.com/interlock-go/interlock/internal/foreigntest"
)

// enough is how often everybody in a contest gets the lock, at least.
const enough = 5

// contest is some parties that all want one lock all the time. Whoever holds it counts itself in and out again at a key
// beside the lock: one that finds somebody else there tells that the lock failed.
type contest struct {
	guard *redis.Client
	over  context.Context // of the contest's time
	group sync.WaitGroup

	mu    sync.Mutex
	turns map[string]int
	ill   []error
}

func newContest(t *testing.T, m meeting, length time.Duration) *contest {
	t.Helper()
	over, cancel := context.WithTimeout(t.Context(), length)
	t.Cleanup(cancel)
	guard := redis.NewClient(&redis.Options{Addr: m.Addr(), PoolSize: 100})
	t.Cleanup(func() { _ = guard.Close() })
	return &contest{guard: guard, over: over, turns: map[string]int{}}
}

// join lets somebody take part: lock waits for the lock until the contest is over and returns how to release it, or an
// error.
func (c *contest) join(name string, lock func() (unlock func() error, err error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns[name] = 0
	c.group.Go(func() {
		for c.over.Err() == nil {
			unlock, err := lock()
			if err == nil {
				err = errors.Join(c.hold(), unlock())
			} else if c.over.Err() != nil {
				return
			}
			c.note(name, err)
		}
	})
}

// hold is what is done under the lock.
func (c *contest) hold() error {
	ctx := context.WithoutCancel(c.over)
	in, err := c.guard.Incr(ctx, "guard").Result()
	if err != nil {
		return err
	}
	if in != 1 {
		err = fmt.Errorf("%d hold the lock at once", in)
	}
	return errors.Join(err, c.guard.Decr(ctx, "guard").Err())
}

func (c *contest) note(name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.ill = append(c.ill, fmt.Errorf("%s: %w", name, err))
		return
	}
	c.turns[name]++
}

// judge waits for the end and sees that the lock never failed and that nobody starved.
func (c *contest) judge(t *testing.T) {
	t.Helper()
	c.group.Wait()
	for _, err := range c.ill[:min(len(c.ill), 10)] {
		t.Error(err)
	}
	var most []int
	for name, n := range c.turns {
		most = append(most, n)
		if n < enough {
			t.Errorf("%s got the lock %d times, want %d at least", name, n, enough)
		}
	}
	slices.Sort(most)
	t.Logf("turns, by participant: %v", most)
}

// joinTheirs lets a client of another library take part.
func (c *contest) joinTheirs(theirs *foreigntest.Client) {
	c.join(string(theirs.Kind()), func() (func() error, error) {
		end, _ := c.over.Deadline()
		_, err := theirs.Lock(max(0, time.Until(end)))
		if errors.Is(err, foreigntest.ErrTimeout) {
			<-c.over.Done() // some give up when the time left is shorter than their pause
		}
		return theirs.Unlock, err
	})
}

// Three parties want one lock: a Python program, a Go program with another library, and eight clients of ours with eight
// goroutines each, who hand the lock to each other by themselves. Nobody starves, and never do two hold it.
func TestForeignContest(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	c := newContest(t, m, 10*time.Second)
	c.joinTheirs(m.theirs(t, foreigntest.RedisPy, "wanted", ages))
	c.joinTheirs(m.theirs(t, foreigntest.Redsync, "wanted", ages))
	for i := range 8 {
		mutex := m.open(t, nil).Mutex("wanted")
		for j := range 8 {
			c.join(fmt.Sprintf("goroutine %d of our client %d", j, i), func() (func() error, error) {
				lease, err := mutex.Lock(c.over)
				if err != nil {
					return nil, err
				}
				return lease.Release, nil
			})
		}
	}
	c.judge(t)
}
