// Package connlock is the session of a store whose locks live with connections: the server gives a
// lock to a connection, keeps those that wait in a line of its own, and releases everything when
// the connection ends. Such are advisory locks of PostgreSQL, GET_LOCK of MySQL and rows that a
// transaction has locked.
//
// # Connections
//
// A session has one holding connection, over which it takes what is free, by one request each. A
// statement that waits blocks its connection, so a claim that has to wait does so on a single
// connection, and stays there until its release. A server gives a connection again what it has, and
// does not count that as another claim. So if one claim of a session has a key on the holding
// connection, the next one asks for it on a single connection, and the server decides between the
// two as between strangers.
//
// # Places
//
// No server tells that a statement has begun to wait. A claim has its place when the server shows
// that its connection waits: the holding connection looks until then, and only then does Acquire
// return. From there on it is ahead of later claims.
//
// # Goroutines
//
// A call that waits for one answer only is made by its caller: on a free lock, to wake another
// goroutine would cost most. Wait reads the server's answer itself. What takes several steps, such
// as to dial or to join the line, is done in a goroutine of its own, which outlives a caller whose
// context ends. A late answer is handled by whichever goroutine reads then.
//
// # Time
//
// The server ends a connection over which nothing was sent for the TTL, and its locks with it. So a
// renewal is a query over each connection that has a lock. A statement that waits is not idle; when
// it is answered a TTL has begun.
//
// A renewal without an answer is left running: to cancel it could close the connection, which is
// the very loss that it is to prevent.
//
// # Loss
//
// The end of a connection is the end of its locks and of nothing else. Their owners are told, and
// the session makes another connection when it needs one. If nobody knows what a connection has, as
// after an answer that makes no sense, the session closes it, and so makes it certain.
package connlock
