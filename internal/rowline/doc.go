// Package rowline is the session of a store that keeps the whole line of a name in one row or under
// one prefix, and the liveness of a session apart. It knows no SQL: what is written to a row, and
// read from it, is the [Store]'s. A row may also have room for one claim alone, and be its
// liveness: then who waits stands nowhere, and tries again each time it looks.
//
// # State
//
// A claim is out, waiting, held, or over. Answers and messages only move it forward, in whatever
// order they come. Calls for one claim follow each other, whoever has given up on them (see
// [sessions.Flight]), and a Release is the last.
//
// # Requests without an answer
//
// A request carries a deadline by the database's clock, after which it is void. So what an Acquire
// without an answer may still put into a line is known to be there, or never to come, once that
// time is over: the claim that was released before is then released again.
//
// A store may send a request twice when the first attempt had no answer. What the second one finds
// does not tell what the first one did: a Release that finds nothing then has an unknown outcome.
//
// # Waiting
//
// Whoever waits is told by the store's [Ears], where it has such, and finds out at the latest by
// the next Renew. By itself it looks when those in its way have run out of time, since nobody tells
// that. Without ears it polls, the first in line ten times as often as the others: a line of a
// thousand costs the database little more than one of two.
//
// The order is subscribe, look, wait. A claim that is about to ask notes which ear hears for it
// already; only what was asked after that is looked at as current, and a claim whose ear is another
// one asks again. An ear that knows the whole line tells a claim how it stands, and then that one
// asks nothing.
package rowline
