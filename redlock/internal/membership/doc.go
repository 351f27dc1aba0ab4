// Package membership keeps the masters of a Redlock store together: which of them belong to one
// set, with one MaxTTL, and which may vote, that is, give themselves to a claim.
//
// Each master has a record of the set on itself, with a version, and its vote, which is a
// fingerprint of the set and of its own place there. A [Group] probes the masters, has [Decide] say
// what is to be written to each of them, and writes that. What the rest of package redlock sees of
// all this is a [Master]: whether it may vote, and if not, why.
//
// Decide is a pure function. What a master says of itself gives its state:
//
//	state   | it                                           | until
//	Silent  | has not answered in time: it may be anything | it answers
//	Unfit   | is a replica, a second address, damaged      | a probe finds it fit
//	Blank   | knows of no set, or has another's record     | it has a place that a majority knows
//	Stale   | may have forgotten something since its vote  | it is told to wait
//	Waiting | waits until what it forgot is over           | its own clock says so
//	Ready   | has waited                                   | a majority votes, or all have waited
//	Voting  | votes                                        | it restarts, or loses its place
//
// and from the states follows which of four things is written:
//
//	bootstrap | a new set, on all masters: there is none, or one that is out of use
//	reassign  | a new version, in which Blank masters have the places of masters that are no more
//	reconcile | that version, and its vote or its wait, on each master that has a record
//	register  | its first record, on a Blank master with a place, when a majority knows of that
//
// A write is refused by a master whose record has changed since it was probed; then all are probed
// again.
package membership
