package flawed

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// honest is the lock without a flaw. The others have it inside and differ in what they write anew.
type honest struct{ redis rueidis.Client }

var (
	compareAndDelete = rueidis.NewLuaScript(`return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`)
	compareAndExpire = rueidis.NewLuaScript(`return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0`)
	compareAndSet    = rueidis.NewLuaScript(`return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('SET', KEYS[1], ARGV[2]) and 1 or 0`)
)

func (honest) value(g *grip) string { return g.id }

func (h honest) acquire(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	r := h.redis.Do(ctx, h.redis.B().Set().Key(g.key).Value(g.value).Nx().Px(ttl).Build())
	return done(r)
}

func (h honest) renew(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	return yes(compareAndExpire.Exec(ctx, h.redis, []string{g.key}, []string{g.value, millis(ttl)}))
}

func (h honest) release(ctx context.Context, g *grip) (bool, error) {
	return yes(compareAndDelete.Exec(ctx, h.redis, []string{g.key}, []string{g.value}))
}

func (honest) valid(ttl, _ time.Duration) time.Duration { return ttl }

// done reads the reply of a SET that may not have been done.
func done(r rueidis.RedisResult) (bool, error) {
	err := r.Error()
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	return err == nil, err
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// yes reads a reply of 1 or 0.
func yes(r rueidis.RedisResult) (bool, error) {
	n, err := r.AsInt64()
	return n == 1, err
}

// dial connects with one connection for all commands, which keeps their order, and without a retry
// of anything.
func dial(hosts []string, master string) (rueidis.Client, error) {
	o := rueidis.ClientOption{
		InitAddress: hosts, DisableCache: true, DisableRetry: true, AlwaysPipelining: true, PipelineMultiplex: -1,
		Dialer: net.Dialer{Timeout: 2 * time.Second}, ForceSingleClient: master == "",
	}
	if master != "" {
		o.Sentinel = rueidis.SentinelOption{MasterSet: master}
	}
	c, err := rueidis.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("flawed: connect: %w", err)
	}
	return c, nil
}
