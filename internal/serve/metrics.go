package serve

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The metrics are in the text format of Prometheus, version 0.0.4. Labels have values of closed
// sets: a store's name, a route, a status. Never that of a lock.

// The upper bounds of the histograms, in seconds.
var (
	storeSeconds   = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}
	requestSeconds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
)

// histogram counts durations. It is safe for concurrent use.
type histogram struct {
	bounds []float64

	mu     sync.Mutex
	counts []uint64 // by bucket, the last one without a bound
	sum    float64
}

func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

func (h *histogram) observe(d time.Duration) {
	seconds := d.Seconds()
	at, _ := slices.BinarySearch(h.bounds, seconds)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[at]++
	h.sum += seconds
}

// meters count what the server does.
type meters struct {
	streams, connections func() int

	dropped struct{ connections, streams, credentials atomic.Uint64 }

	mu       sync.Mutex
	requests map[[2]string]uint64 // by route and status
	took     map[string]*histogram
}

func newMeters() *meters {
	return &meters{requests: map[[2]string]uint64{}, took: map[string]*histogram{}}
}

// answered counts a request. Both labels are of closed sets: route is one of this server's, status
// a number that a handler chose.
func (m *meters) answered(route string, status int, took time.Duration, stream bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[[2]string{route, strconv.Itoa(status)}]++
	if stream { // how long somebody looks is no measure of the server
		return
	}
	h := m.took[route]
	if h == nil {
		h = newHistogram(requestSeconds)
		m.took[route] = h
	}
	h.observe(took)
}

// page is a page of metrics.
type page struct{ strings.Builder }

// family begins the metrics of one name.
func (p *page) family(name, kind, help string) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample writes one value, with labels in pairs of a name and a value.
func (p *page) sample(name string, value float64, labels ...string) {
	p.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		fmt.Fprintf(p, `%s%s="%s"`, sep, labels[i], labelEscapes.Replace(labels[i+1]))
	}
	if len(labels) > 0 {
		p.WriteByte('}')
	}
	p.WriteByte(' ')
	p.WriteString(strconv.FormatFloat(value, 'g', -1, 64))
	p.WriteByte('\n')
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// histogram writes the samples of a histogram.
func (p *page) histogram(name string, h *histogram, labels ...string) {
	h.mu.Lock()
	counts, sum := slices.Clone(h.counts), h.sum
	h.mu.Unlock()
	total := uint64(0)
	for i, n := range counts {
		total += n
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = strconv.FormatFloat(h.bounds[i], 'g', -1, 64)
		}
		p.sample(name+"_bucket", float64(total), append(slices.Clone(labels), "le", bound)...)
	}
	p.sample(name+"_sum", sum, labels...)
	p.sample(name+"_count", float64(total), labels...)
}

// write writes the page of the stores, as they are now, and of the server.
func (m *meters) write(w io.Writer, stores []*store, up []bool, lists []listing) error {
	p := &page{}
	version, now := versionOf(debug.ReadBuildInfo), time.Now()
	p.family("interlock_build_info", "gauge", "The version of Interlock in this program, and that of Go.")
	p.sample("interlock_build_info", 1, "version", version, "goversion", runtime.Version())

	p.family("interlock_store_up", "gauge", "Whether the store answers.")
	for i, s := range stores {
		p.sample("interlock_store_up", oneIf(up[i]), "store", s.name)
	}
	p.family("interlock_store_latency_seconds", "histogram", "How long the store took to answer.")
	for _, s := range stores {
		p.histogram("interlock_store_latency_seconds", s.latency, "store", s.name)
	}
	// A store that was never read has no numbers: 0 would say that nobody waits.
	known := func(name, help string, value func(listing) float64) {
		p.family(name, "gauge", help)
		for i, s := range stores {
			if !lists[i].at.IsZero() {
				p.sample(name, value(lists[i]), "store", s.name)
			}
		}
	}
	known("interlock_snapshot_age_seconds", "Age of the list of all names that the numbers of this store are taken from.", func(l listing) float64 { return now.Sub(l.at).Seconds() })
	known("interlock_lines", "Names that somebody holds or waits for.", func(l listing) float64 { return float64(l.lines) })
	p.family("interlock_claims", "gauge", "Claims in these lines.")
	for i, s := range stores {
		if l := lists[i]; !l.at.IsZero() {
			p.sample("interlock_claims", float64(l.holds), "store", s.name, "state", "holds")
			p.sample("interlock_claims", float64(l.waits), "store", s.name, "state", "waits")
			p.sample("interlock_claims", float64(l.broken), "store", s.name, "state", "broken")
		}
	}
	known("interlock_oldest_wait_seconds", "How long the claim waits that waits longest, by the clocks of the store and of this machine.", func(l listing) float64 {
		if l.oldest.IsZero() {
			return 0
		}
		return max(now.Sub(l.oldest).Seconds(), 0)
	})
	p.family("interlock_breaks_total", "counter", "Claims that were broken through this server: marked for their owners, or taken away now.")
	for _, s := range stores {
		s.mu.Lock()
		marked, taken := s.breaks["marked"], s.breaks["now"]
		s.mu.Unlock()
		p.sample("interlock_breaks_total", float64(marked), "store", s.name, "mode", "marked")
		p.sample("interlock_breaks_total", float64(taken), "store", s.name, "mode", "now")
	}
	m.ofServer(p)
	_, err := io.WriteString(w, p.String())
	return err
}

// ofServer adds what this server has answered.
func (m *meters) ofServer(p *page) {
	m.mu.Lock()
	requests, took := maps.Clone(m.requests), maps.Clone(m.took)
	m.mu.Unlock()
	p.family("interlock_http_requests_total", "counter", "Requests that were answered, by route and status.")
	for _, k := range slices.SortedFunc(maps.Keys(requests), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		p.sample("interlock_http_requests_total", float64(requests[k]), "route", k[0], "code", k[1])
	}
	p.family("interlock_http_request_duration_seconds", "histogram", "How long they took, without streams.")
	for _, route := range slices.Sorted(maps.Keys(took)) {
		p.histogram("interlock_http_request_duration_seconds", took[route], "route", route)
	}
	p.family("interlock_http_streams", "gauge", "Streams that are open.")
	p.sample("interlock_http_streams", float64(m.streams()))
	p.family("interlock_http_connections", "gauge", "Connections that are open.")
	p.sample("interlock_http_connections", float64(m.connections()))
	p.family("interlock_http_dropped_total", "counter", "What was turned away or closed because there was too much of it.")
	p.sample("interlock_http_dropped_total", float64(m.dropped.connections.Load()), "what", "connection")
	p.sample("interlock_http_dropped_total", float64(m.dropped.credentials.Load()), "what", "credential")
	p.sample("interlock_http_dropped_total", float64(m.dropped.streams.Load()), "what", "stream")
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// versionOf returns the version of Interlock in this program.
func versionOf(read func() (*debug.BuildInfo, bool)) string {
	const module = "github.com/interlock-go/interlock"
	if b, ok := read(); ok {
		for _, m := range append(b.Deps, &b.Main) {
			if m.Path == module && m.Version != "" {
				return m.Version
			}
		}
	}
	return "unknown"
}
