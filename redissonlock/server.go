package redissonlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// server is what the configuration of the servers says about locks.
type server struct {
	appendOnly bool // every master writes its changes to a log
	syncs      bool // and waits for the disk with each
	forgets    bool // a counter of tokens may be lost while the server runs, or by a failover
	sharded    bool // every master knows messages of a shard
	warnings   []string
}

// inspectServer asks every master for its configuration.
func inspectServer(ctx context.Context, conn redisconn.Conn, cluster bool) (server, error) {
	s := server{appendOnly: true, syncs: true, sharded: cluster}
	err := conn.EachMaster(ctx, func(do redisconn.DoFunc) error {
		if cluster {
			if _, err := do(ctx, "PUBSUB", "SHARDNUMSUB"); err != nil {
				s.sharded = false
			}
		}
		v, err := do(ctx, "INFO")
		if redisconn.Is(err, "NOPERM") {
			s.appendOnly, s.syncs, s.forgets = false, false, true
			s.warn("this user may not ask INFO: whether the server can lose locks and tokens is unknown")
			return nil
		}
		if err = redisconn.Classify(err); err != nil {
			return fmt.Errorf("redissonlock: ask the server for its configuration: %w", err)
		}
		text, _ := v.(string)
		s.read(ctx, do, text)
		return nil
	})
	return s, err
}

func (s *server) read(ctx context.Context, do redisconn.DoFunc, text string) {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	if policy := fields["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		s.forgets = s.forgets || strings.HasPrefix(policy, "allkeys")
		s.warn("maxmemory-policy is " + policy + ": a full server throws locks away while they are held, keys with a TTL first; set noeviction")
	}
	switch {
	case fields["aof_enabled"] != "1":
		s.appendOnly, s.syncs = false, false
		s.warn("appendonly is off: a server that restarts forgets who holds and lets others in, and tokens go back with it")
	case s.syncs:
		v, err := do(ctx, "CONFIG", "GET", "appendfsync")
		if s.syncs = err == nil && strings.Contains(fmt.Sprint(v), "always"); !s.syncs {
			s.warn("appendfsync is not always, or unknown: a machine that crashes forgets the locks and tokens of its last second")
		}
	}
	if n := fields["connected_slaves"]; n != "" && n != "0" {
		s.forgets = true
		s.warn("replicas acknowledge late: a failover can lose locks that were just taken and let others in, and tokens go back with it")
	}
}

func (s *server) warn(text string) {
	for _, w := range s.warnings {
		if w == text {
			return
		}
	}
	s.warnings = append(s.warnings, text)
}

// judge logs what could be lost, or refuses it.
func (s *server) judge(o Options) error {
	if len(s.warnings) > 0 && o.Strict {
		return fmt.Errorf("redissonlock: %w: %w", driver.ErrRefused, errors.New(strings.Join(s.warnings, "; ")))
	}
	for _, w := range s.warnings {
		o.Logger.Warn("interlock: redisson: " + w)
	}
	return nil
}

// fence says what the counters of tokens survive. Redisson counts from 1, so nothing repairs one that was lost.
func (s *server) fence() driver.Durability {
	if s.appendOnly && s.syncs && !s.forgets {
		return driver.Durable
	}
	return driver.UntilRestart
}
