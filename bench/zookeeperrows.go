package main

import (
	"fmt"
	"time"
)

// Names of contenders on ZooKeeper that goals refer to.
const (
	rawNodeRow     = "create + delete"
	goZooKeeperRow = "go-zookeeper Lock"
	curatorRow     = "Curator InterProcessMutex"
	oursZooKeeper  = "Interlock zklock"
	oursZKStrict   = "Interlock zklock, strict"
)

// zooKeeperServer is said of every row on ZooKeeper.
const zooKeeperServer = "one ZooKeeper on loopback with fsync, new for each run; a session for each process and contender; requests include heartbeats; Curator is a process of Java beside each of ours, told what to do over a pipe when it has had 100 pairs to warm up, whose CPU is not counted"

// zooKeeperArgs make of a server for tests one as people run it.
var zooKeeperArgs = []string{"-Dzookeeper.forceSync=yes", "-Dzookeeper.preAllocSize=65536", "-Xmx512m", "-XX:TieredStopAtLevel=4", "tickTime=2000"}

func zooKeeperRows() []row {
	return []row{zooKeeperFree(), zooKeeperHandoffs(), zooKeeperPassing(), zooKeeperDead()}
}

func zooKeeperFree() row {
	on := &stage{adapters: []string{"raw zk", "go-zookeeper", "curator", "zk"}}
	return row{
		name:  "zk-free",
		title: "ZooKeeper, free lock and unlock",
		options: fmt.Sprintf("one goroutine, nobody else; rounds of %d pairs in turn, all in one process and on one server; %s",
			roundPairs, zooKeeperServer),
		reps:    20,
		stage:   on,
		metrics: []metric{pairMedian, pairSlow, requestsEach, cpuEach, serverEach},
		contenders: []contender{
			{rawNodeRow, floor, stagedPair{on, "raw zk"}},
			{goZooKeeperRow, rival, stagedPair{on, "go-zookeeper"}},
			{curatorRow, rival, stagedPair{on, "curator"}},
			{oursZooKeeper, ours, stagedPair{on, "zk"}},
		},
		goals: []goal{{oursZooKeeper, pairMedian, atMost, 0.95, 1, goZooKeeperRow}},
	}
}

func zooKeeperContested() row {
	return contested(zooKeeperServer,
		contender{goZooKeeperRow, rival, contest{"go-zookeeper", 8, 8}}, contender{curatorRow, rival, contest{"curator", 8, 8}})
}

func zooKeeperHandoffs() row {
	r := zooKeeperContested()
	r.name = "zk-handoffs"
	r.title = "ZooKeeper, 8 processes × 8 goroutines on one lock, strict: no goroutine passes the lock on within its process"
	r.contenders = append(r.contenders, contender{oursZKStrict, ours, contest{"zk strict", 8, 8}})
	r.goals = []goal{
		{oursZKStrict, acquisitions, atLeast, 1.3, 2, goZooKeeperRow},
		{oursZKStrict, jain, atLeast, 0.99, 0, ""},
	}
	return r
}

func zooKeeperPassing() row {
	r := zooKeeperContested()
	r.name = "zk-passing"
	r.title = "ZooKeeper, 8 processes × 8 goroutines on one lock"
	r.contenders = append(r.contenders, contender{oursZooKeeper, ours, contest{"zk", 8, 8}})
	r.goals = []goal{
		{oursZooKeeper, acquisitions, atLeast, 6, 10, goZooKeeperRow},
		{oursZooKeeper, jain, atLeast, 0.99, 0, ""},
	}
	return r
}

func zooKeeperDead() row {
	const ttl = 3 * time.Second
	return row{
		name:  "zk-dead",
		title: "ZooKeeper, kill -9 of the holder: from when the server tells others of the end of its session until the next process holds",
		options: "TTL " + ttl.String() + " and up to 100 ms more; one kill a repetition, the waiter in line for " + settle.String() +
			"; the end is when a third client, which watches the holder's node, is told of it; " + zooKeeperServer,
		reps:       8,
		metrics:    []metric{latency},
		contenders: []contender{{oursZooKeeper, ours, lapse{"zk", ttl}}},
		goals:      []goal{{oursZooKeeper, latency, atMost, 100, 0, ""}},
	}
}
