package main

import (
	"fmt"
	"time"
)

// Names of contenders on five masters that goals refer to.
const (
	rawQuorumRow   = "raw SET NX PX + compare-and-delete, majority"
	oursQuorum     = "Interlock redlock"
	oursQuorumEach = "Interlock redlock, strict"
	oursMany       = "Interlock redlock, 50 × 1"
	oursManyStrict = "Interlock redlock, 10 × 5, strict"
)

// redisMasters is said of every row on five masters.
const redisMasters = "five redis-servers on loopback without persistence, new for each run; defaults of each library"

// quorumShort is long enough for somebody to get the lock of redsync, which
// sleeps for up to 250 ms when two want it, and for 50 processes to connect.
var quorumShort = scale{warm: 100 * time.Millisecond, window: 600 * time.Millisecond, rest: 150 * time.Millisecond, shrink: 20}

// redlockRows are the rows of the store on several masters.
func redlockRows() []row {
	return []row{redlockFree(), redlockHandoffs(), redlockPassing(), redlockFair(), redlockSkewed(), redlockStopped(), redlockDenied()}
}

func redlockFree() row {
	on := &stage{adapters: []string{"raw quorum", "redsync quorum", "redsync rueidis quorum", "redlock"}}
	return row{
		name:  "redlock-free",
		title: "Redlock on five masters, free lock and unlock",
		options: fmt.Sprintf("one goroutine, nobody else; rounds of %d pairs in turn, all in one process and on the same servers; %s",
			roundPairs, redisMasters),
		reps:    40,
		stage:   on,
		metrics: []metric{pairMedian, pairSlow, packets, bothEach, cpuEach, serverEach, scriptTime},
		contenders: []contender{
			{rawQuorumRow, floor, stagedPair{on, "raw quorum"}},
			{redsyncRow, rival, stagedPair{on, "redsync quorum"}},
			{redsyncRueidisRow, rival, stagedPair{on, "redsync rueidis quorum"}},
			{oursQuorum, ours, stagedPair{on, "redlock"}},
		},
		goals: []goal{
			{oursQuorum, pairMedian, atMost, 1.2, 1.1, rawQuorumRow},
			{oursQuorum, pairMedian, atMost, 1, 0.6, redsyncRow},
			{oursQuorum, pairMedian, atMost, 1, 0.6, redsyncRueidisRow},
		},
	}
}

// quorumContest is the common part of the rows in which processes ×
// goroutines want one lock on five masters.
func quorumContest() row {
	return row{
		options: "n × m: processes × goroutines; empty critical section; a contest lasts 3 s after 500 ms of warm-up; " + redisMasters,
		reps:    5,
		scale:   scale{warm: 500 * time.Millisecond, window: 3 * time.Second},
		short:   quorumShort,
		metrics: []metric{
			handoffs, acquisitions, jain, meanWait, longestWait, raises, scriptsEach, packets, cpuEach, serverEach, scriptTime,
		},
	}
}

func redlockHandoffs() row {
	r := quorumContest()
	r.name = "redlock-handoffs"
	r.title = "Redlock on five masters, 8 processes × 8 goroutines on one lock, strict: no goroutine passes the lock on within its process"
	r.contenders = []contender{
		{redsyncRow, rival, contest{"redsync quorum", 8, 8}},
		{redsyncRueidisRow, rival, contest{"redsync rueidis quorum", 8, 8}},
		{oursQuorumEach, ours, contest{"redlock strict", 8, 8}},
	}
	r.goals = []goal{
		{oursQuorumEach, handoffs, atLeast, 14, 20, redsyncRow},
		{oursQuorumEach, handoffs, atLeast, 14, 20, redsyncRueidisRow},
		{oursQuorumEach, raises, atMost, 5, 0, ""},
		{oursQuorumEach, jain, atLeast, 0.99, 0, ""},
	}
	return r
}

func redlockPassing() row {
	r := quorumContest()
	r.name = "redlock-passing"
	r.title = "Redlock on five masters, 8 processes × 8 goroutines on one lock"
	r.contenders = []contender{
		{redsyncRow, rival, contest{"redsync quorum", 8, 8}},
		{redsyncRueidisRow, rival, contest{"redsync rueidis quorum", 8, 8}},
		{oursQuorum, ours, contest{"redlock", 8, 8}},
	}
	r.goals = []goal{
		{oursQuorum, acquisitions, atLeast, 30, 50, redsyncRow},
		{oursQuorum, acquisitions, atLeast, 30, 50, redsyncRueidisRow},
		{oursQuorum, raises, atMost, 5, 0, ""},
		{oursQuorum, jain, atLeast, 0.99, 0, ""},
	}
	return r
}

