package redissonlock

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock/redisconn"
)

// Sharding says which kind of messages wakes waiters. All clients of a server, Redisson's too, have
// to agree on it.
type Sharding uint8

// What Redisson calls shardedSubscriptionMode.
const (
	// ShardingAuto is what Redisson 3.22 and later decide by themselves: messages of a shard on a
	// Cluster of Redis 7 or later, which knows PUBSUB SHARDNUMSUB; else messages of the whole
	// server.
	ShardingAuto Sharding = iota
	ShardingOn
	ShardingOff // Redisson before 3.22
)

func parseSharding(s string) (Sharding, error) {
	for i, word := range []string{"auto", "on", "off"} {
		if s == word {
			return Sharding(i), nil //nolint:gosec // 0 to 2
		}
	}
	return 0, fmt.Errorf("%q: want auto, on or off", s)
}

// Options of a driver. The zero value is what most want.
type Options struct {
	// Timeout is how long the server may take for one answer, at most the TTL of a session; default
	// 3 s. A request without an answer leaves its outcome open: the core then releases the claim
	// until that is certain.
	Timeout time.Duration

	// Strict has New fail where the server's configuration can lose locks or tokens, instead of
	// logging it.
	Strict bool

	Sharding Sharding

	Logger *slog.Logger // default slog.Default()
}

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	if options.Timeout <= 0 {
		options.Timeout = redisconn.DefaultTimeout
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	return options
}
