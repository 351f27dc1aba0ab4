package redistest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// Toll is what a server says that it did for some work.
type Toll struct {
	scans, scripts     int
	usual, longest     time.Duration // that one of these took: half of those that take longer, and all
	cpu                time.Duration // that the server has used, also for what it reads and writes
	received, sent     int64
	took               time.Duration // until the client had the list
	scanning, scripted time.Duration
}

var (
	usedPattern    = regexp.MustCompile(`(?m)^cmdstat_(scan|eval|evalsha):calls=(\d+),usec=(\d+)`)
	slowestPattern = regexp.MustCompile(`(?m)^latency_percentiles_usec_(?:scan|eval|evalsha):p50=([0-9.]+),p100=([0-9.]+)`)
	cpuPattern     = regexp.MustCompile(`(?m)^used_cpu_(?:sys|user):([0-9.]+)`)
	bytesPattern   = regexp.MustCompile(`(?m)^total_net_(input|output)_bytes:(\d+)`)
)

// TollOf does some work and asks the server, which does nothing else, what that was. It counts anew
// from now on.
func TollOf(t *testing.T, server *servertest.Server, work func()) (l Toll) {
	t.Helper()
	server.MustDo(t, "CONFIG", "SET", "latency-tracking", "yes", "latency-tracking-info-percentiles", "50 100")
	server.MustDo(t, "CONFIG", "RESETSTAT")
	cpu := func(text string) (d time.Duration) {
		for _, m := range cpuPattern.FindAllStringSubmatch(text, -1) {
			s, _ := strconv.ParseFloat(m[1], 64)
			d += time.Duration(s * float64(time.Second))
		}
		return d
	}
	before, began := cpu(server.MustDo(t, "INFO", "cpu")), time.Now()
	work()
	l.took = time.Since(began)
	text := server.MustDo(t, "INFO", "all")
	l.cpu = cpu(text) - before
	for _, m := range usedPattern.FindAllStringSubmatch(text, -1) {
		calls, _ := strconv.Atoi(m[2])
		us, _ := strconv.Atoi(m[3])
		spent := time.Duration(us) * time.Microsecond
		if m[1] == "scan" {
			l.scans, l.scanning = calls, spent
		} else {
			l.scripts, l.scripted = l.scripts+calls, l.scripted+spent
		}
	}
	for _, m := range slowestPattern.FindAllStringSubmatch(text, -1) {
		half, _ := strconv.ParseFloat(m[1], 64)
		all, _ := strconv.ParseFloat(m[2], 64)
		l.usual, l.longest = max(l.usual, time.Duration(half*float64(time.Microsecond))), max(l.longest, time.Duration(all*float64(time.Microsecond)))
	}
	for _, m := range bytesPattern.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseInt(m[2], 10, 64)
		if m[1] == "input" {
			l.received = n
		} else {
			l.sent = n
		}
	}
	return l
}

func (l Toll) String() string {
	return fmt.Sprintf("%v of the server's CPU: %d SCAN in %v and %d scripts in %v, %v in one of them, %v at most; %.1f MB to it and %.1f MB from it; %v in all",
		l.cpu.Round(time.Millisecond), l.scans, l.scanning, l.scripts, l.scripted, l.usual, l.longest, float64(l.received)/1e6, float64(l.sent)/1e6, l.took.Round(time.Millisecond))
}

// Listing is a store in which there is much to be listed, or little among much else.
type Listing struct {
	Servers []*servertest.Server
	URL     string
	Counter string // Lua: the key of the counter of the name n

	Free, Held int // names that have a counter and are free, and names that are held
	Waiting    int // claims that wait for one of the latter
	Scripts    int // that a list costs each server, at most
}

// Try has a list read, and logs what it costs the first server.
func (l Listing) Try(t *testing.T) {
	t.Helper()
	t.Helper()
	const together = 200
	for _, s := range l.Servers {
		for from := 1; from <= l.Free; from += 10_000 {
			s.MustDo(t, "EVAL", `for i = ARGV[1], math.min(ARGV[1] + 9999, ARGV[2]) do
				local n = 'job/' .. i
				redis.call('SET', `+l.Counter+`, i * 64, 'EX', 604800)
			end`, "0", strconv.Itoa(from), strconv.Itoa(l.Free))
		}
	}
	d := Open(t, l.URL)
	defer func() { _ = d.Close(context.Background()) }()
	session, err := d.Open(t.Context(), driver.Spec{
		ID: driver.NewID(), TTL: 10 * time.Minute, Owner: driver.Owner{Name: "worker", Host: "machine-17.example.org", PID: 4711},
	})
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < l.Held+l.Waiting; from += together {
		var all sync.WaitGroup
		for i := from; i < min(from+together, l.Held+l.Waiting); i++ {
			all.Go(func() {
				c := driver.Claim{Name: "order/0", ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
				if i < l.Held {
					c.Name = fmt.Sprintf("order/%d", i)
				}
				if _, err := session.Acquire(t.Context(), c); err != nil {
					t.Errorf("acquire: %v", err)
				}
			})
		}
		all.Wait()
	}
	look := d.(driver.Inspector)
	if _, err := look.Lines(t.Context(), ""); err != nil { // which tells the servers its scripts
		t.Fatal(err)
	}
	var lines []driver.Line
	toll := TollOf(t, l.Servers[0], func() { lines, err = look.Lines(t.Context(), "") })
	if err != nil || len(lines) != l.Held || !slices.IsSortedFunc(lines, func(a, b driver.Line) int { return strings.Compare(a.Name, b.Name) }) {
		t.Fatalf("%d lines, %v: want %d in order", len(lines), err, l.Held)
	}
	claims := 0
	for _, line := range lines {
		claims += len(line.Claims)
	}
	if claims != l.Held+l.Waiting {
		t.Errorf("%d claims, want %d", claims, l.Held+l.Waiting)
	}
	t.Log(toll)
	if toll.scripts > l.Scripts {
		t.Errorf("the list cost %d scripts, want %d at most", toll.scripts, l.Scripts)
	}
}
