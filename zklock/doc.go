// Package zklock keeps locks in ZooKeeper, in the layout of Apache Curator: a program of ours and one that uses Curator's InterProcessMutex, or
// go-zookeeper's Lock, exclude each other. It has mutexes and elections.
//
//	client, err := interlock.Open(ctx, "zk://zk1:2181,zk2:2181,zk3:2181/locks", nil)
//
// # The line
//
// The node of a lock has a child for each claim, _c_UUID-lock-NUMBER, ephemeral and sequential. The children in the order of their numbers are
// the line, and who is first holds. Who waits watches the one ahead of him, and his own node, and nothing else: a release wakes one waiter.
//
// # Tokens
//
// A claim's token is the number of the change that made its node, times [driver.Stride]: such numbers grow in the whole ensemble. It is drawn when a claim comes, and as the line
// is the order of coming, tokens grow with the grants.
//
// # Certainty
//
// A request whose answer is lost is looked for before anything else: the claim's own UUID begins its node's name. A node counts only while it is there and belongs to the session of now. All
// claims of a client live with one session of the servers', which no connection's end ends. A client trusts it for two thirds of its time, counted from the start of a question that the
// leader has answered.
package zklock
