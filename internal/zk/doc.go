// Package zk is a client of ZooKeeper's protocol: one session, whose requests go out in flights and are answered in order.
//
// # Order
//
// A connection answers requests in the order in which they were sent, and tells of a watched change before any answer that shows
// it. So requests need not wait for one another: [Client.Do] sends several at once, and who asks for a change after a [Sync] has heard of all
// that came before it. Events are delivered by the goroutine that reads the answers.
//
// # Lost answers
//
// A caller that goes leaves its request behind: [Call.Done] tells when it is answered all the same. When a connection ends, the outcome
// of what it had not answered is unknown ([ErrUnanswered]); nothing is ever sent twice. A request of an old connection cannot be
// carried out after the session is attached again and has synced: the servers refuse it, since the session has moved.
//
// # The session
//
// The client connects again by itself, and keeps the session when it comes in time. It does not keep it alive: only a request does, and
// who wants a heartbeat asks for it. A session that the servers have ended is not replaced by another one; every call then
// matches [driver.ErrSessionLost].
package zk
