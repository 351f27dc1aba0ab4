package memcachedlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine"
	"github.com/interlock-go/interlock/internal/memcache"
)

// leastItem is room for any lock: most have 200 to 2,000 bytes.
const leastItem = 8 << 10

// ownFiles is how many files a server has open beside those that it says it keeps for its threads.
const ownFiles = 8

// Examine implements driver.Examiner. Each server says itself how it was started, and what has
// happened to it since.
func (d *Driver) Examine(ctx context.Context, e driver.Exam) (found []driver.Finding, _ error) {
	several := len(d.servers) > 1
	servers, silent := make([]*examination, len(d.servers)), make([]error, len(d.servers))
	var all sync.WaitGroup
	for i, s := range d.servers {
		all.Go(func() { servers[i], silent[i] = examineServer(ctx, s, e) })
	}
	all.Wait()
	answered := false
	for i, x := range servers {
		answers := driver.Finding{Code: "M4", Title: "answers", Seen: "it answers"}
		if err := silent[i]; err != nil {
			answers.Level, answers.Seen = driver.LevelBad, fmt.Sprintf("no answer: %v", err)
			answers.Why = "the names that are spread to it cannot be locked, and its holders lose what they have"
			answers.Mend = "bring it back; or name the servers without it, to every program at once, when nobody holds"
		} else {
			answered = true
		}
		for _, f := range append([]driver.Finding{answers}, x.found...) {
			if several {
				f.Server = d.servers[i].Addr
			}
			found = append(found, f)
		}
	}
	if !answered {
		return nil, fmt.Errorf("memcachedlock: %w", errors.Join(silent...))
	}
	return found, nil
}

// examination is that of one server.
type examination struct {
	driver.Exam
	memcache.About
	found []driver.Finding
}

// examineServer looks at one server. What it returns is never nil.
func examineServer(ctx context.Context, s *memcache.Client, e driver.Exam) (*examination, error) {
	x := &examination{Exam: e}
	clock, err := examine.Read(ctx, func(ctx context.Context) (at time.Time, err error) {
		if x.About, err = s.About(ctx); err != nil {
			return at, err
		}
		seconds, err := strconv.ParseInt(x.Stats["time"], 10, 64)
		return time.Unix(seconds+1, 0), err
	})
	if err != nil {
		return x, err
	}
	clock.Error += time.Second // the server counts whole ones, and may be almost two behind
	x.version()
	x.forgets()
	x.memory()
	x.sizes()
	x.connections()
	x.crawler()
	x.datagrams()
	f := examine.Clock("M7", "", clock)
	if f.Level > driver.LevelOK {
		f.Why = "tokens go on from when the server was started: after a restart by a clock that is behind they would not grow"
	}
	x.found = append(x.found, f)
	return x, nil
}

// number is one that the server says, or 0.
func number(said map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(said[name], 10, 64)
	return n
}

// check adds what a check has found: a warning where it is wrong.
func (x *examination) check(wrong bool, f driver.Finding) {
	if wrong {
		f.Level = driver.LevelWarn
	} else {
		f.Why, f.Mend = "", ""
	}
	x.found = append(x.found, f)
}

// version looks for known faults.
func (x *examination) version() {
	why := faulty(x.Stats["version"])
	x.check(why != "", driver.Finding{Title: "version", Seen: "memcached " + x.Stats["version"], Why: why, Mend: "the newest 1.6"})
}

// faulty says what is wrong with a version.
func faulty(version string) string {
	rest, ok := strings.CutPrefix(version, "1.6.")
	patch, err := strconv.Atoi(rest)
	switch {
	case !ok || err != nil:
	case patch < 3:
		return "before 1.6.3 one command of anybody ends the server (CVE-2020-22570), and all locks with it"
	case patch < 26:
		return "before 1.6.26 a list of all keys, as for interlock ls, that is cut off at its end can end the server, and all locks with it"
	}
	return ""
}

// forgets looks at what has taken items that were not over.
func (x *examination) forgets() {
	up := time.Duration(number(x.Stats, "uptime")) * time.Second
	after := "and a restart loses what it has"
	if file := x.Settings["memory_file"]; file != "" && file != "(null)" {
		after = "and keeps what it has when it is stopped by SIGUSR1, in " + file
	}
	x.check(false, driver.Finding{Code: "M1", Title: "restarts", Seen: fmt.Sprintf("it has run for %v, %s", up, after)})
	flushes := number(x.Stats, "cmd_flush")
	x.check(flushes > 0, driver.Finding{
		Code: "M1", Title: "flushes", Seen: fmt.Sprintf("somebody has flushed it %d times since it was started (flush_all)", flushes),
		Why:  "each takes all locks away: until a holder hears of it by its next renewal, two hold",
		Mend: "a memcached for locks alone, or one that is started with -F, which refuses it",
	})
}

