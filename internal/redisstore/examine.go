package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine"
	"github.com/interlock-go/interlock/redisconn"
)

// Examination is what a store over Redis needs examined.
type Examination struct {
	driver.Exam

	Needs   []string // the commands, as ACL SETUSER takes them
	Key     string   // a key that does not exist
	Channel string   // a channel without subscribers
	Common  bool     // a user who may not use that channel may use none

	Tokens string // what becomes of tokens when a master loses its data
	Quorum bool   // the masters are independent of each other, and a majority decides
}

// patience is how long the examination of one of several masters may take.
const patience = 5 * time.Second

// Examine examines every master: see driver.Examiner. That one of several does not answer is a
// finding, as long as another one does.
func Examine(ctx context.Context, conn redisconn.Conn, x Examination) (found []driver.Finding, err error) {
	several := conn.Node(x.Key) != ""
	type master struct {
		found []driver.Finding
		port  string // as the server knows it
	}
	var masters []master
	var cluster []driver.Finding // about the Cluster as a whole
	var silent []error
	err = conn.EachMaster(ctx, func(do redisconn.DoFunc) error {
		bounded := ctx
		if several {
			var cancel context.CancelFunc
			bounded, cancel = context.WithTimeout(ctx, patience)
			defer cancel()
		}
		one, err := examineServer(bounded, do, "", x)
		if err == nil && several && cluster == nil {
			cluster, err = slots(bounded, do)
		}
		if err != nil && several && ctx.Err() == nil {
			silent = append(silent, err)
			one.found = append(one.found, driver.Finding{
				Code: "R12", Title: "answers", Level: driver.LevelBad, Seen: fmt.Sprintf("it does not answer: %v", err),
				Why:  "names in its slots cannot be locked, renewed or given back",
				Mend: "bring it back, or have a replica take over: redis-cli --cluster check HOST:PORT",
			})
			err = nil
		}
		masters = append(masters, master{one.found, one.info["tcp_port"]})
		return err
	})
	if err == nil && len(silent) == len(masters) {
		err = errors.Join(silent...)
	}
	for i, m := range masters {
		for _, f := range m.found {
			if len(masters) > 1 {
				f.Server = fmt.Sprintf("master %d", i+1)
				if m.port != "" && m.port != "0" { // 0 of one that listens by TLS only
					f.Server += " (port " + m.port + ")"
				}
			}
			found = append(found, f)
		}
	}
	found = append(found, cluster...)
	if err == nil {
		found = append(found, sentinels(ctx, conn, x.Exam)...)
	}
	return found, redisconn.Unchanged(err)
}

// examination is that of one server.
type examination struct {
	Examination
	do     redisconn.DoFunc
	server string
	info   map[string]string
	found  []driver.Finding

	settings map[string]string // nil before they were read
	secret   bool              // this user, or nobody, may read them
}

// ExamineServer examines one server. Its name stands in the findings; it is empty if there is only
// one server.
func ExamineServer(ctx context.Context, do redisconn.DoFunc, server string, what Examination) ([]driver.Finding, error) {
	x, err := examineServer(ctx, do, server, what)
	return x.found, err
}

func examineServer(ctx context.Context, do redisconn.DoFunc, server string, what Examination) (x *examination, err error) {
	x = &examination{Examination: what, do: do, server: server}
	x.info, err = About(ctx, do)
	switch {
	case redisconn.Is(err, "NOPERM"):
		x.skip("", "settings", "this user may not ask INFO: eviction, persistence and replicas were not looked at")
	case err != nil:
		return x, err
	case x.info["role"] == "slave":
		x.add(replica(x.info))
		return x, nil
	default:
		x.add(driver.Finding{Code: "R15", Title: "role", Seen: "a master, " + x.program()})
		x.memory()
	}
	for _, check := range []func(context.Context) error{
		x.persistence, x.saving, x.replication, x.listeners, x.idling, x.clients, x.clientMemory, x.scripts, x.slow, x.rights, x.clock,
	} {
		if err := check(ctx); err != nil {
			return x, err
		}
	}
	return x, nil
}

func (x *examination) add(f driver.Finding) {
	f.Server = x.server
	x.found = append(x.found, f)
}

func (x *examination) skip(code, title, why string) {
	x.add(driver.Finding{Code: code, Title: title, Level: driver.LevelSkip, Seen: why})
}

// program returns the name and the version of the server.
func (x *examination) program() string {
	if v := x.info["valkey_version"]; v != "" {
		return "Valkey " + v
	}
	return "Redis " + x.info["redis_version"]
}

// number returns a number of INFO, or 0.
func (x *examination) number(field string) int64 {
	n, _ := strconv.ParseInt(x.info[field], 10, 64)
	return n
}

