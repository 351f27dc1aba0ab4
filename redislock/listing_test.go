package redislock_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// toll is what a server says that it did since CONFIG RESETSTAT.
type toll struct {
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

// tollOf asks for it what a server does for work.
func tollOf(t *testing.T, server *servertest.Server, work func()) (l toll) {
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

func (l toll) String() string {
	return fmt.Sprintf("%v of the server's CPU: %d SCAN in %v and %d scripts in %v, %v in one of them, %v at most; %.1f MB to it and %.1f MB from it; %v in all",
		l.cpu.Round(time.Millisecond), l.scans, l.scanning, l.scripts, l.scripted, l.usual, l.longest, float64(l.received)/1e6, float64(l.sent)/1e6, l.took.Round(time.Millisecond))
}

// Names are looked at together, but no longer by one script than the server should be held for: behind a long line the others follow by
// another.
func TestLinesOfManyClaims(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	a := newStage(t, server).actor(t)
	const claims = 600
	names := []string{"a", "b/long", "c", "d/long", "e", "f"}
	for _, name := range names {
		a.hold(mutex(name))
		if !strings.HasSuffix(name, "long") {
			continue
		}
		if err := all(claims-1, func(int) error {
			_, err := a.session.Acquire(t.Context(), mutex(name))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := a.driver.Lines(t.Context(), "")
	if err != nil || len(lines) != len(names) {
		t.Fatalf("%d lines, %v: want %q", len(lines), err, names)
	}
	for i, l := range lines {
		want := 1
		if strings.HasSuffix(names[i], "long") {
			want = claims
		}
		if l.Name != names[i] || len(l.Claims) != want {
			t.Errorf("line %d is of %q with %d claims, want %q with %d", i, l.Name, len(l.Claims), names[i], want)
		}
	}
}

// What a list costs where very many names are free, and where very many are held. docs/backends/redis.md has the figures.
func TestWhatAListCosts(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of thousands of names: make proof")
	}
	for _, c := range []struct {
		free, held, waiting int // names that are free, names that are held, and claims that wait for one of these
		scripts             int // at most
	}{
		{200_000, 10, 0, 500},
		{0, 10_000, 1000, 150},
	} {
		t.Run(fmt.Sprintf("%d free, %d held, %d waiting", c.free, c.held, c.waiting), func(t *testing.T) {
			server := servertest.Redis(t)
			for from := 1; from <= c.free; from += 10_000 {
				server.MustDo(t, "EVAL", `for i = ARGV[1], ARGV[1] + 9999 do redis.call('SET', 'il:{job/' .. i .. '}:fence:job/' .. i, i * 64, 'EX', 604800) end`, "0", strconv.Itoa(from))
			}
			d := redistest.Open(t, "redis://"+server.Addr())
			defer func() { _ = d.Close(context.Background()) }()
			session, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: 10 * time.Minute, Owner: driver.Owner{Name: "worker", Host: "machine-17.example.org", PID: 4711}})
			if err != nil {
				t.Fatal(err)
			}
			if err := all(c.held+c.waiting, func(i int) error {
				name := fmt.Sprintf("order/%d", i)
				if i >= c.held {
					name = "order/0"
				}
				_, err := session.Acquire(t.Context(), mutex(name))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			look := d.(driver.Inspector)
			if _, err := look.Lines(t.Context(), ""); err != nil { // which tells the server its scripts
				t.Fatal(err)
			}
			var lines []driver.Line
			l := tollOf(t, server, func() { lines, err = look.Lines(t.Context(), "") })
			if err != nil || len(lines) != c.held || !slices.IsSortedFunc(lines, func(a, b driver.Line) int { return strings.Compare(a.Name, b.Name) }) {
				t.Fatalf("%d lines, %v: want %d in order", len(lines), err, c.held)
			}
			claims := 0
			for _, line := range lines {
				claims += len(line.Claims)
			}
			if claims != c.held+c.waiting {
				t.Errorf("%d claims, want %d", claims, c.held+c.waiting)
			}
			t.Log(l)
			if l.scripts > c.scripts {
				t.Errorf("the list cost %d scripts, want %d at most", l.scripts, c.scripts)
			}
		})
	}
}
