package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// Server is what the configuration of all masters means for locks.
type Server struct {
	AppendOnly bool // every master writes its changes to a log
	Syncs      bool // and waits for the disk with each
	Forgets    bool // a key without a TTL may be lost while a master runs, or by a failover
	warnings   []string
}

// Inspect asks every master for its configuration, and whether it knows the commands of a lock: two
// requests each, and a third if it has an append-only file. tokens says in a warning what becomes
// of tokens when a master loses its data. That one of several masters cannot be reached is no
// error: the others can be used.
func Inspect(ctx context.Context, conn redisconn.Conn, tokens string, commands []string) (Server, error) {
	s := Server{AppendOnly: true, Syncs: true}
	answered, silent := false, error(nil)
	err := conn.EachMaster(ctx, func(do redisconn.DoFunc) error {
		info, err := About(ctx, do)
		var answer *redisconn.Error
		if err != nil && !errors.As(err, &answer) && ctx.Err() == nil {
			silent = err
			return nil
		}
		answered = true
		if redisconn.Is(err, "NOPERM") {
			s.AppendOnly, s.Syncs, s.Forgets = false, false, true
			s.warn("this user may not ask INFO: whether the server can lose locks is unknown")
			return nil
		}
		if err = redisconn.Unchanged(err); err != nil {
			return fmt.Errorf("ask the server for its configuration: %w", err)
		}
		if info["role"] == "slave" {
			return &driver.FindingError{Finding: replica(info), Err: fmt.Errorf("%w: this server is a replica of %s: want its master's address, or those of its Sentinels",
				driver.ErrNotSent, masterOf(info))}
		}
		if err := Knows(ctx, do, commands); err != nil {
			return redisconn.Classify(err)
		}
		if err := s.read(ctx, do, info, tokens); err != nil {
			return fmt.Errorf("ask the server for its configuration: %w", redisconn.Unchanged(err))
		}
		return nil
	})
	switch {
	case err != nil: // that of EachMaster itself, perhaps
		err = redisconn.Unchanged(err)
	case silent == nil:
	case !answered:
		err = fmt.Errorf("ask the server for its configuration: %w", redisconn.Unchanged(silent))
	default:
		s.AppendOnly, s.Syncs, s.Forgets = false, false, true
		s.warn("a master of the cluster does not answer: whether it can lose locks is unknown")
	}
	return s, err
}

func (s *Server) read(ctx context.Context, do redisconn.DoFunc, info map[string]string, tokens string) error {
	l, err := logOf(ctx, do, info)
	if err != nil {
		return err
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		s.Forgets = s.Forgets || strings.HasPrefix(policy, "allkeys")
		s.warn("maxmemory-policy is " + policy + ": a full server throws locks away while they are held, keys with a TTL first; set noeviction")
	}
	s.AppendOnly, s.Syncs = s.AppendOnly && l.on, s.Syncs && l.durable()
	switch {
	case !l.on:
		s.warn("appendonly is off: a server that restarts forgets who holds, and lets others in; " + tokens)
	case !l.known:
		s.warn("the server does not tell this user its appendfsync: whether a machine that crashes forgets locks is unknown")
	case l.left:
		s.warn("appendfsync is not always: " + leftToKernel + tokens)
	case !l.syncs:
		s.warn("appendfsync is not always: a machine that crashes forgets the locks of its last second; " + tokens)
	case l.pauses:
		s.warn("no-appendfsync-on-rewrite is yes: a machine that crashes while the server rewrites its log forgets the locks of that time; " + tokens)
	}
	if n := info["connected_slaves"]; n != "" && n != "0" || info["cluster_enabled"] == "1" {
		s.Forgets = s.Forgets || n != "0"
		s.warn("replicas acknowledge late: a failover can lose locks that were just taken, and let others in; " + tokens)
	}
	return nil
}

func (s *Server) warn(text string) {
	if !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}

