package history

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

// The histories of these tests are made by hand; their times are milliseconds.
func ms(n int64) monotonic.Instant { return monotonic.Instant(n * int64(time.Millisecond)) }

// lease is a handle that was granted, was valid until valid, and was released then.
func lease(asked, granted, valid int64, fence uint64) *Call {
	return &Call{Asked: ms(asked), Granted: ms(granted), Valid: ms(valid), Leaving: ms(valid), Left: ms(valid + 1), Outcome: 1, Fence: fence}
}

// lostLease is one whose holder was told at told.
func lostLease(granted, valid, told int64, fence uint64) *Call {
	h := lease(granted-1, granted, valid, fence)
	h.Told, h.Leaving, h.Left = ms(told), ms(told+1), ms(told+2)
	return h
}

// wrote gives a handle a read-modify-write.
func wrote(h *Call, read int64, w WriteOutcome) *Call {
	h.Read, h.Value, h.Write = read, read+1, w
	return h
}

// Where two may hold at once only what was granted before the store was asked is certain to have
// the smaller token.
func TestCheckTokensOfASharedName(t *testing.T) {
	first, passed := lease(0, 3, 4, 64), lease(6, 7, 8, 65)
	passedOn := of(0, first, lease(0, 5, 9, 128), passed)
	passed.Life = first.Life // the store gave it 64 and the next ones before it gave 128
	higher, lower := lease(0, 3, 4, 65), lease(6, 7, 8, 64)
	falling := of(0, higher, lower)
	lower.Life = higher.Life
	for name, c := range map[string]struct {
		hs    *History
		guilt string
	}{
		"smaller, both valid":    {of(0, lease(0, 1, 5, 10), lease(0, 6, 9, 9)), ""},
		"smaller, asked later":   {of(0, lease(0, 1, 0, 164), lease(2, 6, 0, 100)), "asked after"},
		"passed on, asked later": {passedOn, ""},
		"falling in one process": {falling, "asked after"},
		"the same twice":         {of(0, lease(0, 1, 5, 10), lease(0, 6, 9, 10)), "token 10 was given to"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, c.hs, CheckTokens(c.hs, false), c.guilt) })
	}
}

// of makes a history of one name in which every handle is of another process.
func of(final int64, handles ...*Call) *History {
	hs := &History{Names: []string{"name"}, Finals: []int64{final}}
	for i, h := range handles {
		h.Life = &Life{Slot: i, LastBeat: ms(100_000), Calls: []*Call{h}}
		hs.Lives = append(hs.Lives, h.Life)
	}
	return hs
}

// asleep says that the process of a handle did not run for a while.
func asleep(h *Call, from, to int64, hs *History) *History {
	h.Life.Silences = append(h.Life.Silences, monotonic.Span{From: ms(from), To: ms(to)})
	return hs
}

func TestCheckTokens(t *testing.T) {
	unconfirmed := lease(5, 30, 0, 10)
	for name, c := range map[string]struct {
		hs    *History
		guilt string // part of the accusation, empty = none
	}{
		"in order":                       {of(0, lease(0, 1, 5, 10), lease(0, 6, 9, 11), lease(0, 10, 12, 43)), ""},
		"the same twice":                 {of(0, lease(0, 1, 5, 10), lease(0, 6, 9, 10)), "token 10 was given to"},
		"smaller, both valid":            {of(0, lease(0, 1, 5, 10), lease(0, 6, 9, 9)), "was granted after"},
		"smaller, asked later":           {of(0, lease(0, 1, 0, 10), lease(2, 6, 0, 9)), "asked after"},
		"none":                           {of(0, lease(0, 1, 5, 0)), "without a token"},
		"stopped in the end of Lock":     {of(0, lease(0, 10, 20, 20), unconfirmed), ""},
		"never seen valid, asked before": {of(0, lease(3, 4, 9, 10), lease(1, 6, 0, 9)), ""},
	} {
		t.Run(name, func(t *testing.T) { expect(t, c.hs, CheckTokens(c.hs, true), c.guilt) })
	}
}

