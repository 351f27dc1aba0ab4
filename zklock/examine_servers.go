package zklock

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// named looks at whether the addresses are those of one ensemble, and of more than one member.
func (x *examination) named(ctx context.Context) error {
	f := driver.Finding{Title: "ensemble", Seen: "the servers that are named are members of one"}
	alone, leaders := []string{}, []string{}
	reached := map[string]bool{} // a server may be named twice
	for _, s := range x.servers {
		if s.at == "" || reached[s.at] {
			continue
		}
		reached[s.at] = true
		switch s.srvr["Mode"] {
		case "standalone":
			alone = append(alone, s.addr)
		case "leader":
			leaders = append(leaders, s.addr)
		}
	}
	two := func(seen string) {
		f.Level, f.Seen = driver.LevelBad, seen
		f.Why = "each has locks of its own: a program that is with one holds beside another that is with the other"
		f.Mend = "name the members of one ensemble, and no other server"
	}
	switch {
	case len(alone) > 0 && len(reached) > 1:
		two(fmt.Sprintf("%s stands alone, and is one of %d that are named", alone[0], len(reached)))
	case len(leaders) > 1:
		two(strings.Join(leaders, " and ") + " both lead")
	}
	x.add(f)
	f = driver.Finding{Title: "addresses", Seen: fmt.Sprintf("%d servers are named", len(x.servers))}
	if x.told {
		f.Seen += fmt.Sprintf(", of %d members", max(x.votes+x.observers, 1))
	}
	if x.ensemble() && len(x.servers) == 1 && x.isMember(ctx, x.servers[0].addr) {
		f.Level = driver.LevelWarn
		f.Why = "when that one is lost this program can neither lock nor renew, though the others go on"
		f.Mend = "name them all: zk://zk1:2181,zk2:2181,zk3:2181/PATH"
	}
	x.add(f)
	return nil
}

// isMember reports whether an address is that of a member itself, and none behind which they all
// are.
func (x *examination) isMember(ctx context.Context, addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || x.d.options.Dial != nil { // who knows where that goes
		return false
	}
	if slices.Contains(x.hosts, host) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	own, _ := net.DefaultResolver.LookupHost(ctx, host)
	if len(own) != 1 {
		return false
	}
	for _, other := range x.hosts {
		if at, _ := net.DefaultResolver.LookupHost(ctx, other); slices.Contains(at, own[0]) {
			return true
		}
	}
	return false
}

// each looks at what every server says of itself.
func (x *examination) each(context.Context) error {
	quiet := slices.ContainsFunc(x.servers, func(s server) bool { return s.silent || s.idle })
	for _, s := range x.servers {
		answers := driver.Finding{Title: "answers", Seen: "it answers, and serves"}
		if s.silent || s.idle {
			answers.Level, answers.Seen = driver.LevelWarn, s.err.Error()
			answers.Why = "one member more, and there may be no majority: then nobody can lock or renew"
			answers.Mend = "bring it back, or take it out (reconfig -remove) and add another; where it is only that this machine does not reach it, let it"
			x.one(s, answers)
			continue
		}
		x.one(s, answers)
		x.one(s, x.version(s))
		if s.srvr["Mode"] == "leader" {
			x.one(s, x.followers(s, quiet))
		}
		x.one(s, x.ticks(s))
		x.one(s, flushing(s))
		x.one(s, x.disk(s))
		x.one(s, files(s))
		x.one(s, connections(s))
	}
	return nil
}

// one adds what was found of a server.
func (x *examination) one(s server, f driver.Finding) {
	if len(x.servers) > 1 {
		f.Server = s.addr
	}
	x.add(f)
}

// untold is a check that was skipped for want of a word.
func untold(title, words string) driver.Finding {
	return driver.Finding{Title: title, Level: driver.LevelSkip, Seen: "the server does not answer " + words + ": see 4lw.commands.whitelist in zoo.cfg"}
}

// version looks for known faults.
func (x *examination) version(s server) driver.Finding {
	if s.srvr == nil {
		return untold("version", "srvr")
	}
	version, _, _ := strings.Cut(s.srvr["Zookeeper version"], ",")
	f := driver.Finding{Code: "Z12", Title: "version", Seen: "ZooKeeper " + version}
	if why := faulty(version); why != "" && x.ensemble() {
		f.Level, f.Why, f.Mend = driver.LevelWarn, why, "the newest 3.8 or 3.9"
	}
	return f
}

// faulty says what is wrong with a version in an ensemble.
func faulty(version string) string {
	version, _, _ = strings.Cut(version, "-")
	var minor, patch int
	if n, _ := fmt.Sscanf(version, "3.%d.%d", &minor, &patch); n < 2 {
		return ""
	}
	switch {
	case minor < 5 || minor == 5 && patch < 4:
		return "before 3.5.4 a claim can stand on after its session has ended, and is in everybody's way (ZOOKEEPER-2355)"
	case minor == 5 && patch < 10, minor == 6 && patch < 3:
		return "before 3.5.10 and 3.6.3 a member that comes back can have changes that others lack (ZOOKEEPER-3911): two hold"
	case minor < 8, minor == 8 && patch < 4, minor == 9 && patch < 2:
		return "before 3.8.4 and 3.9.2 a member that comes back and is ended again can lack changes that were acknowledged (ZOOKEEPER-4785): two hold"
	case minor == 9 && patch == 3:
		return "a member of 3.9.3 that comes back can spread a gap in what was changed (ZOOKEEPER-4925): two hold"
	}
	return ""
}

