package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// A smaller output buffer of a subscriber is filled by a burst of messages to a process with many
// waiters.
const leastBuffer = 1 << 20

// listeners checks when the server disconnects subscribers.
func (x *examination) listeners(ctx context.Context) error {
	const name = "client-output-buffer-limit"
	value, known, err := x.setting(ctx, name)
	if err != nil {
		return err
	}
	if !known {
		x.skip("R9", "listeners", noSettings)
		return nil
	}
	f := driver.Finding{Code: "R9", Title: "listeners", Seen: name + " leaves room for those who listen"}
	words := strings.Fields(value) // class hard soft seconds, and so on
	for i := 0; i+3 < len(words); i += 4 {
		if words[i] != "pubsub" {
			continue
		}
		for _, limit := range words[i+1 : i+3] {
			if n, err := strconv.ParseInt(limit, 10, 64); err == nil && n > 0 && n < leastBuffer {
				f.Level = driver.LevelWarn
				f.Seen = fmt.Sprintf("%s is %s", name, strings.Join(words[i:i+4], " "))
				f.Why = "a burst of messages cuts off who listens: those who wait ask instead, and hear late"
				f.Mend = `CONFIG SET client-output-buffer-limit "pubsub 32mb 8mb 60"`
			}
		}
	}
	x.add(f)
	return nil
}

// idling checks whether connections live from one renewal to the next.
func (x *examination) idling(ctx context.Context) error {
	value, known, err := x.setting(ctx, "timeout")
	if err != nil {
		return err
	}
	if !known {
		x.skip("", "idle connections", noSettings)
		return nil
	}
	seconds, _ := strconv.ParseInt(value, 10, 64)
	f := driver.Finding{Title: "idle connections", Seen: "the server does not close them"}
	if seconds > 0 {
		f.Seen = fmt.Sprintf("the server closes them after %d s (timeout)", seconds)
	}
	if seconds > 0 && time.Duration(seconds)*time.Second < x.TTL {
		f.Level = driver.LevelWarn
		f.Why = fmt.Sprintf("that is less than a TTL of %v: renewals and releases meet closed connections, and connect anew first", x.TTL)
		f.Mend = "CONFIG SET timeout 0, or more than the longest TTL"
	}
	x.add(f)
	return nil
}

// clients checks whether there is room for more connections.
func (x *examination) clients(ctx context.Context) error {
	limit, known := x.number("maxclients"), true
	if limit == 0 { // in INFO since Redis 6.2
		value, ok, err := x.setting(ctx, "maxclients")
		if err != nil {
			return err
		}
		limit, _ = strconv.ParseInt(value, 10, 64)
		known = ok
	}
	if !known || x.info == nil || limit <= 0 {
		x.skip("R10", "clients", noSettings)
		return nil
	}
	n := x.number("connected_clients")
	f := driver.Finding{Code: "R10", Title: "clients", Seen: fmt.Sprintf("%d of %d connections are in use", n, limit)}
	if n*10 >= limit*9 {
		f.Level = driver.LevelWarn
		f.Why = "a process that comes, or whose connection ended, is turned away: it can neither lock nor renew"
		f.Mend = "CONFIG SET maxclients to more, with ulimit -n of the server above it; CLIENT LIST says who has them"
	}
	x.add(f)
	return nil
}

// leastMemory is the least that all connections of a server together should be allowed: one that is
// behind with its messages may have 32 MB of it.
const leastMemory = 64 << 20

// clientMemory checks how much memory connections may take before the server ends the largest.
func (x *examination) clientMemory(ctx context.Context) error {
	const name = "maxmemory-clients"
	value, known, err := x.setting(ctx, name)
	if err != nil {
		return err
	}
	if x.secret {
		x.skip("R9", "client memory", noSettings)
		return nil
	}
	limit, _ := strconv.ParseInt(value, 10, 64)
	if percent, ok := strings.CutSuffix(value, "%"); ok { // of maxmemory; without that there is no limit
		n, _ := strconv.ParseInt(percent, 10, 64)
		limit = x.number("maxmemory") / 100 * n
	}
	f := driver.Finding{Code: "R9", Title: "client memory", Seen: "there is no limit (" + name + ")"}
	if !known {
		f.Seen = "this version has no limit of it (" + name + ")"
	}
	if limit > 0 {
		f.Seen = fmt.Sprintf("%s is %s, which is %d MiB", name, value, limit>>20)
	}
	if limit > 0 && limit < leastMemory {
		f.Level = driver.LevelWarn
		f.Why = "a burst of messages or of requests has the server end the connections that take most, also those of who holds and of who listens: renewals come late, and who waits asks instead"
		f.Mend = "CONFIG SET " + name + " 0, or " + strconv.Itoa(leastMemory) + " and more"
	}
	x.add(f)
	return nil
}

