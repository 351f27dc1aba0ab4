package redisstore

import (
	"testing"
	"time"
)

func TestOnlyTheHeadOfALineAsksAgain(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		says          string
		wait          int64
		head          bool
		behind        int64
		early, latest time.Duration // zero: never
	}{
		{"behind others in line", 100, false, BehindOurs, 0, 0},
		{"when the holder's time is over", 100, true, BehindOurs, 101 * time.Millisecond, 101 * time.Millisecond},
		{"a holder of ours without an end", -1, true, BehindOurs, 0, 0},
		{"when a gap ends", 5, true, BehindGap, 6 * time.Millisecond, 6 * time.Millisecond},
		{"another program that keeps the name for long", 60000, true, BehindForeign, 3 * time.Millisecond, 5 * time.Millisecond},
		{"another program without an end", -1, true, BehindForeign, 3 * time.Millisecond, 5 * time.Millisecond},
		{"another program that is done at once", 0, true, BehindForeign, time.Millisecond, time.Millisecond},
	} {
		var r Recheck
		r.Schedule(now, c.wait, c.head, c.behind)
		if c.latest == 0 {
			if !r.At.IsZero() {
				t.Errorf("%s: asks after %v, want never", c.says, r.At.Sub(now))
			}
			continue
		}
		if after := r.At.Sub(now); after < c.early || after > c.latest {
			t.Errorf("%s: asks after %v, want %v to %v", c.says, after, c.early, c.latest)
		}
	}
}

func TestAnotherProgramIsAskedForLessAndLessOften(t *testing.T) {
	var r Recheck
	now := time.Now()
	for i, want := range []time.Duration{5, 10, 20, 40, 50, 50} {
		r.Schedule(now, 60000, true, BehindForeign)
		if after := r.At.Sub(now); after > want*time.Millisecond || after < want*time.Millisecond*3/4 {
			t.Errorf("question %d: after %v, want %d ms less a quarter at most", i, after, want)
		}
	}
}
