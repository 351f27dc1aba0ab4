package main

import (
	"fmt"
	"slices"
	"time"
)

// Names of contenders that goals refer to.
const (
	streamPingPong   = "stream ping-pong, 2 processes"
	datagramPingPong = "datagram ping-pong, 2 processes"
	sqliteStrict     = "SQLite polling, 8 × 1"
	oursStrict       = "Interlock filelock, 8 × 1"
	oursPassing      = "Interlock filelock, 8 × 8"
	flockOpened      = "flock(2), opened per lock"
	sqliteRow        = "SQLite row"
	oursFile         = "Interlock filelock"
	oursMem          = "Interlock memlock"
	goHello          = "Go hello"
	oursRun          = "interlock run x -- true"
	oursEmbedded     = "the same, filelock linked alone"
	perLeaseMem      = "goroutine and timer per lease, memlock"
	perLeaseFile     = "goroutine and timer per lease, mapped file"
	oneName          = "Interlock filelock, 1 lock"
	manyNames        = "Interlock filelock, 1,000 locks"
)

// allRows are the rows in the order in which they run.
func allRows() []row {
	return slices.Concat(
		[]row{local(), embedded(), free(), tracer(), killed(), startUp(), leases(), idle(), fileList()}, redisRows(), redlockRows(), pgRows(), myRows(), shedRows(), etcdRows(), zooKeeperRows(), memcachedRows(),
	)
}

// bareFIFO is the floor of a process's own line.
const bareFIFO = "bare FIFO"

// inOneProcess completes a row of contests within one process. Adds puts in
// who takes part, and what they have to reach, for each number of goroutines.
func inOneProcess(r row, adds func(r *row, suffix string, goroutines int)) row {
	r.title += "one process, 16 and 128 goroutines on one lock"
	r.scale = scale{warm: 100 * time.Millisecond, window: 500 * time.Millisecond}
	for _, n := range []int{16, 128} {
		suffix := fmt.Sprintf(", %d goroutines", n)
		r.contenders = append(r.contenders, contender{bareFIFO + suffix, floor, contest{"fifo", 1, n}})
		adds(&r, suffix, n)
	}
	return r
}

// manyShort is long enough for 64 connections to be made, or sessions to be
// opened.
var manyShort = scale{warm: 100 * time.Millisecond, window: 600 * time.Millisecond, rest: 300 * time.Millisecond, shrink: 50}

// contested is the common part of the rows in which 8 processes × 8 goroutines
// want one lock of a server that syncs its disk.
func contested(server string, contenders ...contender) row {
	return row{
		options:    "empty critical section; a contest lasts 3 s after 500 ms of warm-up; " + server,
		reps:       3,
		scale:      scale{warm: 500 * time.Millisecond, window: 3 * time.Second},
		short:      manyShort,
		metrics:    []metric{handoffs, acquisitions, jain, longestWait, requestsEach, cpuEach, serverEach},
		contenders: contenders,
	}
}

func local() row {
	return inOneProcess(row{
		name:    "local",
		options: "empty critical section; default options; a contest lasts 500 ms after 100 ms of warm-up",
		reps:    7,
		metrics: []metric{acquisitions, callsPer32, jain, longestWait, cpuEach},
	}, func(r *row, suffix string, goroutines int) {
		r.contenders = append(r.contenders,
			contender{"FIFO with contexts" + suffix, remark, contest{"fifo with contexts", 1, goroutines}},
			contender{oursMem + suffix, ours, contest{"memlock", 1, goroutines}},
			contender{oursFile + suffix, ours, contest{"filelock", 1, goroutines}},
		)
		for _, who := range []string{oursMem, oursFile} {
			r.goals = append(r.goals,
				goal{who + suffix, acquisitions, atLeast, 0.35, 0.5, bareFIFO + suffix},
				goal{who + suffix, callsPer32, atMost, 2, 0, ""},
			)
		}
	})
}

func embedded() row {
	return row{
		name:    "embedded",
		title:   "8 processes on one lock, handoffs to another process",
		options: "n × m: processes × goroutines; empty critical section; default options; a contest lasts 1 s after 200 ms of warm-up",
		reps:    7,
		scale:   scale{warm: 200 * time.Millisecond, window: time.Second},
		metrics: []metric{handoffs, acquisitions, jain, longestWait, cpuEach},
		contenders: []contender{
			{streamPingPong, floor, contest{"stream", 2, 1}},
			{datagramPingPong, floor, contest{"datagram", 2, 1}},
			{sqliteStrict, rival, contest{"sqlite", 8, 1}},
			{"flock(2), 8 × 1, barges", remark, contest{"flock", 8, 1}},
			{"Interlock filelock, 2 × 1", ours, contest{"filelock", 2, 1}},
			{oursStrict, ours, contest{"filelock", 8, 1}},
			{oursPassing, ours, contest{"filelock", 8, 8}},
		},
		goals: []goal{
			{oursStrict, handoffs, atLeast, 0.3, 0.5, streamPingPong},
			{oursStrict, handoffs, atLeast, 50, 0, sqliteStrict},
			{oursStrict, jain, atLeast, 0.99, 0, ""},
			{oursPassing, jain, atLeast, 0.99, 0, ""},
		},
	}
}