func redlockFair() row {
	r := quorumContest()
	r.name = "redlock-fair"
	r.title = "Redlock on five masters, 50 contenders on one lock: how long the unluckiest waits"
	r.options = "n × m: processes × goroutines; empty critical section; a contest lasts 3 s after 2 s of warm-up; a wait counts when it ends; " + redisMasters
	r.scale.warm = 2 * time.Second
	r.short.window = 2 * time.Second // 50 processes need longer to get going
	r.metrics = []metric{longestToMean, meanWait, longestWait, jain, handoffs, acquisitions, raises}
	r.contenders = []contender{
		{redsyncRow + ", 10 × 5", rival, contest{"redsync quorum", 10, 5}},
		{oursMany, ours, contest{"redlock", 50, 1}},
		{oursManyStrict, ours, contest{"redlock strict", 10, 5}},
		{"Interlock redlock, 10 × 5, most waits within a process", remark, contest{"redlock", 10, 5}},
	}
	for _, who := range []string{oursMany, oursManyStrict} {
		r.goals = append(r.goals, goal{who, longestToMean, neverOver, 5, 0, ""})
	}
	return r
}

func redlockSkewed() row {
	r := quorumContest()
	r.name = "redlock-skewed"
	r.title = "Redlock on five masters, 5 contenders on one lock, one with another clock: who gets how much"
	r.options = "5 processes × 1 goroutine; empty critical section; a contest lasts 3 s after 500 ms of warm-up; the clock is that of tickets, in which a process is ahead that has met one that is; " + redisMasters
	r.metrics = []metric{mostToLeast, jain, meanWait, longestWait, handoffs, raises}
	r.contenders = []contender{
		{oursQuorum + ", clocks agree", remark, contest{"redlock", 5, 1}},
		{oursQuorum + ", one an hour ahead", ours, contest{"redlock ahead", 5, 1}},
		{oursQuorum + ", one an hour behind", ours, contest{"redlock behind", 5, 1}},
	}
	for _, c := range r.contenders[1:] {
		r.goals = append(r.goals, goal{c.name, mostToLeast, neverOver, 1.5, 0, ""})
	}
	return r
}

func redlockStopped() row {
	r := row{
		name:  "redlock-stopped",
		title: "Redlock on five masters, some stopped for 1 s under 8 processes × 8 goroutines on one lock",
		options: "SIGSTOP, then SIGCONT; the usual is that of 1.5 s before, in the same run; waits that ended later count as of then; after " +
			fading.String() + " of a majority being stopped nobody may get in; " + redisMasters,
		reps:  7,
		scale: scale{warm: 500 * time.Millisecond, rest: time.Second, window: 500 * time.Millisecond},
		short: quorumShort,
		metrics: []metric{
			usualWait, usualLongest, stoppedWait, stoppedLongest, aboveUsual, usualRate, stoppedRate, unbacked, firstAgain, allAgain,
		},
	}
	for n := range 4 {
		who := fmt.Sprintf("%s, %d stopped", oursQuorum, n)
		as := ours
		if n == 0 {
			as = remark
		}
		r.contenders = append(r.contenders, contender{who, as, outage{contest{"redlock", 8, 8}, n}})
		switch n {
		case 1, 2:
			r.goals = append(r.goals, goal{who, aboveUsual, neverOver, 100, 0, ""})
		case 3:
			r.goals = append(r.goals, goal{who, unbacked, neverOver, 0, 0, ""})
		}
	}
	return r
}

func redlockDenied() row {
	r := row{
		name:    "redlock-denied",
		title:   "Redlock on five masters, a try for a lock that another client holds, some masters stopped",
		options: "one goroutine, one process; SIGSTOP after the lock was taken; tries of 0.5 s after as long to warm up; " + redisMasters,
		reps:    7,
		scale:   scale{window: 500 * time.Millisecond},
		metrics: []metric{tryMedian, trySlow},
	}
	name := func(n int) string { return fmt.Sprintf("%s, %d stopped", oursQuorum, n) }
	for n := range 3 {
		as := ours
		if n == 0 {
			as = remark
		}
		r.contenders = append(r.contenders, contender{name(n), as, denied{n}})
		if n > 0 {
			r.goals = append(r.goals, goal{name(n), tryMedian, atMost, 1.5, 1.2, name(0)})
		}
	}
	return r
}