// names are the settings that the checks read.
var names = []string{
	"save", "stop-writes-on-bgsave-error", "min-replicas-to-write", "client-output-buffer-limit", "timeout", "maxclients", "maxmemory-clients", "lua-time-limit",
	"slowlog-log-slower-than", "slowlog-max-len",
}

// setting returns one of these settings. It is not known if this user may not read it, or if the
// server has no CONFIG or no such setting.
func (x *examination) setting(ctx context.Context, name string) (value string, known bool, err error) {
	if x.settings == nil { // all at once: before Redis 7 there is one a request
		if x.settings, err = fieldsOf(ctx, x.do, append([]string{"CONFIG", "GET"}, names...)...); redisconn.Is(err, "ERR") {
			x.settings, err = x.eachSetting(ctx)
		}
		if unavailable(err) {
			x.settings, x.secret, err = map[string]string{}, true, nil
		}
	}
	value, known = x.settings[name]
	return value, known, err
}

func (x *examination) eachSetting(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range names {
		one, err := configured(ctx, x.do, name)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, one)
	}
	return all, nil
}

// noSettings is the reason to skip a check that needs a setting.
const noSettings = "this server tells this user no settings (CONFIG GET)"

// memory checks what the server does when its memory is full, and whether it is.
func (x *examination) memory() {
	f := driver.Finding{Code: "R3", Title: "eviction", Seen: "maxmemory-policy is " + x.info["maxmemory_policy"]}
	used, limit := x.number("used_memory"), x.number("maxmemory")
	filled := "there is no maxmemory"
	if limit > 0 {
		filled = fmt.Sprintf("%d %% of %s are used", 100*used/limit, x.info["maxmemory_human"])
	}
	evicts := x.info["maxmemory_policy"] != "noeviction"
	switch {
	case x.info["maxmemory_policy"] == "":
		f.Level, f.Seen = driver.LevelSkip, "the server does not tell its maxmemory-policy"
		evicts = false
	case evicts:
		f.Level, f.Seen = driver.LevelBad, f.Seen+", and "+filled
		f.Why = "a full server throws keys away, first those with a TTL, and a lock is one: then two hold"
		f.Mend = "CONFIG SET maxmemory-policy noeviction, or a Redis for locks alone"
		if limit == 0 {
			f.Level, f.Why = driver.LevelWarn, "nothing goes while there is no limit; with one "+f.Why
		}
	}
	x.add(f)
	f = driver.Finding{Code: "O7", Title: "memory", Seen: filled}
	if limit > 0 && used >= limit/10*9 && !evicts {
		f.Level = driver.LevelWarn
		f.Why = "a full server takes no new locks (OOM), though those that are held are renewed"
		f.Mend = "a larger maxmemory, fewer keys, or a Redis for locks alone"
		if used >= limit {
			f.Level, f.Why = driver.LevelBad, "the memory is full: no new lock can be had (OOM)"
		}
	}
	x.add(f)
}

// persistence checks what a restart loses.
func (x *examination) persistence(ctx context.Context) error {
	if x.info == nil {
		return nil
	}
	l, err := logOf(ctx, x.do, x.info)
	if err != nil {
		return err
	}
	f := driver.Finding{Code: "R5", Title: "persistence", Level: driver.LevelWarn}
	switch {
	case !l.on:
		f.Seen = "appendonly is off"
		f.Why = "a server that restarts forgets who holds, and lets others in; " + x.Tokens
		f.Mend = "CONFIG SET appendonly yes; CONFIG SET appendfsync always; and the same in its file"
	case !l.known:
		f.Level, f.Seen = driver.LevelSkip, "appendonly is on; "+noSettings+", so whether each write is synced is unknown"
	case l.left:
		f.Seen, f.Why = "appendfsync is no", leftToKernel+x.Tokens
		f.Mend = "CONFIG SET appendfsync always: each write then waits for the disk"
	case !l.syncs:
		f.Seen = "appendfsync is not always"
		f.Why = "a machine that crashes forgets the locks of its last second, and lets others in; " + x.Tokens
		f.Mend = "CONFIG SET appendfsync always: each write then waits for the disk"
	case l.pauses:
		f.Seen = "no-appendfsync-on-rewrite is yes"
		f.Why = "a machine that crashes while the log is rewritten forgets the locks of that time; " + x.Tokens
		f.Mend = "CONFIG SET no-appendfsync-on-rewrite no"
	default:
		f.Level, f.Seen = driver.LevelOK, "each write is in the log, and synced, before it is answered"
	}
	if x.Quorum && f.Level == driver.LevelWarn { // which is found out when it comes back
		f.Code = "Q2"
		f.Why = "a master that comes back without all that it had has no vote until the longest TTL has passed: of a majority, nobody can lock meanwhile"
	}
	x.add(f)
	return nil
}

