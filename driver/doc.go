// Package driver is the contract between Interlock's core and a store.
//
// A store keeps, for every name, one line of claims in order of arrival, and obeys one rule:
//
//	A claim is held when its weight and the weights of all claims ahead of it add up to at most its limit.
//
// A mutex or write claim weighs [All] and has the limit All; a read claim weighs 1 under the limit All; a permit of a
// semaphore of n weighs what it takes under the limit n. Readers therefore share, a reader behind a waiting writer
// waits, semaphores are first come first served, and a release decides by itself who is next.
//
// Users never see this package: they hold the concrete types of package interlock, which owns renewal, trust,
// waiting, re-entry and everything else that must be the same on every store. A driver owns the wire and nothing
// more. Its obligations are written at [Session], in prose, because most of them cannot be written as types; package
// drivertest turns each of them into a test that any driver can run.
//
// # Liveness
//
// A [Session] is one liveness with any number of claims. It may be trusted for what the store gave, [Session.Valid] or
// what the last [Renewal] says, counted from the START of a request that the store answered: of Open, of the last Renew,
// and for one claim of its own last Acquire or Requeue. The reply's time never matters, because nobody knows how long the
// reply was under way.
//
// # State, not messages
//
// A driver keeps its claims by [Claim].ID as waiting, held or gone. Acquire and Wait return that state, any number
// of times, until Release. Replies, pushes, re-checks and Renew only move it forward, so a message that is early,
// late, doubled or lost does no harm; a grant whose notice was lost is found by the next Renew at the latest.
// Subscribe, then look, then wait: in this order a wake-up cannot be lost, and a spurious one is harmless.
//
// # Outcomes
//
// An error that matches [ErrSessionLost], [ErrRefused], [ErrNotSent], [ErrBroken] or [ErrGone] says what is known.
// Every other error means that the outcome is unknown: the request may have been carried out, be under way, or never
// have left. The core then releases the claim on a context of its own until a Release is answered or the claim's time
// is over. [ErrUnable] and [ErrBadData] say why, beside one of these.
package driver
