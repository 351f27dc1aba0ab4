//go:build linux || darwin

package redislock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// poller is a program that takes the lock by SET NX PX again and again until it has it.
type poller struct {
	name  string
	pause func() time.Duration
}

var pollers = []poller{
	{"every 20 ms", func() time.Duration { return 20 * time.Millisecond }},
	{"every 50 to 250 ms", func() time.Duration { return 50*time.Millisecond + rand.N(200*time.Millisecond) }},
}

// turns polls until the contest is over, and returns when it had the lock.
func (p poller) turns(over context.Context, c *contest, raw *redis.Client, name string) (got []time.Time, err error) {
	value := driver.NewID()
	for over.Err() == nil {
		if raw.SetNX(context.Background(), name, value, age).Val() {
			got = append(got, time.Now())
			if err := c.hold(alone); err != nil {
				return got, err
			}
			if n := foreignRelease.Run(context.Background(), raw, []string{name}, value).Val(); n != int64(1) {
				return got, fmt.Errorf("released %v locks, want its own", n)
			}
		}
		timer := time.NewTimer(p.pause())
		select {
		case <-timer.C:
		case <-over.Done():
			timer.Stop()
		}
	}
	return got, nil
}

// Eight clients of ours with eight goroutines each hand a lock to each other, and a program polls
// for it. Where it was seen holding it once, or ours were told that it might, it gets its turns;
// never do two hold.
func TestPollerGetsItsTurns(t *testing.T) {
	if testing.Short() {
		t.Skip("a contest: make proof")
	}
	const length = 6 * time.Second
	for _, told := range []bool{false, true} {
		for _, p := range pollers {
			name := p.name + map[bool]string{false: ", seen once", true: ", told"}[told]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m := newMeeting(t)
				raw := redis.NewClient(&redis.Options{Addr: m.Addr(), MaxRetries: -1})
				defer raw.Close()
				c := newContest(t, m)
				parameters := "?shared=true"
				if !told {
					parameters = ""
					seenOnce(t, m, raw)
				}
				over, cancel := context.WithTimeout(t.Context(), length)
				defer cancel()
				var group sync.WaitGroup
				var mu sync.Mutex
				ours := 0
				for range 8 {
					client := m.openWith(t, parameters, nil)
					for range 8 {
						group.Go(func() {
							n, err := takeTurns(over, c, client.Mutex("wanted"))
							if err != nil {
								t.Error(err)
							}
							mu.Lock()
							defer mu.Unlock()
							ours += n
						})
					}
				}
				got, err := p.turns(over, c, raw, "wanted")
				group.Wait()
				if err != nil {
					t.Error(err)
				}
				t.Logf("ours %d turns, the program %d", ours, len(got))
				if len(got) < 2 || ours == 0 {
					t.Errorf("in %v the program had the lock %d times, want 2 at least; ours %d times", length, len(got), ours)
				}
				for _, err := range c.ill {
					t.Error(err)
				}
			})
		}
	}
}

// seenOnce has ours wait for another program.
func seenOnce(t *testing.T, m meeting, raw *redis.Client) {
	t.Helper()
	if !raw.SetNX(t.Context(), "wanted", "theirs", age).Val() {
		t.Fatal("the name is not free")
	}
	client := m.open(t, nil)
	waiting := make(chan *interlock.Lease, 1)
	go func() {
		lease, _ := client.Mutex("wanted").Lock(t.Context())
		waiting <- lease
	}()
	m.stand(t, "wanted", 2)
	if err := raw.Del(t.Context(), "wanted").Err(); err != nil {
		t.Fatal(err)
	}
	if lease := <-waiting; lease == nil {
		t.Fatal("ours did not get the lock that another program had released")
	} else {
		m.release(t, lease)
	}
}

func takeTurns(over context.Context, c *contest, m *interlock.Mutex) (n int, err error) {
	for over.Err() == nil {
		lease, err := m.Lock(over)
		if over.Err() != nil {
			if err == nil {
				err = lease.Release()
			} else {
				err = nil // the contest is over
			}
			return n, err
		}
		if err != nil {
			return n, err
		}
		if err := c.hold(alone); err != nil {
			return n, err
		}
		if err := lease.Release(); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