func free() row {
	return row{
		name:    "free",
		title:   "embedded, free lock and unlock",
		options: "one goroutine, nobody else; default options; 300 ms of pairs after 30 ms of warm-up",
		reps:    7,
		scale:   scale{window: 300 * time.Millisecond},
		metrics: []metric{pairMedian, pairSlow},
		contenders: []contender{
			{flockOpened, floor, freePair{"flock"}},
			{sqliteRow, rival, freePair{"sqlite"}},
			{oursFile, ours, freePair{"filelock"}},
		},
		goals: []goal{{oursFile, pairMedian, atMost, 2.5, 2, flockOpened}},
	}
}

func killed() row {
	return row{
		name:    "kill",
		title:   "kill -9 of the holder until the next process holds",
		options: "default options; one kill a repetition, the waiter in line for " + settle.String(),
		reps:    25,
		metrics: []metric{latency},
		contenders: []contender{
			{"end of a stream socket", floor, takeover{"eof"}},
			{"flock(2)", rival, takeover{"flock"}},
			{oursFile, ours, takeover{"filelock"}},
		},
		goals: []goal{{oursFile, latency, atMost, 2, 1, ""}},
	}
}

func startUp() row {
	return row{
		name:     "start",
		title:    "`interlock run x -- true`, start to end",
		options:  "all built by .ci/build; store on a fresh directory that the first, uncounted run has made; 3 runs a repetition",
		reps:     20,
		programs: true,
		scale:    scale{runs: 3},
		metrics:  []metric{startToEnd},
		contenders: []contender{
			{"/bin/true", remark, program{func(_, _ string) []string { return []string{"/bin/true"} }}},
			{goHello, floor, program{func(bin, _ string) []string { return []string{bin + "/hello"} }}},
			{"flock(1) file true", rival, program{func(_, dir string) []string {
				return []string{"flock", dir + "/x", "true"}
			}}},
			{oursRun, ours, program{func(bin, dir string) []string {
				return []string{bin + "/interlock", "run", "--store", "file:" + dir + "/store", "x", "--", "true"}
			}}},
			{oursEmbedded, ours, program{func(bin, dir string) []string {
				return []string{bin + "/embedded", "run", "--store", "file:" + dir + "/store", "x", "--", "true"}
			}}},
		},
		goals: []goal{
			{oursRun, startToEnd, atMost, 7, 4, goHello},
			{oursEmbedded, startToEnd, atMost, 6, 4, goHello},
		},
	}
}

func leases() row {
	const ttl = 10 * time.Second / 3 // renewed each second
	return row{
		name:    "leases",
		title:   "10,000 leases held by one process and renewed each second",
		options: "TTL " + ttl.String() + ", else default options; CPU of the process over 5 s of holding",
		reps:    3,
		scale:   scale{warm: time.Second, rest: 5 * time.Second},
		metrics: []metric{cpuShare, renewals, operations, writeCalls},
		contenders: []contender{
			{perLeaseMem, rival, atRest{"memory keepers", ttl, 10_000, 0}},
			{perLeaseFile, rival, atRest{"file keepers", ttl, 10_000, 0}},
			{oursMem, ours, atRest{"memlock", ttl, 10_000, 0}},
			{oursFile, ours, atRest{"filelock", ttl, 10_000, 0}},
		},
		goals: []goal{
			{oursMem, cpuShare, atMost, 1.0 / 10, 1.0 / 20, perLeaseMem},
			{oursFile, cpuShare, atMost, 1.0 / 10, 1.0 / 20, perLeaseFile},
		},
	}
}

func idle() row {
	const ttl = 2 * time.Second
	return row{
		name:    "idle",
		title:   "1,000 goroutines of one process wait while another process holds",
		options: "TTL " + ttl.String() + ", else default options; both processes together over 6 s; renewals counted apart",
		reps:    3,
		scale:   scale{warm: time.Second, rest: 6 * time.Second},
		metrics: []metric{operations, perTTL, renewals, writeCalls, cpuShare},
		contenders: []contender{
			{"SQLite polling, 1 lock", rival, atRest{"sqlite", ttl, 1, 1000}},
			{oneName, ours, atRest{"filelock", ttl, 1, 1000}},
			{manyNames, ours, atRest{"filelock", ttl, 1000, 1000}},
		},
		goals: []goal{
			{oneName, perTTL, atMost, 1, 0, ""},
			{manyNames, perTTL, atMost, 1, 0, ""},
		},
	}
}

func fileList() row {
	const few, many, bare = "1 of 100 names", "1 of 10,000 names", "the files of 10,000 names, read"
	return row{
		name:    "list",
		title:   "A list of who holds by a new process: one name is held, the others were",
		options: fmt.Sprintf("all names locked by one process that lives; a list includes opening the store; median of %d", lists),
		reps:    3,
		metrics: []metric{latency, recordReads},
		contenders: []contender{
			{bare, remark, fileListing{10_000, true}},
			{few, ours, fileListing{100, false}},
			{many, ours, fileListing{10_000, false}},
		},
		goals: []goal{
			{many, recordReads, atMost, 1, 0, few},
			{many, latency, atMost, 2, 1.2, few},
		},
	}
}
