// Package drivertest tries any driver against the contract of package driver, law by law.
//
// [Run] runs a subtest for each of the sixteen laws and for each optional interface. A driver needs
// a [Harness]: a small type that opens the store as one more process would and says which names and
// which time-to-live to use. What must be done behind the driver's back (kill a process, restart
// the store, stall the wire, count calls, stop a stranger) is asked for by optional interfaces; a
// harness without the means for a law fails that law, unless it says why by [Abstainer].
//
// What a driver's Traits do not promise is tried the other way round: a store without order must be
// seen to reorder, one whose claims do not expire must be seen to keep them. So the traits are
// right in both directions, and no test is ever skipped.
//
// The suite runs in real time against real servers, and in no time at all inside a testing/synctest
// bubble against a store in memory: see [RunBubble]. A law that fails prints its trace: what it
// says, what was done in which order by whom, what came back, and what should have.
//
// Histories are random, and each process has other ones. The seed is logged with every law and
// stands in every report; INTERLOCK_SEED=N brings its histories back.
//
// A suite that convicts nobody proves nothing. Package broken has drivers that each break a law,
// and its test shows that the suite convicts them on every run. The author of a driver can do the
// same with [Judge].
package drivertest
