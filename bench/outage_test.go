package main

import (
	"maps"
	"testing"
)

const ms = 1_000_000

// Three masters are stopped at 1,000 ms and go on at 2,000. One goroutine gets
// in just after the stop; the other, wrongly, in the middle of it.
func TestWaitsAreToldApart(t *testing.T) {
	w := waits{start: 0, stop: 1000 * ms, resume: 2000 * ms}
	w.take([]wait{{-20 * ms, -10 * ms}, {0, 10 * ms}, {980 * ms, 1010 * ms}, {1010 * ms, 2005 * ms}, {2005 * ms, 2006 * ms}})
	w.take([]wait{{10 * ms, 30 * ms}, {30 * ms, 1500 * ms}, {1500 * ms, 2030 * ms}})
	got := sample{}
	w.tell(got, false)
	want := sample{
		usualWait: 15, usualLongest: 20, stoppedWait: 530, stoppedLongest: 1470, aboveUsual: 1450,
		usualRate: 2, stoppedRate: 2, unbacked: 1, firstAgain: 5, allAgain: 30,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}

	w.take([]wait{{1 * ms, 2 * ms}}) // who does not come back
	got = sample{}
	w.tell(got, true)
	for _, m := range []metric{allAgain, firstAgain, unbacked} {
		if v, ok := got[m]; ok {
			t.Errorf("%s is %v although somebody is missing, and a majority was there", m, v)
		}
	}
}
