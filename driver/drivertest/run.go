package drivertest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A Law is one obligation of the contract and the test of it.
type Law struct {
	Name string // LawNN_… for the sixteen laws, Also_… for optional interfaces
	Says string // the law in words
	try  func(*world)
}

// Laws returns the sixteen laws in order and then the tests of optional interfaces.
func Laws() []Law {
	return []Law{
		ruleLaw, idempotenceLaw, oneSessionLaw, onceHeldLaw,
		tokensLaw, wakeUpLaw, noHoleLaw, expiryLaw,
		namesLaw, quietLaw, noOvertakingLaw, closeLaw,
		nothingStaysLaw, lostNoticeLaw, breakLaw, renewBoundedLaw,
		requeueLaw, lossLaw, lostClaimsLaw, toldLaw, inspectorLaw, shownLaw, watchLaw, contextsLaw, outcomesLaw, parallelLaw,
		numbersLaw, traitsLaw, inheritLaw, letInLaw,
	}
}

// Run tries the driver that newHarness opens against every law, or against these, a subtest each, in real time. At
// the end it lists what was not tried: what the harness has excused, and what the driver does not have of what is optional.
func Run(t *testing.T, newHarness func(t *testing.T) Harness, laws ...Law) {
	t.Helper()
	if len(laws) == 0 {
		laws = Laws()
	}
	run(t, laws, func(t *testing.T, l Law, excuse func(string)) { l.attempt(t, newHarness(t), excuse) })
}

func run(t *testing.T, laws []Law, try func(t *testing.T, l Law, excuse func(string))) {
	t.Helper()
	var mu sync.Mutex
	var excuses []string
	excuse := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(excuses, what) { // a trial that was void is followed by another one
			excuses = append(excuses, what)
		}
	}
	for _, law := range laws {
		t.Run(law.Name, func(t *testing.T) { try(t, law, excuse) })
	}
	if len(excuses) > 0 {
		t.Logf("not tried, and why:\n%s", strings.Join(excuses, "\n"))
	}
}

// RunBubble is Run with each subtest inside a testing/synctest bubble of its own, where time passes at once and
// exactly. It is for stores in memory: newHarness is called inside the bubble and must not leave it.
func RunBubble(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	run(t, Laws(), func(t *testing.T, l Law, excuse func(string)) {
		synctest.Test(t, func(t *testing.T) { l.attempt(t, newHarness(t), excuse) })
	})
}

// notJudged stands between a law's name and why nobody can say whether it was kept.
const notJudged = " was not judged: "

// attempts is how many trials of a law may be void. After each the machine is left alone for longer, since what keeps it busy is
// seldom over in the moment in which a store has failed to answer.
const (
	attempts  = 4
	firstRest = time.Second // and then four times the last
	bearable  = 40 * time.Second
)

// Try tries h against the law and reports to t. A fault counts at once. What was found after this process had not run for
// longer than a session can bear, or after a step of the suite's own that came too late, proves nothing: the trial is void,
// which is logged with the reason, and the next one has sessions of twice the time or, up to 40 s, of as much as bears what was seen
// of the machine, as far as the store gives them. A law that cannot be judged so is a failure, too, and says that it is the machine's.
func (l Law) Try(t T, h Harness) {
	t.Helper()
	l.attempt(t, h, nil)
}

// attempt is Try for who wants to hear of excuses.
func (l Law) attempt(t T, h Harness, excuse func(string)) {
	t.Helper()
	t.Logf("seed: %d; %s=%[1]d brings its histories back", seed(), seedVariable)
	ttl := h.TTL()
	for n, rest := 1, firstRest; ; n, rest = n+1, 4*rest {
		fault, void, needs := l.trial(t, h, n, ttl, excuse)
		switch {
		case fault == "":
			return
		case void == "":
			t.Fatalf("%s is broken: %s", l.Name, fault)
		case n == attempts:
			t.Fatalf("%s%sthe machine or the store was too slow in each of %d trials, in the last because %s. What was found there proves nothing: %s",
				l.Name, notJudged, n, void, fault)
		default:
			t.Logf("void: %s; tried again with more time. What was found proves nothing: %s", void, fault)
		}
		ttl = min(max(2*ttl, needs), max(h.TTL()<<(attempts-1), bearable))
		time.Sleep(rest)
	}
}

// trial tries once. It returns what was found, and why that means nothing, if it does not, and how long sessions had to be to
// bear what was seen of the machine.
func (l Law) trial(t T, h Harness, n int, ttl time.Duration, excuse func(string)) (fault, void string, needs time.Duration) {
	w := newWorld(t, h, l, n, ttl)
	w.excuse = excuse
	f := caught(func() { w.probe(); l.try(w) })
	if f != nil {
		_ = caught(func() { w.show(f.what) })
		f.what = w.tell(f.what) // before the end adds to it
	}
	if g := w.end(); f == nil && g != nil {
		f = g
		f.what = w.tell(f.what)
	}
	if f != nil {
		return f.what, f.void, w.needs()
	}
	return "", "", 0
}
