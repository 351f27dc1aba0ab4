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
		requeueLaw, lossLaw, inspectorLaw, watchLaw, contextsLaw, parallelLaw, traitsLaw,
	}
}

// Run tries the driver that newHarness opens against every law, a subtest each, in real time.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, law := range Laws() {
		t.Run(law.Name, func(t *testing.T) { law.Try(t, newHarness(t)) })
	}
}

// RunBubble is Run with each subtest inside a testing/synctest bubble of its own, where time passes at once and
// exactly. It is for stores in memory: newHarness is called inside the bubble and must not leave it.
func RunBubble(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, law := range Laws() {
		t.Run(law.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { law.Try(t, newHarness(t)) })
		})
	}
}

// Try tries h against the law and reports to t.
func (l Law) Try(t T, h Harness) {
	t.Helper()
	w := newWorld(t, h, l)
	defer w.end()
	if f := caught(func() { l.try(w) }); f != nil {
		t.Fatalf("%s", w.tell(f.what))
	}
}
