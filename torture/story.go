package torture

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// moment is one line of a story.
type moment struct {
	at     instant
	who    string
	what   string
	handle *handle // that it is about, if any
	server bool    // it is about a server
}

// The size of a story: it must fit on a screen. What the actors did is told in any case, and of their sleep only what
// matters.
const (
	storyBefore = 20
	storyAfter  = 12
	longSilence = 20 * time.Millisecond

	serverBefore = 5 * time.Second // what was done to servers works for long
)

// tell writes who did what when around a violation: the leases of its name, and what was done to the processes that
// had them. Times are milliseconds since the round began.
func (hs *history) tell(w io.Writer, v violation) {
	moments := hs.moments(v)
	at, _ := slices.BinarySearchFunc(moments, v.at, func(m moment, t instant) int { return cmp.Compare(m.at, t) })
	first, last := max(at-storyBefore, 0), min(at+storyAfter, len(moments))
	fmt.Fprintf(w, "%s: %s\n", hs.names[v.name], v.what)
	for i, m := range moments {
		near := m.server && m.at > v.at.add(-serverBefore) && m.at <= v.at
		if (i < first || i >= last) && !slices.Contains(v.actors, m.handle) && !near {
			continue
		}
		mark := " "
		if m.at == v.at {
			mark = ">"
		}
		fmt.Fprintf(w, "  %s %12.3f ms  %-10s %s\n", mark, float64(m.at.sub(hs.began))/float64(time.Millisecond), m.who, m.what)
	}
}

// moments returns what is known about the name of a violation, in order: all its leases, and what was done to the
// processes of those who acted in it.
func (hs *history) moments(v violation) []moment {
	acts := func(slot int) bool {
		return slot == anyServer || len(v.actors) == 0 || slices.ContainsFunc(v.actors, func(h *handle) bool { return h.life.slot == slot })
	}
	var out []moment
	add := func(at instant, who string, h *handle, format string, args ...any) {
		if at != 0 {
			out = append(out, moment{at, who, fmt.Sprintf(format, args...), h, who == "server"})
		}
	}
	for _, l := range hs.lives {
		for _, s := range l.silences {
			if !acts(l.slot) {
				break
			}
			if s.to.sub(s.from) < longSilence {
				continue
			}
			add(s.from, l.String(), nil, "falls silent for %v", s.to.sub(s.from).Round(10*time.Microsecond))
			add(s.to, l.String(), nil, "runs again")
		}
		for _, h := range l.handles {
			if h.name != v.name {
				continue
			}
			who := h.String()
			add(h.asked, who, h, "asks")
			add(h.granted, who, h, "is granted the name%s", h.token())
			add(h.valid, who, h, "finds its lease valid for the last time, to be trusted for %v", h.trust.sub(h.valid).Round(10*time.Microsecond))
			add(h.told, who, h, "is told: %s", h.why)
			add(h.leaving, who, h, "%s", h.deed())
			add(h.left, who, h, "has released")
		}
	}
	for _, f := range hs.faults {
		if !acts(f.slot) {
			continue
		}
		who := fmt.Sprintf("p%d", f.slot)
		if f.slot == anyServer {
			who = "server"
		}
		add(f.at, who, nil, "%s", f.what)
	}
	slices.SortStableFunc(out, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	return out
}

// token is the token for people, if there is one.
func (h *handle) token() string {
	if h.fence == 0 {
		return ""
	}
	return fmt.Sprintf(", token %d", h.fence)
}

// deed says what the holder did before it released.
func (h *handle) deed() string {
	switch h.write {
	case acknowledged:
		return fmt.Sprintf("releases; it read %d and wrote %d", h.read, h.value)
	case refused:
		return "releases; its write was refused, its token is stale"
	case doubtful:
		return fmt.Sprintf("releases; it read %d, and whether it wrote %d is not known", h.read, h.value)
	case unwritten:
	}
	return "releases"
}

// stories are the first violations of a finding, told: as many as there is room for.
func (hs *history) stories(f finding, room int) []string {
	var out []string
	for _, v := range f.violations[:max(min(len(f.violations), room), 0)] {
		var b strings.Builder
		hs.tell(&b, v)
		out = append(out, b.String())
	}
	return out
}
