//go:build unix

package foreigntest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// What stands in for Redisson behaves like it, with itself: who holds keeps others out, who waits is told and does not poll
// or sleep out the lease, and nothing stays.
func TestRedissonKinds(t *testing.T) {
	t.Parallel()
	for _, pair := range []struct {
		holder, waiter Kind
		leaves         string // behind
	}{
		{RedissonLock, RedissonLock, ""},
		{RedissonFenced, RedissonFenced, "redisson_lock_token:{fenced}"},
		{RedissonFair, RedissonFair, ""},
		{RedissonSpin, RedissonSpin, ""},
		{RedissonWrite, RedissonRead, ""},
		{RedissonRead, RedissonWrite, ""},
		{RedissonMulti, RedissonMulti, ""},
	} {
		t.Run(string(pair.holder+" "+pair.waiter), func(t *testing.T) {
			t.Parallel()
			server := servertest.Redis(t) // of its own, so that what is left is of this pair
			name := strings.TrimPrefix(string(pair.holder), "redisson-")
			if pair.holder == RedissonMulti {
				name = "one,two"
			}
			one := Start(t, pair.holder, []string{server.Addr()}, name, long)
			two := Start(t, pair.waiter, []string{server.Addr()}, name, long)
			one.MustLock(t, 0)
			two.MustNotLock(t, "another one")
			for key := range strings.SplitSeq(name, ",") {
				if left := ttl(t, server, key); left <= 0 || left > long {
					t.Errorf("the lock ends in %v, want %v at most", left, long)
				}
			}
			taken := lockSoon(two)
			one.MustUnlock(t)
			if err := <-taken; err != nil {
				t.Fatal(err)
			}
			if err := one.Unlock(); err == nil {
				t.Error("unlocks what it does not hold")
			}
			two.MustUnlock(t)
			for key := range strings.SplitSeq(name, ",") {
				if left := server.MustDo(t, "KEYS", "*"+key+"*"); left != pair.leaves {
					t.Errorf("%q stays, want %q", left, pair.leaves)
				}
			}
		})
	}
}

// A watchdog holds beyond the lease; who was killed holds for the rest of it.
func TestRedissonWatchdog(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	for _, kind := range []Kind{RedissonLock, RedissonRead, RedissonWrite} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			other := kind
			if kind == RedissonRead {
				other = RedissonWrite
			}
			one := Start(t, kind, []string{server.Addr()}, string(kind), -time.Second)
			two := Start(t, other, []string{server.Addr()}, string(kind), long)
			one.MustLock(t, 0)
			if _, err := two.Lock(2 * time.Second); !errors.Is(err, ErrTimeout) {
				t.Errorf("held by one that renews: %v, want %v", err, ErrTimeout)
			}
			one.Kill()
			two.MustLock(t, in)
		})
	}
}