// expect compares an accusation with the one that was planted.
func expect(t *testing.T, hs *History, f Finding, guilt string) {
	t.Helper()
	if f.Cases == 0 {
		t.Error("the check found no cases")
	}
	if guilt == "" {
		if f.Failed > 0 {
			t.Errorf("convicted without guilt: %v", hs.Traces(f, 3))
		}
		return
	}
	if f.Failed != 1 || len(f.Violations) != 1 {
		t.Fatalf("found %d violations, want 1: %v", f.Failed, hs.Traces(f, 3))
	}
	story := hs.Traces(f, 1)[0]
	if !strings.Contains(story, guilt) {
		t.Errorf("the story does not say %q:\n%s", guilt, story)
	}
}

func TestCheckData(t *testing.T) {
	ack := func(granted, read int64, fence uint64) *Call {
		return wrote(lease(0, granted, granted+5, fence), read, Acknowledged)
	}
	doubt := func(granted, read int64) *Call { return wrote(lease(0, granted, granted+5, 99), read, Doubtful) }
	for name, c := range map[string]struct {
		hs    *History
		guilt string
	}{
		"all there":                     {of(3, ack(1, 0, 1), ack(10, 1, 2), ack(20, 2, 3)), ""},
		"one overwritten":               {of(2, ack(1, 0, 1), ack(10, 1, 2), ack(20, 1, 3)), "an update is lost"},
		"the last gone":                 {of(2, ack(1, 0, 1), ack(10, 1, 2), ack(20, 2, 3)), "in the end there was 2"},
		"one that nobody wrote":         {of(3, ack(1, 0, 1), ack(10, 2, 2)), "passed 2, which nobody wrote"},
		"killed after the write":        {of(3, ack(1, 0, 1), doubt(10, 1), ack(20, 2, 3)), ""},
		"killed before the write":       {of(2, ack(1, 0, 1), doubt(10, 1), ack(20, 1, 3)), ""},
		"a refused write does not show": {of(1, ack(1, 0, 1), wrote(lease(0, 10, 15, 2), 0, Refused)), ""},
		"tokens fall":                   {of(2, ack(1, 0, 7), ack(10, 1, 6)), "with token 6 after 1 with token 7"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, c.hs, CheckData(c.hs, true), c.guilt) })
	}
}

func TestCheckOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		hs    *History
		guilt string
	}{
		"one after the other":         {of(0, lease(0, 1, 5, 1), lease(0, 5, 9, 2)), ""},
		"both at once":                {of(0, lease(0, 1, 5, 1), lease(0, 4, 9, 2)), "for another 1ms"},
		"one inside the other":        {of(0, lease(0, 1, 9, 1), lease(0, 3, 4, 2), lease(0, 10, 11, 3)), "while the lease of p0.0 g0 was valid"},
		"behind a short one":          {of(0, lease(0, 1, 9, 1), lease(0, 2, 0, 2), lease(0, 8, 12, 3)), "p2.0 g0 was granted"},
		"never seen valid":            {of(0, lease(0, 1, 5, 1), lease(0, 4, 0, 2)), ""},
		"valid only before the sleep": {of(0, lostLease(1, 5, 50, 1), lease(0, 40, 60, 2)), ""},
	} {
		t.Run(name, func(t *testing.T) { expect(t, c.hs, CheckOverlap(c.hs, 1), c.guilt) })
	}
}