// saving checks whether the server can write its files: otherwise it refuses every write.
func (x *examination) saving(ctx context.Context) error {
	if x.info == nil {
		return nil
	}
	f := driver.Finding{Code: "O7", Title: "disk", Seen: "what was last written was written"}
	failed := func(field string) bool { return x.info[field] != "" && x.info[field] != "ok" }
	const mend = "make room on the disk, or give the server its folder back (CONFIG GET dir, the server's log), then "
	switch {
	case failed("aof_last_write_status"):
		f.Level, f.Seen, f.Mend = driver.LevelBad, "the append-only file could not be written", mend+"BGREWRITEAOF"
		f.Why = "the server takes no writes until it can (MISCONF): no lock can be had, renewed or given back"
	case failed("rdb_last_bgsave_status"):
		points, _, err := x.setting(ctx, "save")
		if err != nil {
			return err
		}
		stops, known, err := x.setting(ctx, "stop-writes-on-bgsave-error")
		if err != nil {
			return err
		}
		f.Level, f.Seen, f.Mend = driver.LevelBad, "the last save failed (rdb_last_bgsave_status), and stops writes", mend+"BGSAVE"
		f.Why = "the server takes no writes until one succeeds (MISCONF): no lock can be had, renewed or given back"
		if known && (stops == "no" || points == "") {
			f.Level, f.Seen = driver.LevelWarn, "the last save failed (rdb_last_bgsave_status)"
			f.Why = "a server that restarts begins with older data, or none; the disk may fail the log next"
		}
	case failed("aof_last_bgrewrite_status"):
		f.Level, f.Seen, f.Mend = driver.LevelWarn, "the append-only file could not be rewritten", mend+"BGREWRITEAOF"
		f.Why = "it grows until the disk is full, and then the server takes no writes"
	}
	x.add(f)
	return nil
}

// replication checks which replicas could be promoted, and how many a write waits for.
func (x *examination) replication(ctx context.Context) error {
	if x.info == nil {
		return nil
	}
	f := driver.Finding{Code: "R1", Title: "failover", Seen: "there is no replica that could take over"}
	if n := x.number("connected_slaves"); n > 0 {
		f.Level, f.Seen = driver.LevelWarn, fmt.Sprintf("connected_slaves is %d: they acknowledge late", n)
		f.Why = "a failover can lose locks that were just taken, and let others in; " + x.Tokens
		f.Mend = "redlock:// over masters without replicas, or a store that a majority acknowledges; tokens where the order is enough"
		if x.Quorum {
			f.Code, f.Why = "Q7", "a replica that takes the place of a master is another one that has forgotten: it has no vote for a while"
			f.Mend = "masters without replicas, started again in place"
		}
	}
	x.add(f)
	least, known, err := x.setting(ctx, "min-replicas-to-write")
	if err != nil {
		return err
	}
	want, _ := strconv.ParseInt(least, 10, 64)
	f = driver.Finding{Code: "R2", Title: "min-replicas", Seen: "no write waits for replicas"}
	const mend = "CONFIG SET min-replicas-to-write 0: it does not make a failover safe"
	switch good := x.number("min_slaves_good_slaves"); {
	case !known:
		f.Level, f.Seen = driver.LevelSkip, noSettings
	case want > 0 && good < want:
		f.Level, f.Mend = driver.LevelBad, "bring the replicas back, or "+mend
		f.Seen = fmt.Sprintf("min-replicas-to-write is %d, and %d replicas are well", want, good)
		f.Why = "the server takes no writes (NOREPLICAS): no lock can be had, renewed or given back"
	case want > 0:
		f.Level, f.Mend = driver.LevelWarn, mend
		f.Seen = fmt.Sprintf("min-replicas-to-write is %d, and %d replicas are well", want, good)
		f.Why = "when replicas are away nobody can lock, and who holds cannot renew"
	}
	x.add(f)
	return nil
}

// clock compares the server's clock with this machine's.
func (x *examination) clock(ctx context.Context) error {
	r, err := examine.Read(ctx, func(ctx context.Context) (time.Time, error) { return Now(ctx, x.do) })
	if unavailable(err) {
		x.skip("R4", "clock", "this user may not ask TIME")
		return nil
	}
	if err == nil {
		code := "R4"
		if x.Quorum {
			code = "Q3"
		}
		x.add(examine.Clock(code, x.server, r))
	}
	return err
}

// Now asks a server for its time.
func Now(ctx context.Context, do redisconn.DoFunc) (time.Time, error) {
	v, err := read(ctx, do, "TIME")
	if err != nil {
		return time.Time{}, err
	}
	fields, _ := v.([]any)
	if len(fields) != 2 {
		return time.Time{}, errors.New("the server answered TIME with something else")
	}
	var parts [2]int64
	for i, f := range fields {
		text, _ := f.(string)
		if parts[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return time.Time{}, fmt.Errorf("the server's time: %w", err)
		}
	}
	return time.Unix(parts[0], parts[1]*1000), nil
}
