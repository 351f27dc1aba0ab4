// Package rowline is the session of a store that keeps the whole line of a name in one row or under
// one prefix, and the liveness of a session apart. It knows no SQL: what is written to a row, and
// read from it, is the [Store]'s. A row may also have room for one claim only, which is its own
// liveness: then a claim that waits is not stored, and tries again each time it looks.
//
// # State
//
// A claim is out, waiting, held, or over. Answers and messages only move it forward, in whatever
// order they come. Calls for one claim are serialized, also after their callers have gone (see
// [sessions.Flight]), and a Release is the last.
//
// # Requests without an answer
//
// A request carries a deadline by the database's clock, after which it is void. So after that time
// it is known whether an Acquire without an answer has put its claim into the line: a claim that
// was released before is then released again.
//
// A store may send a request twice when the first attempt had no answer: see [Request]. What the
// second attempt finds does not tell what the first one did, so a Release that finds nothing then
// has an unknown outcome.
//
// # Waiting
//
// A claim that waits is told by the store's [Ears], if it has them, and learns of a lost message by
// the next Renew. It looks by itself only when the time of those before it is over, since nothing
// tells that. Without ears it polls, the first in line ten times as often as the others: so a line
// of a thousand costs the database little more than one of two.
//
// The order is subscribe, look, wait. Before it asks, a claim notes which [Ear] it is subscribed
// to. Only an answer to a later request is current: a claim whose ear has changed asks again. An
// ear that knows the whole line tells a claim how it stands, and then the claim need not ask.
package rowline
