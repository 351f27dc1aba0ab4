package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/mutant"
	"github.com/interlock-go/interlock/redisconn"
)

// server is what the configuration of the servers says about locks.
type server struct {
	appendOnly bool // every master writes its changes to a log
	syncs      bool // and waits for the disk with each
	warnings   []string
}

// inspectServer asks every master for its configuration: one request each.
func inspectServer(ctx context.Context, conn redisconn.Conn) (server, error) {
	s := server{appendOnly: true, syncs: true}
	err := conn.EachMaster(ctx, func(do redisconn.DoFunc) error {
		v, err := do(ctx, "INFO")
		if err = redisconn.Classify(err); err != nil {
			if redisconn.Is(err, "NOPERM") {
				s.appendOnly, s.syncs = false, false
				s.warn("this user may not ask INFO: whether the server can lose locks is unknown")
				return nil
			}
			return fmt.Errorf("redislock: ask the server for its configuration: %w", err)
		}
		text, _ := v.(string)
		fields := parseInfo(text)
		if fields["role"] == "slave" && !mutant.On("R15") {
			return fmt.Errorf("redislock: %w: this server is a replica of %s: want the URL of its master, or redis+sentinel://",
				driver.ErrNotSent, net.JoinHostPort(fields["master_host"], fields["master_port"]))
		}
		s.read(ctx, do, fields)
		return nil
	})
	return s, err
}

func parseInfo(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

func (s *server) read(ctx context.Context, do redisconn.DoFunc, fields map[string]string) {
	if policy := fields["maxmemory_policy"]; policy != "" && policy != "noeviction" && !mutant.On("R3") {
		s.warn("maxmemory-policy is " + policy + ": a full server throws locks away while they are held, keys with a TTL first; set noeviction")
	}
	if fields["aof_enabled"] != "1" {
		s.appendOnly, s.syncs = false, false
		s.warn("appendonly is off: a server that restarts forgets who holds, and lets others in; tokens go on growing")
	} else if s.syncs {
		v, err := do(ctx, "CONFIG", "GET", "appendfsync")
		s.syncs = err == nil && (configured(v) == "always" || mutant.On("R5"))
		switch {
		case redisconn.Is(err, "NOPERM"):
			s.warn("this user may not ask for appendfsync: whether a machine that crashes forgets locks is unknown")
		case !s.syncs:
			s.warn("appendfsync is not always: a machine that crashes forgets the locks of its last second")
		}
	}
	if n := fields["connected_slaves"]; n != "" && n != "0" || fields["cluster_enabled"] == "1" {
		s.warn("replicas acknowledge late: a failover can lose locks that were just taken, and let others in; tokens go on growing")
	}
}

// configured reads the answer to CONFIG GET: a list of name and value, or a map in RESP3.
func configured(v any) string {
	switch v := v.(type) {
	case []any:
		if len(v) == 2 {
			value, _ := v[1].(string)
			return value
		}
	case map[string]any:
		for _, value := range v {
			text, _ := value.(string)
			return text
		}
	case map[any]any:
		for _, value := range v {
			text, _ := value.(string)
			return text
		}
	}
	return ""
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
	if len(s.warnings) == 0 {
		return nil
	}
	if o.Strict {
		return fmt.Errorf("redislock: %w: %w", driver.ErrRefused, errors.New(strings.Join(s.warnings, "; ")))
	}
	for _, w := range s.warnings {
		o.logger().Warn("interlock: redis: " + w)
	}
	return nil
}
