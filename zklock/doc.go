// Package zklock keeps locks in ZooKeeper, in the layout of Apache Curator: a program of ours and
// one that uses Curator's InterProcessMutex, InterProcessReadWriteLock or InterProcessSemaphoreV2,
// or go-zookeeper's Lock, exclude each other.
//
//	client, err := interlock.Open(ctx, "zk://zk1:2181,zk2:2181,zk3:2181/locks", nil)
//
// # The line
//
// The node of a lock has a child for each claim, _c_UUID-lock-NUMBER, ephemeral and sequential. The
// children in the order of their numbers are the line, and the first is held. A claim that waits
// watches the one ahead of it and its own node: a release wakes one waiter. Readers are
// _c_UUID-__READ__NUMBER and are held as long as only readers are ahead, writers are
// _c_UUID-__WRIT__NUMBER.
//
// A semaphore has two nodes below its own: locks, the line of claims that wait, and leases, with a
// child for each permit that is taken. The first of the line, when there is room, leaves it and
// takes its leases by one transaction.
//
// # Tokens
//
// The token of a claim that excludes all others is the number of the change that made its node,
// times [driver.Stride]: such numbers grow in the whole ensemble. It is drawn when a claim joins
// the line. The line is in that order, so tokens grow with the grants.
//
// # Certainty
//
// A request whose answer is lost is looked for before anything else: the claim's own UUID begins
// its node's name. A node counts only while it is there and belongs to the present session. All
// claims of a client live with one session of the servers', which outlives connections. A client
// trusts it for two thirds of its timeout, counted from the start of a change, of nothing, that a
// majority has made.
package zklock