func TestCheckNotice(t *testing.T) {
	late := lostLease(1, 90, 120, 1)
	sleeper := lostLease(1, 50, 520, 1)
	blinker := lostLease(1, 80, 120, 1)
	dawdler := lostLease(1, 50, 2600, 1)
	napper := lostLease(1, 90, 160, 1)
	last := lostLease(1, 50, 520, 1)
	lastHistory := of(0, last, lease(0, 100, 200, 2))
	last.Life.LastBeat = ms(60)
	never := lostLease(1, 90, 0, 1)
	never.Leaving, never.Left = 0, 0
	drowsy := lostLease(1, 50, 532, 1)
	// The store's clock is 7 h ahead, and its fastest answer took so long. Lock returned the next
	// lease at 200.
	told := func(at, fastest int64) *History {
		const ahead = 7 * 3600 * 1000
		next, quick := lease(90, 200, 300, 2), lease(1000, 1000+fastest, 1100, 3)
		next.Since, quick.Since = (at+ahead)*1000+1, (1000+ahead)*1000+1
		return of(0, lostLease(1, 90, 99, 1), next, quick)
	}
	killed := lostLease(1, 90, 0, 1)
	killed.Leaving, killed.Left = 0, 0
	killedHistory := of(0, killed, lease(0, 100, 200, 2))
	killed.Life.LastBeat = ms(95)
	for name, c := range map[string]struct {
		hs      *History
		guilt   string
		asleep  int
		nothing bool
	}{
		"told before":                     {hs: of(0, lostLease(1, 90, 95, 1), lease(0, 100, 200, 2))},
		"told after":                      {hs: of(0, late, lease(0, 100, 200, 2)), guilt: "was told of its loss by 20ms after"},
		"asleep through it":               {hs: asleep(sleeper, 60, 518, of(0, sleeper, lease(0, 100, 200, 2))), asleep: 1},
		"asleep, and slow to wake":        {hs: asleep(dawdler, 60, 520, of(0, dawdler, lease(0, 100, 200, 2))), guilt: "ran for 2.08s of that"},
		"asleep, and told 12 ms after":    {hs: asleep(drowsy, 60, 520, of(0, drowsy, lease(0, 100, 200, 2))), guilt: "ran for 12ms of that"},
		"told after the store's grant":    {hs: told(95, 1), guilt: "was told of its loss by 3ms after"},
		"told before the store's grant":   {hs: told(110, 1)},
		"told before, for all one knows":  {hs: told(95, 5)},
		"asleep for a moment before":      {hs: asleep(blinker, 85, 92, of(0, blinker, lease(0, 100, 200, 2))), guilt: "was told of its loss by 20ms after"},
		"asleep only after the next came": {hs: asleep(napper, 105, 155, of(0, napper, lease(0, 100, 200, 2))), guilt: "was told of its loss by 60ms after"},
		"asleep, and ended as it woke":    {hs: lastHistory, asleep: 1},
		"never told":                      {hs: of(0, never, lease(0, 100, 200, 2)), guilt: "p0.0 g0 was never told of its loss"},
		"killed first":                    {hs: killedHistory, nothing: true},
		"released":                        {hs: of(0, lease(0, 1, 90, 1), lease(0, 100, 200, 2)), nothing: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := CheckNotice(c.hs, 30*time.Millisecond)
			if c.nothing {
				if n.Cases != 0 || len(n.Violations) != 0 {
					t.Errorf("%d cases, %d violations, want none", n.Cases, len(n.Violations))
				}
				return
			}
			expect(t, c.hs, n.Finding, c.guilt)
			if len(n.Naps) != c.asleep {
				t.Errorf("%d holders were asleep, want %d", len(n.Naps), c.asleep)
			}
		})
	}
}

// Of one who slept through the end of its lease, and then runs by fits and starts, nothing can be
// said.
func TestCheckNoticeIsVoidWhereAHolderIsStarved(t *testing.T) {
	drowned := lostLease(1, 50, 620, 1)
	hs := asleep(drowned, 60, 520, of(0, drowned, lease(0, 100, 200, 2)))
	if n := CheckNotice(asleep(drowned, 525, 595, hs), 30*time.Millisecond); n.Cases != 0 || n.Failed != 0 || n.Void != 1 {
		t.Errorf("%d of %d cases failed, %d void, want one void", n.Failed, n.Cases, n.Void)
	}
}

