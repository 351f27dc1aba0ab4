// Package rowline is the session of a store that keeps the whole line of a name in one row or under
// one prefix, and the expiry of a session apart. It knows no SQL: the [Store] writes and reads the
// rows. A row may also have room for one claim only, which has an expiry of its own: then a claim
// that waits is not stored, and tries to acquire each time it asks.
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
// an Acquire without an answer has put its claim into the line, or never will: a claim that was
// released before is then released again.
//
// A store may send a request twice when the first attempt had no answer: see [Request]. What the
// second attempt finds does not tell what the first one did, so a Release that finds nothing then
// has an unknown outcome.
//
// # Waiting
//
// The store's [Notifier], if it has one, sends a message to a claim that waits. A lost message is
// made up for by the next Renew. A claim asks by itself only when the claims before it expire,
// which no message says. Without a Notifier it polls, the first in line ten times as often as the
// others: so a line of a thousand costs the database little more than one of two.
//
// The order is subscribe, ask, wait. Before it asks, a claim records its [Subscription]. Only an
// answer to a later request is current: a claim whose subscription was replaced asks again. A
// Notifier that knows the whole line reports the state of a claim, and then the claim need not ask.
package rowline
