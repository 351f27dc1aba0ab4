//go:build linux || darwin

package redissonlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/foreigntest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// patient is a TTL longer than a failover takes, with a third that a test can wait for.
const patient = 15 * time.Second

// Somebody holds and somebody waits, of each kind, when the master of Sentinels dies. Where the
// replica knew of the holds they go on, and the waiters are woken by the release at the new master.
// Where it did not, the holders are told at their next renewal, and the waiters get in without
// them. Afterwards the locks work as before, for Redisson at the new master as well.
func TestSentinelFailover(t *testing.T) {
	for what, lost := range map[string]bool{"nothing is lost": false, "the last writes are lost": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := servertest.Sentinel(t)
			m := meeting{"redisson" + strings.TrimPrefix(s.URL(), "redis"), s.Master, func(string) *servertest.Server { return s.Master }}
			ttl := ages // so that waiters can only be woken by messages over subscriptions that were made again
			if lost {
				ttl = patient
			}
			holder, waiter := m.open(t, ttl), m.open(t, ttl)
			stands := []*standoff{
				{name: "mutex", holds: mutexes, waits: mutexes},
				{name: "writer", holds: writers, waits: writers},
				{name: "reader", holds: readers, waits: writers},
			}
			if lost {
				redistest.Isolate(t, s)
			}
			for _, o := range stands {
				o.begin(t, m, holder, waiter)
				if !lost {
					until(t, "the replica does not hear of the hold", func() bool {
						n, err := s.Replica.Do("HLEN", o.name)
						return err == nil && n != "0"
					})
				}
			}
			if err := s.Failover(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.node = s.Master
			for _, o := range stands {
				if lost {
					told(t, o.lease)
				} else {
					o.keeps(t)
				}
				got := within(t, "the "+o.waits.name+" that waits at "+o.name, o.waiting)
				if got.err != nil {
					t.Fatalf("%s: %v", o.name, got.err)
				}
				if !lost && got.lease.Fence() <= o.lease.Fence() {
					t.Errorf("%s: token %d after %d, although no counter was lost", o.name, got.lease.Fence(), o.lease.Fence())
				}
				if _, err := o.holds.try(t.Context(), holder, o.name); !errors.Is(err, interlock.ErrHeld) {
					t.Errorf("%s: a try while the next one holds: %v, want %v", o.name, err, interlock.ErrHeld)
				}
				released(t, got.lease)
			}
			m.bothWays(t, foreigntest.RedissonLock, mutexes, "afterwards")
			m.bothWays(t, foreigntest.RedissonWrite, readers, "and afterwards")
		})
	}
}

// standoff is a hold of a name, and a claim of another client that waits for it.
type standoff struct {
	name         string
	holds, waits shape
	lease        *interlock.Lease
	waiting      <-chan started
}

func (o *standoff) begin(t *testing.T, m meeting, holder, waiter *interlock.Client) {
	t.Helper()
	o.lease = taken(t, holder, o.holds, o.name)
	o.waiting = taking(t, waiter, o.waits, o.name)
	m.listened(t, o.name)
}

// keeps sees that the hold has survived, and ends it.
func (o *standoff) keeps(t *testing.T) {
	t.Helper()
	select {
	case got := <-o.waiting:
		t.Fatalf("%s: the one that waits got in while somebody holds (%v)", o.name, got.err)
	default:
	}
	if err := o.lease.Err(); err != nil {
		t.Fatalf("%s: %v, want the hold to go on: the replica knew of it", o.name, err)
	}
	if err := o.lease.Release(); err != nil && !errors.Is(err, interlock.ErrUncertain) { // which goes on in the background
		t.Errorf("%s: %v", o.name, err)
	}
}

// told waits until a holder hears that its hold is lost: at its next renewal, a third of the TTL
// later at most.
func told(t *testing.T, l *interlock.Lease) {
	t.Helper()
	redistest.Receive(t, patient, "a hold that the new master does not know ends", l.Context().Done())
	if err := context.Cause(l.Context()); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("the holder is told %v, want %v", err, interlock.ErrLost)
	}
	if err := l.Release(); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("release of a hold that was lost: %v, want %v", err, interlock.ErrLost)
	}
}