// Where a store tells whole milliseconds a grant may have been up to one later than it says.
func TestGrantsByAClockOfMilliseconds(t *testing.T) {
	for since, want := range map[int64]monotonic.Instant{50_000: ms(61), 50_001: ms(60) + 1000} {
		waited, quick, silent := lease(0, 100, 110, 1), lease(190, 200, 210, 2), lease(290, 300, 310, 3)
		waited.Since, quick.Since = since, 190_000
		at := of(0, waited, quick, silent).grants()
		if got := at(waited); got != want {
			t.Errorf("%d µs is %d on the observer's clock, want %d", since, got, want)
		}
		if at(quick) != quick.Granted || at(silent) != silent.Granted {
			t.Errorf("the fastest was granted at %d, and one of which the store does not say at %d, want as Lock returned", at(quick), at(silent))
		}
	}
}

func TestStory(t *testing.T) {
	a, b := wrote(lease(0, 1, 9, 7), 4, Acknowledged), wrote(lease(0, 5, 12, 8), 4, Acknowledged)
	hs := asleep(a, 2, 24, of(5, a, b))
	hs.Faults = []Fault{{At: ms(2), Slot: 0, What: "is stopped"}, {At: ms(3), Slot: 5, What: "is killed"}}
	story := hs.Traces(CheckOverlap(hs, 1), 3)[0]
	at := 0
	for _, want := range []string{
		"name: p1.0 g0 was granted the name while the lease of p0.0 g0 was valid",
		"is granted the name, token 7", "falls silent for 22ms", "p0         is stopped", ">        5.000 ms  p1.0 g0    is granted the name, token 8",
		"releases; it read 4 and wrote 5",
	} {
		i := strings.Index(story[at:], want)
		if i < 0 {
			t.Fatalf("the story does not go on with %q:\n%s", want, story)
		}
		at += i
	}
	if strings.Contains(story, "is killed") {
		t.Errorf("the story tells of a process that has no part in it:\n%s", story)
	}
}

// Without a lock nearly everything is a violation: all are counted, and a few kept.
func TestViolationsAreBounded(t *testing.T) {
	var handles []*Call
	for i := range int64(1000) {
		handles = append(handles, lease(0, 1+i, 5000, uint64(i+1)))
	}
	f := CheckOverlap(of(0, handles...), 1)
	if f.Failed != 999 || len(f.Violations) != maxViolations {
		t.Errorf("%d violations, %d kept, want 999 and %d", f.Failed, len(f.Violations), maxViolations)
	}
}

func TestUnion(t *testing.T) {
	got := monotonic.Union([]monotonic.Span{{From: ms(5), To: ms(7)}, {From: ms(1), To: ms(3)}, {From: ms(2), To: ms(4)}, {From: ms(7), To: ms(8)}, {From: ms(5), To: ms(6)}})
	if want := []monotonic.Span{{From: ms(1), To: ms(4)}, {From: ms(5), To: ms(8)}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	l := &Life{Silences: got, LastBeat: ms(100)}
	if ran := l.Ran(ms(0), ms(10)); ran != 4*time.Millisecond {
		t.Errorf("it ran for %v of 10ms, want 4ms", ran)
	}
	if ran := l.Ran(ms(2), ms(6)); ran != time.Millisecond {
		t.Errorf("it ran for %v of 4ms, want 1ms", ran)
	}
	l.LastBeat = ms(9)
	if ran := l.Ran(ms(6), ms(20)); ran != time.Millisecond {
		t.Errorf("it ran for %v from 6ms on, want 1ms: its last beat was after 9ms", ran)
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []int64
		want   float64
	}{
		{[]int64{5, 5, 5, 5}, 1},
		{[]int64{8, 0, 0, 0}, 0.25},
		{[]int64{1, 2, 3}, 36.0 / 42},
		{nil, 0},
		{[]int64{0, 0}, 0},
	} {
		if got := Jain(c.shares); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("jain(%v) is %v, want %v", c.shares, got, c.want)
		}
	}
}
