// Package zk is a client of ZooKeeper's protocol: one session, whose requests go out in flights and
// are answered in order.
//
// # Order
//
// A connection answers requests in the order in which they were sent, and tells of a watched change
// before any answer that shows it. So requests need not wait for one another: [Client.Do] sends
// several at once, and when a [Sync] is answered all earlier changes have been told. Events are
// delivered by the goroutine that reads the answers.
//
// # Lost answers
//
// The request of a caller that gives up goes on: [Call.Done] is closed when it is answered. When a
// connection ends, the outcome of requests without an answer is unknown ([ErrUnanswered]); nothing
// is ever sent twice. A request of an old connection cannot be carried out after the session is
// attached again and has synced: the servers refuse it, since the session has moved.
//
// # The session
//
// The client connects again by itself, and keeps the session if that is in time. It does not keep
// it alive, which takes requests, unless Options.Heartbeat is set. A session that the servers have
// ended is not replaced by another one; the error of every call then matches
// [driver.ErrSessionLost].
package zk