// followers looks at how many have what the leader has. Where a server is silent that says it
// already.
func (x *examination) followers(s server, quiet bool) driver.Finding {
	f := driver.Finding{Title: "followers"}
	if s.mntr == nil {
		return untold(f.Title, "mntr")
	}
	synced := number(s.mntr, "zk_synced_followers")
	f.Seen = fmt.Sprintf("%d are in step with the leader", synced)
	if lack := int64(x.votes) - 1 - synced; lack > 0 && !quiet && !x.weighted {
		f.Level = driver.LevelWarn
		f.Seen += fmt.Sprintf(", and %d are not", lack)
		f.Why = "one member more, and there may be no majority: then nobody can lock or renew"
		f.Mend = "bring them back: mntr of the leader, and zkServer.sh status of each, say which"
	}
	return f
}

// ticks looks at how late the leader hears from its followers whose sessions are alive.
func (x *examination) ticks(s server) driver.Finding {
	f := driver.Finding{Code: "Z1", Title: "ticks"}
	if s.conf == nil {
		return untold(f.Title, "conf")
	}
	tick := time.Duration(number(s.conf, "tickTime")) * time.Millisecond
	f.Seen = fmt.Sprintf("one is %v", tick)
	if x.ensemble() && x.TTL < 3*tick {
		f.Level = driver.LevelWarn
		f.Why = fmt.Sprintf("a follower tells the leader only with its next ping who is alive, up to half a tick later: a session with a TTL of %v, less than three ticks, may end while its holder renews in time", x.TTL)
		f.Mend = fmt.Sprintf("a TTL of %v or more (Options.TTL, --ttl), or a shorter tickTime in zoo.cfg", 3*tick)
	}
	return f
}

// flushing looks at whether changes are on the disk when they are acknowledged. Our own session was
// a change.
func flushing(s server) driver.Finding {
	f := driver.Finding{Title: "flushing"}
	if s.mntr["zk_cnt_fsynctime"] == "" { // servers before 3.6 do not count
		return untold(f.Title, "mntr")
	}
	f.Seen = fmt.Sprintf("it has written to the disk %d times since it was started", number(s.mntr, "zk_cnt_fsynctime"))
	if number(s.mntr, "zk_cnt_fsynctime") == 0 && number(s.mntr, flushCount) > 0 {
		f.Level, f.Seen = driver.LevelWarn, "it does not wait for the disk (forceSync=no)"
		f.Why = "when the machines of a majority crash at once the last locks are forgotten: two hold, and tokens repeat"
		f.Mend = "start it without zookeeper.forceSync=no"
	}
	return f
}

// flushCount is how often a server has flushed its log, to the disk or not.
const flushCount = "zk_cnt_sync_processor_queue_flush_time_ms"

// disk looks at how long it keeps changes waiting.
func (x *examination) disk(s server) driver.Finding {
	f := driver.Finding{Title: "disk"}
	if s.mntr["zk_avg_fsynctime"] == "" {
		return untold(f.Title, "mntr")
	}
	ms, _ := strconv.ParseFloat(s.mntr["zk_avg_fsynctime"], 64)
	takes := time.Duration(ms * float64(time.Millisecond)).Round(10 * time.Microsecond)
	f.Seen = fmt.Sprintf("a write to it takes %v on average, and took %d ms at most, since it was started", takes, number(s.mntr, "zk_max_fsynctime"))
	if takes > x.Grace/10 {
		f.Level = driver.LevelWarn
		f.Why = fmt.Sprintf("a renewal waits for the disks of a majority, behind all other changes: with a grace of %v a few that are slow in a row, and a holder loses its lock", x.Grace)
		f.Mend = "a disk of its own for the log (dataLogDir), one that is faster, or a longer TTL"
	}
	return f
}

// files looks at whether snapshots and logs are ever removed. A server keeps at least three of
// each, and none has much more than its data and 64 MiB.
func files(s server) driver.Finding {
	f := driver.Finding{Code: "O7", Title: "files"}
	if s.conf["dataDirSize"] == "" || s.mntr == nil {
		return untold(f.Title, "conf and mntr")
	}
	size := number(s.conf, "dataDirSize")
	if s.conf["dataLogDir"] != s.conf["dataDir"] {
		size += number(s.conf, "dataLogSize")
	}
	f.Seen = fmt.Sprintf("snapshots and logs take %d MiB", size>>20)
	if size > 20*(64<<20+number(s.mntr, "zk_approximate_data_size")) {
		f.Level = driver.LevelWarn
		f.Why = "nobody removes them, as it seems: when the disk is full the server ends"
		f.Mend = "autopurge.purgeInterval=1 in zoo.cfg, or zkCleanup.sh now and then"
	}
	return f
}

// connections looks at whether a host has room for more.
func connections(s server) driver.Finding {
	f := driver.Finding{Title: "connections"}
	if s.conf == nil || s.most < 0 {
		return untold(f.Title, "conf and cons")
	}
	limit := int(number(s.conf, "maxClientCnxns"))
	f.Seen = fmt.Sprintf("a host may have any number, and %s has %d", s.busiest, s.most)
	if limit > 0 {
		f.Seen = fmt.Sprintf("a host may have %d (maxClientCnxns), and %s has %d", limit, s.busiest, s.most)
	}
	if limit > 0 && s.most*10 >= limit*9 {
		f.Level = driver.LevelWarn
		f.Why = "another program of that host is turned away: it can neither lock nor renew"
		f.Mend = "a higher maxClientCnxns in zoo.cfg, or one client for a process; cons says who has them"
	}
	return f
}
