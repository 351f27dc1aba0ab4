package redisconn

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// span is one range of CLUSTER SLOTS with its master.
func span(from, to int64, master ...any) any { return []any{from, to, master} }

func TestParseSlots(t *testing.T) {
	const asked = "10.0.0.9:7000"
	for _, c := range []struct {
		what   string
		answer any
		want   map[int]string // nil: an error
	}{
		{
			"RESP2 of an old server",
			[]any{span(0, 5460, "10.0.0.1", int64(7000)), span(5461, 16383, "10.0.0.2", int64(7001))},
			map[int]string{0: "10.0.0.1:7000", 5460: "10.0.0.1:7000", 5461: "10.0.0.2:7001", 16383: "10.0.0.2:7001"},
		},
		{"RESP2 with IDs, metadata and replicas", []any{
			[]any{int64(0), int64(99), []any{"10.0.0.1", int64(7000), "id", []any{"hostname", "a.example"}}, []any{"10.0.0.3", int64(7003), "id2", []any{}}},
		}, map[int]string{0: "10.0.0.1:7000", 99: "10.0.0.1:7000", 100: unknown}},
		{"RESP3, where metadata are a map", []any{
			[]any{int64(0), int64(99), []any{"a.example", int64(7000), "id", map[string]any{"ip": "10.0.0.1"}}},
		}, map[int]string{50: "a.example:7000"}},
		{
			"a master of several ranges",
			[]any{span(0, 1, "h", int64(1)), span(2, 3, "i", int64(1)), span(4, 5, "h", int64(1))},
			map[int]string{1: "h:1", 2: "i:1", 5: "h:1", 6: unknown},
		},
		{"a node that does not know its host", []any{span(0, 9, "", int64(7000))}, map[int]string{0: "10.0.0.9:7000"}},
		{"a node whose host is the one that was asked", []any{span(0, 9, nil, int64(7001))}, map[int]string{0: "10.0.0.9:7001"}},
		{"a node without a known host", []any{span(0, 9, "?", int64(7001)), span(10, 11, "h", int64(1))}, map[int]string{0: unknown, 10: "h:1"}},
		{"IPv6", []any{span(0, 9, "::1", int64(7000))}, map[int]string{0: "[::1]:7000"}},
		{"no list", "OK", nil},
		{"no range", []any{}, nil},
		{"no master", []any{[]any{int64(0), int64(9)}}, nil},
		{"a master without a port", []any{span(0, 9, "h")}, nil},
		{"a range that is none", []any{span(9, 0, "h", int64(1))}, nil},
		{"slots that there are not", []any{span(0, Slots, "h", int64(1))}, nil},
		{"slots as text", []any{[]any{"0", "9", []any{"h", int64(1)}}}, nil},
	} {
		table, err := parseSlots(c.answer, asked)
		if (err != nil) != (c.want == nil) {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		for slot, want := range c.want {
			if got := table.master(slot); got != want {
				t.Errorf("%s: slot %d is at %s; want %s", c.what, slot, got, want)
			}
		}
	}
	var none *slotTable
	if got := none.master(0); got != unknown {
		t.Errorf("before the first answer slot 0 is at %q", got)
	}
}

// oracle answers for a cluster.
type oracle struct {
	asked  atomic.Int64
	master atomic.Pointer[string]
	gate   chan struct{} // closed: the cluster answers
}

func newOracle(master string) *oracle {
	o := &oracle{gate: make(chan struct{})}
	o.says(master)
	close(o.gate)
	return o
}

func (o *oracle) says(master string) { o.master.Store(&master) }

func (o *oracle) ask(ctx context.Context) (*slotTable, error) {
	o.asked.Add(1)
	select {
	case <-o.gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	master := *o.master.Load()
	if master == "" {
		return nil, errors.New("nobody answers")
	}
	return parseSlots([]any{span(0, Slots-1, master, int64(1))}, "")
}

func until(t *testing.T, what string, look func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); !look(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// Everybody who acquires asks where a slot is. Nobody waits for it, also while the cluster answers
// nothing.
func TestTopology_AnswersAtOnce(t *testing.T) {
	o := newOracle("a")
	top := newTopology(o.ask)
	if _, err := top.current(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	o.gate = make(chan struct{})
	until(t, "a question without an answer", func() bool { top.suspect(); return o.asked.Load() == 2 })
	answered := make(chan string, 1)
	go func() { answered <- top.owner(7) }()
	select {
	case got := <-answered:
		if got != "a:1" {
			t.Errorf("slot 7 is at %s while the cluster does not answer; want where it was", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("asking waits for the cluster")
	}
	close(o.gate)
}

func TestTopology_LearnsOfMoves(t *testing.T) {
	o := newOracle("a")
	top := newTopology(o.ask)
	if got := top.owner(7); got != unknown {
		t.Errorf("before the first answer slot 7 is at %s", got)
	}
	until(t, "the first answer", func() bool { return top.owner(7) == "a:1" })
	select {
	case <-top.moves:
		t.Error("the first answer is no move")
	default:
	}
	o.says("b")
	until(t, "the move", func() bool { top.suspect(); return top.owner(7) == "b:1" })
	select {
	case <-top.moves:
	case <-time.After(10 * time.Second):
		t.Error("nobody was told of the move")
	}

	o.says("") // fails
	n := o.asked.Load()
	until(t, "a question that fails", func() bool { top.suspect(); return o.asked.Load() > n })
	if got := top.owner(7); got != "b:1" {
		t.Errorf("after a question that failed slot 7 is at %s; want where it was", got)
	}
}

// However much doubt there is, the cluster is asked now and then.
func TestTopology_AsksNowAndThen(t *testing.T) {
	o := newOracle("a")
	top := newTopology(o.ask)
	started := time.Now()
	for range 20_000 {
		top.suspect()
		top.owner(7)
	}
	until(t, "an answer", func() bool { return top.table.Load() != nil })
	if asked, allowed := o.asked.Load(), 2+int64(time.Since(started)/between); asked > allowed {
		t.Errorf("asked %d times in %v; want at most %d", asked, time.Since(started), allowed)
	}
	asked := o.asked.Load()
	for range 1000 {
		if _, err := top.current(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if now := o.asked.Load(); now > asked+1 {
		t.Errorf("an answer that is fresh was asked for %d times", now-asked)
	}
}
