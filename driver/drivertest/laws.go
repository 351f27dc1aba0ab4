package drivertest

// The files of this package use each other in one direction: the list of laws below; the laws,
// law*.go and also_*.go, of which none uses another; what several laws do (tokens, breaker, viewer,
// wires, expiry, losers); world, actor and process; trial; and what depends on nothing: tasks,
// delays, lease, trace, claims and failures. go run ./internal/shape -arrows shows it.

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
