package flawed

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// What people get wrong on one Redis: each is the honest lock but for what it writes anew.

// forever has no expiry: who dies with the lock keeps it.
type forever struct{ honest }

func (f forever) acquire(ctx context.Context, g *grip, _ time.Duration) (bool, error) {
	return yes(f.redis.Do(ctx, f.redis.B().Setnx().Key(g.key).Value(g.value).Build()))
}

// twoSteps has an expiry, unless it dies, or loses its connection, in the middle.
type twoSteps struct{ honest }

func (t twoSteps) acquire(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	held, err := yes(t.redis.Do(ctx, t.redis.B().Setnx().Key(g.key).Value(g.value).Build()))
	if err != nil || !held {
		return false, err
	}
	return yes(t.redis.Do(ctx, t.redis.B().Pexpire().Key(g.key).Milliseconds(ttl.Milliseconds()).Build()))
}

// plainDelete deletes the key without a comparison: that of the next holder, when it comes late.
type plainDelete struct{ honest }

func (p plainDelete) release(ctx context.Context, g *grip) (bool, error) {
	return yes(p.redis.Do(ctx, p.redis.B().Del().Key(g.key).Build()))
}

// oneValue compares before it deletes and extends, and is always right.
type oneValue struct{ honest }

func (oneValue) value(*grip) string { return "1" }

// clientClocks is the lock that the documentation of SETNX once taught: the value is the time at
// which the lock may be taken away, by the clock of its writer, and all others compare it with
// their own clocks.
type clientClocks struct {
	honest
	skew time.Duration
}

func (c clientClocks) value(g *grip) string { return g.value } // it has the time in it

func (c clientClocks) now() time.Time { return time.Now().Add(c.skew) }

func (c clientClocks) stamp(g *grip, ttl time.Duration) string {
	return fmt.Sprintf("%d %s", c.now().Add(ttl).UnixMilli(), g.id)
}

func (c clientClocks) over(value string) bool {
	until, _, _ := strings.Cut(value, " ")
	ms, err := strconv.ParseInt(until, 10, 64)
	return err == nil && time.UnixMilli(ms).Before(c.now())
}

func (c clientClocks) acquire(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	g.value = c.stamp(g, ttl)
	held, err := yes(c.redis.Do(ctx, c.redis.B().Setnx().Key(g.key).Value(g.value).Build()))
	if err != nil || held {
		return held, err
	}
	before, err := c.redis.Do(ctx, c.redis.B().Get().Key(g.key).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return false, nil // it was released meanwhile
	}
	if err != nil || !c.over(before) {
		return false, err
	}
	before, err = c.redis.Do(ctx, c.redis.B().Getset().Key(g.key).Value(g.value).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return true, nil
	}
	return err == nil && c.over(before), err
}

func (c clientClocks) renew(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	next := c.stamp(g, ttl)
	held, err := yes(compareAndSet.Exec(ctx, c.redis, []string{g.key}, []string{g.value, next}))
	if held {
		g.value = next
	}
	return held, err
}

// replyTime trusts a renewal from the moment at which it heard of it.
type replyTime struct{ honest }

func (replyTime) valid(ttl, took time.Duration) time.Duration { return ttl + took }

// revive extends by setting the key anew: also when it is gone, or somebody else's.
type revive struct{ honest }

func (r revive) renew(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	return done(r.redis.Do(ctx, r.redis.B().Set().Key(g.key).Value(g.value).Px(ttl).Build()))
}