// Judge logs warnings, or, if strict, returns them as an error.
func (s *Server) Judge(strict bool, log *slog.Logger) error {
	if strict && len(s.warnings) > 0 {
		return fmt.Errorf("%w: %w", driver.ErrRefused, errors.New(strings.Join(s.warnings, "; ")))
	}
	for _, w := range s.warnings {
		log.Warn("interlock: redis: " + w)
	}
	return nil
}

// About returns the fields of INFO. Without sections they are the default ones.
func About(ctx context.Context, do redisconn.DoFunc, sections ...string) (map[string]string, error) {
	v, err := read(ctx, do, append([]string{"INFO"}, sections...)...)
	if err != nil {
		return nil, err
	}
	text, _ := v.(string)
	return parseInfo(text), nil
}

// Durable reports whether a server, with this INFO, loses nothing by a restart, not even after its
// machine has crashed. If it returns an error the server may do either.
func Durable(ctx context.Context, do redisconn.DoFunc, info map[string]string) (bool, error) {
	l, err := logOf(ctx, do, info)
	return l.durable(), err
}

// Loaded reports whether a server with an append-only file, and this INFO, surely started from that
// file: it has not rewritten it since, as it does when the file is switched on. A server that has
// rewritten it for another reason counts as one that did not start from it.
func Loaded(info map[string]string) bool {
	return info["aof_last_rewrite_time_sec"] == "-1" && info["aof_rewrite_in_progress"] == "0" && info["aof_rewrite_scheduled"] == "0"
}

// changeLog is the append-only file of a server.
type changeLog struct {
	on     bool
	known  bool // what follows is known
	syncs  bool // appendfsync always
	left   bool // appendfsync no
	pauses bool // no-appendfsync-on-rewrite
}

// leftToKernel says what appendfsync no costs.
const leftToKernel = "a machine that crashes forgets the locks of all that its kernel had not written yet, of 30 s or more, and lets others in; "

// durable reports whether a crash of the machine loses nothing that was answered.
func (l changeLog) durable() bool { return l.syncs && !l.pauses }

// logOf returns the append-only file of a server with this INFO. It is not known, without an error,
// if this user may not use CONFIG or the server has none.
func logOf(ctx context.Context, do redisconn.DoFunc, info map[string]string) (changeLog, error) {
	if info["loading"] == "1" { // while a server reads the file, INFO says that it has none
		return changeLog{}, redisconn.ParseError("LOADING the server reads what it has on disk")
	}
	if info["aof_enabled"] != "1" {
		return changeLog{known: true}, nil
	}
	settings, err := syncSettings(ctx, do)
	switch {
	case redisconn.Is(err, "NOPERM"), redisconn.Is(err, "ERR"):
		return changeLog{on: true}, nil
	case err != nil:
		return changeLog{}, err
	}
	return changeLog{on: true, known: true, syncs: settings["appendfsync"] == "always", left: settings["appendfsync"] == "no", pauses: settings["no-appendfsync-on-rewrite"] == "yes"}, nil
}

// syncSettings returns the settings that say when a server waits for the disk.
func syncSettings(ctx context.Context, do redisconn.DoFunc) (map[string]string, error) {
	return configured(ctx, do, "*appendfsync*") // a pattern: several names at once came with Redis 7
}

// configured returns settings by a pattern.
func configured(ctx context.Context, do redisconn.DoFunc, pattern string) (map[string]string, error) {
	return fieldsOf(ctx, do, "CONFIG", "GET", pattern)
}

// fieldsOf returns the answer to a command as names and values. It is a list, or a map in RESP3.
func fieldsOf(ctx context.Context, do redisconn.DoFunc, words ...string) (map[string]string, error) {
	v, err := read(ctx, do, words...)
	fields := map[string]string{}
	add := func(name, value any) {
		n, _ := name.(string)
		fields[n], _ = value.(string)
	}
	switch v := v.(type) {
	case []any:
		for i := 0; i+1 < len(v); i += 2 {
			add(v[i], v[i+1])
		}
	case map[string]any:
		for name, value := range v {
			add(name, value)
		}
	case map[any]any:
		for name, value := range v {
			add(name, value)
		}
	}
	return fields, err
}
