// Package connlock is the session of a store whose locks live with connections: the server gives a lock to the connection that asks, keeps
// those that wait in a line of its own, and takes everything back when the connection ends. Advisory locks of PostgreSQL, GET_LOCK of MySQL
// and rows that a transaction has locked are such.
//
// # Connections
//
// A session has one holding connection, over which it takes what is free, one request each. A statement that waits blocks its connection,
// so a claim that has to wait does so on a connection apart, and stays there until its release. A server gives a connection again what it
// has, and does not count that as another claim: what one claim of a session has on the holding connection another one asks for apart, too,
// so that the server's line decides between the two as between strangers.
//
// # Places
//
// Nobody is told that a statement has begun to wait. A claim has its place when the server shows that its connection waits: the holding
// connection looks until then, and only then is Acquire answered. From there on it is ahead of who comes later.
//
// # Goroutines
//
// A call is made by its caller, as far as it has to wait for one answer only: on a free lock what costs most is to wake another goroutine.
// Whoever calls Wait awaits the answer of the server himself. What takes several steps, as a dial or the way into the line, is done apart
// from the caller, who may go when his context ends; an answer that comes later is taken in by whoever reads it.
//
// # Time
//
// The server ends a connection over which nothing was asked for the time-to-live, and its locks with it. So to renew is to ask, over each
// connection that has a lock. A statement that waits is not idle; when it was answered a time-to-live has begun.
//
// A renewal that gets no answer is left running: to cancel it could close the connection, and that is the loss that it is to prevent.
//
// # Loss
//
// The end of a connection is the end of its locks and of nothing else: their owners are told, and the session makes another connection
// when it needs one. Where nobody knows what a connection has, as after an answer that makes no sense, the session ends it itself, and so
// makes it certain.
package connlock
