package main

import "fmt"

// Names of contenders on MariaDB that goals refer to.
const (
	bareMariaRow = "bare upsert + update, MariaDB"
	getLockRow   = "GET_LOCK, a connection each"
	oursMyRows   = "Interlock mysqllock, rows"
	oursMyStrict = "Interlock mysqllock, rows, strict"
	oursMySess   = "Interlock mysqllock, session"
	oursMySesses = "Interlock mysqllock, session, strict"
)

// myServer is said of every row on MariaDB.
const myServer = "one MariaDB on loopback with fsync, new for each run; a pool of go-sql-driver/mysql for each process and contender"

// myRows are the rows of the store on MariaDB.
func myRows() []row { return []row{myFree(), myHandoffs(), myPassing()} }

func myFree() row {
	on := &stage{adapters: []string{"bare rows", "get lock", "my rows", "my session"}}
	return row{
		name:    "my-free",
		title:   "MariaDB, free lock and unlock",
		options: fmt.Sprintf("one goroutine, nobody else; rounds of %d pairs in turn, all in one process and on one server; %s", roundPairs, myServer),
		reps:    20,
		stage:   on,
		metrics: []metric{pairMedian, pairSlow, cpuEach},
		contenders: []contender{
			{bareMariaRow, floor, stagedPair{on, "bare rows"}},
			{getLockRow, floor, stagedPair{on, "get lock"}},
			{oursMyRows, ours, stagedPair{on, "my rows"}},
			{oursMySess, ours, stagedPair{on, "my session"}},
		},
		goals: []goal{
			{oursMyRows, pairMedian, atMost, 1.5, 0, bareMariaRow},
			{oursMySess, pairMedian, atMost, 1.1, 0, getLockRow},
		},
	}
}

// myContested is one of the rows in which 8 processes × 8 goroutines want one
// lock.
func myContested(name, title string, more ...contender) row {
	r := contested(myServer, append([]contender{{getLockRow, floor, contest{"get lock", 8, 8}}}, more...)...)
	r.name, r.title = name, "MariaDB, 8 processes × 8 goroutines on one lock"+title
	r.metrics = []metric{handoffs, acquisitions, jain, longestWait, cpuEach}
	return r
}

func myHandoffs() row {
	r := myContested("my-handoffs", ", strict: no goroutine passes the lock on within its process",
		contender{oursMyStrict, ours, contest{"my rows strict", 8, 8}},
		contender{oursMySesses, ours, contest{"my session strict", 8, 8}},
	)
	r.goals = []goal{
		{oursMyStrict, handoffs, atLeast, 0.4, 0.6, getLockRow},
		{oursMyStrict, jain, atLeast, 0.99, 0, ""},
	}
	return r
}

func myPassing() row {
	r := myContested("my-passing", "",
		contender{oursMyRows, ours, contest{"my rows", 8, 8}},
		contender{oursMySess, ours, contest{"my session", 8, 8}},
	)
	r.goals = []goal{
		{oursMyRows, acquisitions, atLeast, 5, 0, getLockRow},
		{oursMyRows, jain, atLeast, 0.99, 0, ""},
	}
	return r
}
