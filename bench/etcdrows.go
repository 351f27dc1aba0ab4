package main

import (
	"fmt"
	"time"
)

// Names of contenders on etcd that goals refer to.
const (
	rawEtcdRow     = "put + delete"
	concurrencyRow = "concurrency.Mutex"
	oursEtcd       = "Interlock etcdlock"
	oursEtcdStrict = "Interlock etcdlock, strict"
	oursEtcdNames  = "Interlock etcdlock, 1,000 locks"
)

// etcdServer is said of every row on etcd.
const etcdServer = "one etcd on loopback with fsync, new for each run; a client for each process and contender, of concurrency.Mutex a session for each goroutine"

// etcdRows are the rows of the store on etcd.
func etcdRows() []row {
	return []row{etcdFree(), etcdHandoffs(), etcdPassing(), etcdIdle(), etcdDead()}
}

func etcdFree() row {
	on := &stage{adapters: []string{"raw etcd", "concurrency", "etcd"}}
	return row{
		name:  "etcd-free",
		title: "etcd, free lock and unlock",
		options: fmt.Sprintf("one goroutine, nobody else; rounds of %d pairs in turn, all in one process and on one server; %s",
			roundPairs, etcdServer),
		reps:    20,
		stage:   on,
		metrics: []metric{pairMedian, pairSlow, requestsEach, cpuEach, serverEach},
		contenders: []contender{
			{rawEtcdRow, floor, stagedPair{on, "raw etcd"}},
			{concurrencyRow, rival, stagedPair{on, "concurrency"}},
			{oursEtcd, ours, stagedPair{on, "etcd"}},
		},
		goals: []goal{{oursEtcd, pairMedian, atMost, 1.05, 1, concurrencyRow}},
	}
}

func etcdContested() row {
	return contested(etcdServer, contender{concurrencyRow, rival, contest{"concurrency", 8, 8}})
}

func etcdHandoffs() row {
	r := etcdContested()
	r.name = "etcd-handoffs"
	r.title = "etcd, 8 processes × 8 goroutines on one lock, strict: no goroutine passes the lock on within its process"
	r.contenders = append(r.contenders, contender{oursEtcdStrict, ours, contest{"etcd strict", 8, 8}})
	r.goals = []goal{
		{oursEtcdStrict, acquisitions, atLeast, 1.7, 2, concurrencyRow},
		{oursEtcdStrict, jain, atLeast, 0.99, 0, ""},
	}
	return r
}

func etcdPassing() row {
	r := etcdContested()
	r.name = "etcd-passing"
	r.title = "etcd, 8 processes × 8 goroutines on one lock"
	r.contenders = append(r.contenders, contender{oursEtcd, ours, contest{"etcd", 8, 8}})
	r.goals = []goal{
		{oursEtcd, acquisitions, atLeast, 6, 10, concurrencyRow},
		{oursEtcd, jain, atLeast, 0.99, 0, ""},
	}
	return r
}

func etcdIdle() row {
	const ttl, patient = 3 * time.Second, 30 * time.Second
	return row{
		name:  "etcd-idle",
		title: "etcd, 1,000 goroutines of one process wait while another process holds",
		options: "both processes together over 6 s; TTL " + ttl.String() + ", " + patient.String() +
			" for the other; a renewal of ours is one message, which is no request, and two requests; " + etcdServer,
		reps:    2,
		scale:   scale{warm: 5 * time.Second, rest: 6 * time.Second},
		short:   manyShort,
		metrics: []metric{operations, perTTL, requests, renewals, cpuShare, serverShare},
		contenders: []contender{
			{concurrencyRow, rival, atRest{"concurrency", patient, 1, 1000}},
			{oursEtcd, ours, atRest{"etcd", ttl, 1, 1000}},
			{oursEtcdNames, ours, atRest{"etcd", ttl, 1000, 1000}},
		},
		goals: []goal{
			{oursEtcd, perTTL, atMost, 1, 0, ""},
			{oursEtcdNames, perTTL, atMost, 1, 0, ""},
		},
	}
}

func etcdDead() row {
	const ttl = 2 * time.Second
	return row{
		name:  "etcd-dead",
		title: "etcd, kill -9 of the holder: from the end of its lease until the next process holds",
		options: "TTL 3 s, 2 s of concurrency.Mutex; one kill a repetition, the waiter in line for " + settle.String() +
			"; the lease's end is when the server says that the key is deleted; " + etcdServer,
		reps:    6,
		metrics: []metric{latency},
		contenders: []contender{
			{concurrencyRow, rival, lapse{"concurrency", ttl}},
			{oursEtcd, ours, lapse{"etcd", ttl}},
		},
		goals: []goal{{oursEtcd, latency, neverOver, 100, 50, ""}},
	}
}
