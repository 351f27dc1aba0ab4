package flawed

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Flaw is one of the wrong locks.
type Flaw struct {
	Name  string // in its URL
	Title string
}

// Flaws are all there are.
func Flaws() []Flaw {
	var out []Flaw
	for _, k := range kinds {
		if k.Title != noFlaw {
			out = append(out, k.Flaw)
		}
	}
	return out
}

type kind struct {
	Flaw
	make func(honest, options) lock
	over func(quorum) quorum // of a lock over several masters
}

const (
	noFlaw = "no flaw"
	pooler = "pooled" // no locks of Redis
	face   = "face-value"
	lapsed = "lapsed"      // in etcd, and
	lease  = "leased"      // the same without the flaw
	anew   = "unprotected" // in ZooKeeper, and
	sought = "protected"   // the same without the flaw
)

// kinds are the locks.
var kinds = []kind{
	{Flaw{"honest", noFlaw}, func(h honest, _ options) lock { return h }, nil},
	{Flaw{"forever", "SETNX without expiry"}, func(h honest, _ options) lock { return forever{h} }, nil},
	{Flaw{"two-steps", "SETNX, then EXPIRE as a second command"}, func(h honest, _ options) lock { return twoSteps{h} }, nil},
	{Flaw{"plain-delete", "plain DEL on release"}, func(h honest, _ options) lock { return plainDelete{h} }, nil},
	{Flaw{"one-value", "one value for all clients"}, func(h honest, _ options) lock { return oneValue{h} }, nil},
	{Flaw{"client-clocks", "GETSET with the clients' clocks"}, func(h honest, o options) lock { return clientClocks{h, o.skew} }, nil},
	{Flaw{"reply-time", "validity counted from the reply"}, func(h honest, _ options) lock { return replyTime{h} }, nil},
	{Flaw{"promoted", "a replica promoted before it had the key"}, func(h honest, _ options) lock { return h }, nil},
	{Flaw{"revive", "an extend that revives"}, func(h honest, _ options) lock { return revive{h} }, nil},
	{Flaw{"watchdog", "a goroutine for each lock, which nobody ends"}, func(h honest, _ options) lock { return watchdog{h} }, nil},
	{Flaw{"unclosed", "a connection for each lock, which nobody closes"}, func(h honest, o options) lock { return unclosed{h, o.addr} }, nil},
	{Flaw{"litter", "a key without expiry for each release"}, func(h honest, _ options) lock { return litter{h} }, nil},
	{Flaw{pooler, "advisory lock through a transaction pooler"}, nil, nil},
	{Flaw{face, "memcached's seconds at face value"}, nil, nil},
	{Flaw{lapsed, "a key in etcd exists, whoever's lease it has"}, nil, nil},
	{Flaw{lease, noFlaw}, nil, nil},
	{Flaw{anew, "a node in ZooKeeper made again when its answer is lost"}, nil, nil},
	{Flaw{sought, noFlaw}, nil, nil},
	{Flaw{"majority", noFlaw}, nil, func(q quorum) quorum { return q }},
	{Flaw{"quorum", "half of the masters suffice"}, nil, func(q quorum) quorum {
		q.need = func(masters, _ int) int { return masters / 2 }
		return q
	}},
	{Flaw{"token-max", "the largest counter is the token, and not written back"}, nil, func(q quorum) quorum {
		q.raise = false
		return q
	}},
	{Flaw{"rejoin", "a master that has lost its memory counts at once"}, nil, func(q quorum) quorum {
		q.voteless = true
		return q
	}},
	{Flaw{"minority", "what was won in vain is not given back"}, nil, func(q quorum) quorum {
		q.keep = true
		return q
	}},
	{Flaw{"counting", "permits counted on a plain majority"}, nil, func(q quorum) quorum {
		q.need = func(masters, _ int) int { return masters/2 + 1 }
		return q
	}},
}

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

// plainDelete frees the lock whoever has it now: the next holder, when it comes late.
type plainDelete struct{ honest }

func (p plainDelete) release(ctx context.Context, g *grip) (bool, error) {
	return yes(p.redis.Do(ctx, p.redis.B().Del().Key(g.key).Build()))
}

// oneValue compares before it deletes and extends, and is always right.
type oneValue struct{ honest }

func (oneValue) value(*grip) string { return "1" }

// clientClocks is the lock that the documentation of SETNX once taught: the value is the time at which the lock may be
// taken away, by the clock of whoever wrote it, and everybody compares it with a clock of their own.
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
