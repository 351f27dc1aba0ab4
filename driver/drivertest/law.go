package drivertest

import "time"

// A Law is one obligation of the contract and the test of it.
type Law struct {
	Name string // LawNN_… for the sixteen laws, Also_… for optional interfaces
	Says string // the law in words
	try  func(*world)
}

// notJudged stands between a law's name and why nobody can say whether it was kept.
const notJudged = " was not judged: "

// attempts is how many trials of a law may be void. After each the machine is left alone for
// longer, since what keeps it busy is seldom over in the moment in which a store has failed to
// answer.
const (
	attempts  = 4
	firstRest = time.Second // and then four times the last
	bearable  = 40 * time.Second
)

// Try tries h against the law and reports to t. A fault counts at once. What was found after this
// process had not run for longer than a session can bear, or after a step of the suite's own that
// came too late, proves nothing: the trial is void, which is logged with the reason, and the next
// one has sessions of twice the time or, up to 40 s, of as much as bears what was seen of the
// machine, as far as the store gives them. A law that cannot be judged so is a failure, too, and
// says that it is the machine's.
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

// trial tries once. It returns what was found, and why that means nothing, if it does not, and how
// long sessions had to be to bear what was seen of the machine.
func (l Law) trial(t T, h Harness, n int, ttl time.Duration, excuse func(string)) (fault, void string, needs time.Duration) {
	w := newWorld(t, h, l.Name, l.Says, n, ttl)
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
		return f.what, f.void, w.needs(w.ttl)
	}
	return "", "", 0
}