// memory looks at whether there is room, and what happens where there is none.
func (x *examination) memory() {
	evicted, used, limit := number(x.Stats, "evictions"), number(x.Stats, "bytes"), number(x.Stats, "limit_maxbytes")
	policy := driver.Finding{Code: "M1", Title: "eviction", Seen: fmt.Sprintf("it has thrown away %d items that were not over", evicted)}
	const mend = "more memory (-m), or a memcached for locks alone"
	if refuses := x.Settings["evictions"] == "off"; refuses {
		policy.Seen = "it is started with -M: it throws nothing away, and refuses what has no room"
		policy.Why = "when the memory is full no lock can be had, and a renewal that finds no room deletes the lock that it renews"
		policy.Mend = "start it without -M, and with enough memory (-m)"
		x.check(true, policy)
	} else {
		policy.Why, policy.Mend = "a lock may be the next: until its holder hears of it by its next renewal, two hold", mend
		x.check(evicted > 0, policy)
	}
	room := driver.Finding{Code: "M1", Title: "memory", Seen: fmt.Sprintf("%d of %d KiB are used", used>>10, limit>>10)}
	room.Why, room.Mend = "when it is full the server throws away what was not used for longest, or refuses new items", mend
	// Where it has come to that already, that is said above.
	x.check(evicted == 0 && limit > 0 && used*10 >= limit*8, room)
}

// sizes looks at whether a lock has room in an item.
func (x *examination) sizes() {
	most := number(x.Settings, "item_size_max")
	x.check(most > 0 && most < leastItem, driver.Finding{
		Title: "item size", Seen: fmt.Sprintf("an item may have %d bytes", most),
		Why:  "a lock with a long name or note does not fit, and cannot be had",
		Mend: "start it without -I, or with at least -I " + strconv.Itoa(leastItem>>10) + "k",
	})
}

// connections looks at whether there is room for more, and how long they stay.
func (x *examination) connections() {
	has, most := number(x.Stats, "curr_connections"), number(x.Settings, "maxconns")
	most -= min(number(x.Stats, "reserved_fds")+ownFiles, most-1) // it counts its own files, too
	x.check(most > 0 && has*10 >= most*9, driver.Finding{
		Title: "connections", Seen: fmt.Sprintf("%d of %d are in use", has, most),
		Why:  "a process that comes, or whose connection ended, is turned away: it can neither lock nor renew",
		Mend: "allow more (-c), with ulimit -n above it; stats conns says who has them",
	})
	idle := time.Duration(number(x.Settings, "idle_timeout")) * time.Second
	f := driver.Finding{Title: "idle connections", Seen: "the server does not close them"}
	if idle > 0 {
		f.Seen = fmt.Sprintf("the server closes them after %v (idle_timeout)", idle)
		f.Why = fmt.Sprintf("that is less than a TTL of %v: renewals and releases meet closed connections, and connect anew first", x.TTL)
		f.Mend = "start it without -o idle_timeout, or with more than the longest TTL"
	}
	x.check(idle > 0 && idle < x.TTL, f)
}

// crawler looks at whether the server goes through its items.
func (x *examination) crawler() {
	off := x.Settings["lru_crawler"] == "no"
	f := driver.Finding{Title: "crawler", Seen: "it removes what is over, and lists its keys"}
	if off {
		f.Seen = "it is started with no_lru_crawler"
		f.Why = "what is over keeps its memory until that is full, and nobody can list the locks"
		f.Mend = "start it without -o no_lru_crawler; or lru_crawler enable"
	}
	x.check(off, f)
}

// datagrams looks at whether it takes any.
func (x *examination) datagrams() {
	port := number(x.Settings, "udpport")
	f := driver.Finding{Code: "M8", Title: "udp", Seen: "it takes no datagrams"}
	if port > 0 {
		f.Seen = fmt.Sprintf("it takes datagrams at port %d", port)
		f.Why = "whoever can forge an address can delete a lock, and have the server flood others until it answers nobody"
		f.Mend = "start it with -U 0"
	}
	x.check(port > 0, f)
}
