package history

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

func TestCheckOverlapOfPermits(t *testing.T) {
	for name, c := range map[string]struct {
		hs    *History
		guilt string
	}{
		"two of two":              {of(0, lease(0, 1, 9, 0), lease(0, 2, 8, 0)), ""},
		"three of two":            {of(0, lease(0, 1, 9, 0), lease(0, 2, 8, 0), lease(0, 3, 4, 0)), "p2.0 g0 was granted one of 2 permits while these were valid: p0.0 g0 p1.0 g0"},
		"the third when one left": {of(0, lease(0, 1, 9, 0), lease(0, 2, 5, 0), lease(0, 5, 8, 0)), ""},
		"a short one in between":  {of(0, lease(0, 1, 9, 0), lease(0, 2, 3, 0), lease(0, 4, 8, 0), lease(0, 5, 6, 0)), "p3.0 g0 was granted"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, c.hs, CheckOverlap(c.hs, 2), c.guilt) })
	}
}

func TestCheckSoon(t *testing.T) {
	inVain := func(asked int64) *Call { return &Call{Asked: ms(asked)} }
	dead := func(hs *History, at int64) *History {
		hs.Lives[len(hs.Lives)-1].LastBeat = ms(at)
		return hs
	}
	slept := lease(2, 107, 110, 2)
	held := lease(0, 1, 0, 1)
	held.Left = 0
	for name, c := range map[string]struct {
		hs    *History
		guilt string
	}{
		"at once":                      {of(0, lease(0, 1, 50, 1), lease(2, 53, 60, 2)), ""},
		"late, because it was held":    {of(0, lease(0, 1, 500, 1), lease(2, 520, 600, 2)), ""},
		"late, because nobody asked":   {of(0, lease(0, 1, 5, 1), lease(500, 510, 600, 2)), ""},
		"free and wanted for long":     {of(0, lease(0, 1, 5, 1), lease(2, 107, 110, 2)), "had been free and wanted for 101ms"},
		"asleep for most of it":        {asleep(slept, 6, 100, of(0, lease(0, 1, 5, 1), slept)), ""},
		"not even the first":           {of(0, lease(0, 150, 160, 1)), "p0.0 g0 was granted the name after"},
		"never":                        {of(0, lease(0, 1, 5, 1), inVain(10)), "was never granted the name, which had been free and wanted for 990ms"},
		"never, asked in the end":      {of(0, lease(0, 1, 5, 1), inVain(950)), ""},
		"never, but it died":           {dead(of(0, lease(0, 1, 5, 1), inVain(10)), 40), ""},
		"never, but who held is there": {of(0, held, inVain(10)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.hs.Ended = ms(1000)
			expect(t, c.hs, CheckSoon(c.hs, 100*time.Millisecond), c.guilt)
		})
	}
}

// A wait is void in which somebody was starved who wanted the name as well: it may have been its
// turn.
func TestCheckSoonIsVoidWhereAWorkerIsStarved(t *testing.T) {
	for name, c := range map[string]struct {
		from, to int64 // in which another one that wants the name sleeps
		void     int
	}{
		"for most of it":       {10, 100, 1},
		"for a moment":         {10, 20, 0},
		"when all was over":    {110, 900, 0},
		"who died before that": {10, 100, 0},
	} {
		t.Run(name, func(t *testing.T) {
			other := &Call{Asked: ms(2)}
			hs := asleep(other, c.from, c.to, of(0, lease(0, 1, 5, 1), lease(2, 107, 990, 2), other))
			hs.Ended = ms(1000)
			if name == "who died before that" {
				other.Life.LastBeat = ms(6)
			}
			f := CheckSoon(hs, 100*time.Millisecond)
			if f.Void != c.void || f.Failed != 1-c.void {
				t.Errorf("%d of %d cases failed, %d void, want %d void and else a failure", f.Failed, f.Cases, f.Void, c.void)
			}
		})
	}
}

func TestCheckGoesOn(t *testing.T) {
	starved, awake := lease(0, 1, 5, 1), lease(0, 6, 9, 2)
	for name, c := range map[string]struct {
		hs    *History
		guilt string
	}{
		"at once":            {of(0, lease(0, 1, 5, 1), lease(2, 210, 220, 2)), ""},
		"too late":           {of(0, lease(0, 1, 5, 1), lease(2, 310, 320, 2)), "for 100ms nobody got in"},
		"half of them slept": {asleep(starved, 150, 250, of(0, starved, awake)), "nobody got in"},
		"only before":        {of(0, lease(0, 1, 199, 1)), "nobody got in"},
		"in the end":         {of(0, lease(0, 1, 190, 1), lease(0, 299, 0, 3)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.hs.Ended, c.hs.Healed = ms(1000), []monotonic.Instant{ms(200), ms(950)}
			f, _ := CheckGoesOn(c.hs, 100*time.Millisecond)
			expect(t, c.hs, f, c.guilt)
			if f.Cases != 1 {
				t.Errorf("%d cases, want 1: what happened too near to the end is none", f.Cases)
			}
		})
	}
}

// A round in which nobody got in at all, before the fault and after it, is no case.
func TestCheckGoesOnWantsLeases(t *testing.T) {
	hs := of(0, &Call{Asked: ms(1)}, &Call{Asked: ms(2)})
	hs.Ended, hs.Healed = ms(1000), []monotonic.Instant{ms(200)}
	if f, _ := CheckGoesOn(hs, 100*time.Millisecond); f.Cases != 0 || f.Failed != 0 || f.Void != 1 {
		t.Errorf("%d of %d cases failed, %d void in a round without a lease, want one void", f.Failed, f.Cases, f.Void)
	}
}

// Where most of the workers did not run nobody can be expected to get in.
func TestCheckGoesOnWantsWorkersThatRun(t *testing.T) {
	asleepAll := of(0, lease(0, 1, 5, 1), lease(0, 6, 9, 2), lease(0, 10, 12, 3))
	asleepAll.Ended, asleepAll.Healed = ms(1000), []monotonic.Instant{ms(200)}
	for _, l := range asleepAll.Lives[:2] {
		l.Silences = []monotonic.Span{{From: ms(150), To: ms(250)}}
	}
	if f, _ := CheckGoesOn(asleepAll, 100*time.Millisecond); f.Cases != 0 || f.Failed != 0 || f.Void != 1 {
		t.Errorf("%d of %d cases failed, %d void while two of three workers slept, want one void", f.Failed, f.Cases, f.Void)
	}
}

func TestCheckTidy(t *testing.T) {
	for name, c := range map[string]struct {
		left  *Footprints
		guilt string
		cases int
	}{
		"as before":    {&Footprints{Was: Footprint{5, 7}, Left: Footprint{5, 7}}, "", 1},
		"less":         {&Footprints{Was: Footprint{5, 7}, Left: Footprint{4, 6}}, "", 1},
		"a goroutine":  {&Footprints{Was: Footprint{5, 7}, Left: Footprint{6, 6}}, "6 goroutines and 6 descriptors", 1},
		"a descriptor": {&Footprints{Was: Footprint{5, 7}, Left: Footprint{5, 8}, What: "7 socket"}, "7 socket", 1},
		"killed":       {nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			hs := of(0, lease(0, 1, 5, 1))
			hs.Lives[0].Footprints = c.left
			f := CheckTidy(hs)
			if f.Cases != c.cases {
				t.Errorf("%d cases, want %d", f.Cases, c.cases)
			}
			if c.cases > 0 {
				expect(t, hs, f, c.guilt)
			}
		})
	}
}
