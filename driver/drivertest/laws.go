package drivertest

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
