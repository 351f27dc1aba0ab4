package history

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// entry is one line of a trace.
type entry struct {
	at     monotonic.Instant
	who    string
	what   string
	call   *Call // that it is about, if any
	server bool  // it is about a server
}

// The size of a trace: it must fit on a screen. The calls of the violation are shown in any case,
// and of silences only long ones.
const (
	traceBefore = 20
	traceAfter  = 12
	longSilence = 20 * time.Millisecond

	serverBefore = 5 * time.Second // faults of servers have a long effect
)

// writeTrace writes who did what when around a violation: the leases of its name, and what was done
// to the processes that had them. Times are milliseconds since the round began.
func (hs *History) writeTrace(w io.Writer, v Violation) {
	entries := hs.entries(v)
	at, _ := slices.BinarySearchFunc(entries, v.At, func(m entry, t monotonic.Instant) int { return cmp.Compare(m.at, t) })
	first, last := max(at-traceBefore, 0), min(at+traceAfter, len(entries))
	fmt.Fprintf(w, "%s: %s\n", hs.Names[v.Name], v.What)
	for i, m := range entries {
		near := m.server && m.at > v.At.Add(-serverBefore) && m.at <= v.At
		if (i < first || i >= last) && !slices.Contains(v.Calls, m.call) && !near {
			continue
		}
		mark := " "
		if m.at == v.At {
			mark = ">"
		}
		fmt.Fprintf(w, "  %s %12.3f ms  %-10s %s\n", mark, float64(m.at.Sub(hs.Began))/float64(time.Millisecond), m.who, m.what)
	}
}

// entries returns what is known about the name of a violation, in order: all its leases, and what
// was done to the processes of the calls that it is about.
func (hs *History) entries(v Violation) []entry {
	concerns := func(slot int) bool {
		return slot == AnyServer || len(v.Calls) == 0 || slices.ContainsFunc(v.Calls, func(h *Call) bool { return h.Life.Slot == slot })
	}
	var out []entry
	add := func(at monotonic.Instant, who string, h *Call, format string, args ...any) {
		if at != 0 {
			out = append(out, entry{at, who, fmt.Sprintf(format, args...), h, who == "server"})
		}
	}
	for _, l := range hs.Lives {
		for _, s := range l.Silences {
			if !concerns(l.Slot) {
				break
			}
			if s.To.Sub(s.From) < longSilence {
				continue
			}
			add(s.From, l.String(), nil, "falls silent for %v", s.To.Sub(s.From).Round(10*time.Microsecond))
			add(s.To, l.String(), nil, "runs again")
		}
		for _, h := range l.Calls {
			if h.Name != v.Name {
				continue
			}
			who := h.String()
			add(h.Asked, who, h, "asks")
			add(h.Granted, who, h, "is granted the name%s", h.token())
			add(h.Valid, who, h, "finds its lease valid for the last time, to be trusted for %v", h.Trust.Sub(h.Valid).Round(10*time.Microsecond))
			add(h.Told, who, h, "is told: %s", h.Why)
			add(h.Leaving, who, h, "%s", h.deed())
			add(h.Left, who, h, "has released")
		}
	}
	for _, f := range hs.Faults {
		if !concerns(f.Slot) {
			continue
		}
		who := fmt.Sprintf("p%d", f.Slot)
		if f.Slot == AnyServer {
			who = "server"
		}
		add(f.At, who, nil, "%s", f.What)
	}
	slices.SortStableFunc(out, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	return out
}

// token is the token for people, if there is one.
func (h *Call) token() string {
	if h.Fence == 0 {
		return ""
	}
	return fmt.Sprintf(", token %d", h.Fence)
}

// deed says what the holder did before it released.
func (h *Call) deed() string {
	switch h.Write {
	case Acknowledged:
		return fmt.Sprintf("releases; it read %d and wrote %d", h.Read, h.Value)
	case Refused:
		return "releases; its write was refused, its token is stale"
	case Doubtful:
		return fmt.Sprintf("releases; it read %d, and whether it wrote %d is not known", h.Read, h.Value)
	case Unwritten:
	}
	return "releases"
}

// Traces returns the traces of the first violations of a finding: as many as there is room for.
func (hs *History) Traces(f Finding, room int) []string {
	var out []string
	for _, v := range f.Violations[:max(min(len(f.Violations), room), 0)] {
		var b strings.Builder
		hs.writeTrace(&b, v)
		out = append(out, b.String())
	}
	return out
}
