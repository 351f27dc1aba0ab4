package drivertest

import (
	"testing"
	"testing/synctest"
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
		requeueLaw, lossLaw, inspectorLaw, watchLaw, contextsLaw, parallelLaw, traitsLaw, inheritLaw,
	}
}

// Run tries the driver that newHarness opens against every law, a subtest each, in real time.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, law := range Laws() {
		t.Run(law.Name, func(t *testing.T) { law.Try(t, newHarness(t)) })
	}
}

// RunBubble is Run with each subtest inside a testing/synctest bubble of its own, where time passes at once and
// exactly. It is for stores in memory: newHarness is called inside the bubble and must not leave it.
func RunBubble(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, law := range Laws() {
		t.Run(law.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { law.Try(t, newHarness(t)) })
		})
	}
}

// attempts is how often a law is tried on a machine that is too slow.
const attempts = 3

// Try tries h against the law and reports to t. A trial in which this process was kept from running for longer than a
// session can bear, or whose steps came too late to mean anything, proves nothing: it is logged and tried again. The
// last of three counts in any case.
func (l Law) Try(t T, h Harness) {
	t.Helper()
	for n := 1; ; n++ {
		fault, void := l.trial(t, h, n)
		switch {
		case fault == "":
			return
		case void == "" || n == attempts:
			t.Fatalf("%s", fault)
		default:
			t.Logf("tried again, because %s: %s", void, fault)
		}
	}
}

// trial tries once. It returns what was found, and why that means nothing, if it does not.
func (l Law) trial(t T, h Harness, n int) (fault, void string) {
	w := newWorld(t, h, l, n)
	defer w.end()
	f := caught(func() { l.try(w) })
	if f == nil {
		return "", ""
	}
	if f.slow {
		return w.tell(f.what), "a step came too late"
	}
	if stood := w.stoodStill(); stood > 0 {
		return w.tell(f.what), "this process did not run for " + stood.String()
	}
	return w.tell(f.what), ""
}