// scripts checks whether a script that runs away can be killed before leases are over.
func (x *examination) scripts(ctx context.Context) error {
	const name = "lua-time-limit" // busy-reply-threshold since Redis 7, which knows both
	value, known, err := x.setting(ctx, name)
	if err != nil {
		return err
	}
	ms, _ := strconv.ParseInt(value, 10, 64)
	if !known {
		x.skip("R16", "script limit", noSettings)
		return nil
	}
	limit := time.Duration(ms) * time.Millisecond
	f := driver.Finding{Code: "R16", Title: "script limit", Seen: fmt.Sprintf("%s is %d", name, ms)}
	if limit <= 0 || limit > x.TTL-x.Grace {
		f.Level = driver.LevelWarn
		f.Why = "another client's script that runs away cannot be killed before the leases of all are over"
		f.Mend = "CONFIG SET " + name + " 5000"
	}
	x.add(f)
	return nil
}

// slowest is how many slow commands are read: the server keeps 128 by default.
const slowest = "128"

// slow checks for commands that kept the server busy for longer than a grace, in its slow log of
// the last day.
func (x *examination) slow(ctx context.Context) error {
	v, err := read(ctx, x.do, "SLOWLOG", "GET", slowest)
	if unavailable(err) {
		x.skip("R16", "slow commands", "this user may not ask SLOWLOG")
		return nil
	}
	if err != nil {
		return err
	}
	now, err := Now(ctx, x.do)
	if unavailable(err) {
		now, err = time.Now(), nil
	}
	if err != nil {
		return err
	}
	entries, _ := v.([]any)
	count, worst, which := 0, time.Duration(0), ""
	for _, e := range entries {
		fields, _ := e.([]any) // id, seconds, µs, words and more
		if len(fields) < 4 {
			continue
		}
		at, _ := fields[1].(int64)
		us, _ := fields[2].(int64)
		words, _ := fields[3].([]any)
		took := time.Duration(us) * time.Microsecond
		if took <= x.Grace || now.Sub(time.Unix(at, 0)) > 24*time.Hour || len(words) == 0 {
			continue
		}
		if count++; took > worst {
			worst = took
			which, _ = words[0].(string) // and not its arguments, which may be secret
		}
	}
	if count == 0 {
		if why, err := x.unlogged(ctx); why != "" || err != nil {
			if err == nil {
				x.skip("R16", "slow commands", why)
			}
			return err
		}
	}
	f := driver.Finding{Code: "R16", Title: "slow commands", Seen: fmt.Sprintf("none took longer than a grace of %v within a day", x.Grace)}
	if count > 0 {
		f.Level = driver.LevelWarn
		f.Seen = fmt.Sprintf("%d took longer than a grace of %v within a day, %s as long as %v", count, x.Grace, strings.ToUpper(which), worst.Round(time.Millisecond))
		f.Why = "meanwhile nobody is answered: renewals come late, and leases end"
		f.Mend = "SLOWLOG GET says which; a Redis for locks alone, or a longer TTL"
	}
	x.add(f)
	return nil
}

// unlogged returns why the slow log would be empty anyhow, or "". Settings that are not known count
// as the defaults, 10 ms and 128 commands.
func (x *examination) unlogged(ctx context.Context) (why string, err error) {
	const least, most = "slowlog-log-slower-than", "slowlog-max-len"
	value, known, err := x.setting(ctx, least)
	if err != nil {
		return "", err
	}
	if us, _ := strconv.ParseInt(value, 10, 64); known && (us < 0 || time.Duration(us)*time.Microsecond > x.Grace) {
		return fmt.Sprintf("the server does not note those of %v: %s is %s", x.Grace, least, value), nil
	}
	value, known, err = x.setting(ctx, most)
	if known && value == "0" {
		why = "the server notes none: " + most + " is 0"
	}
	return why, err
}
