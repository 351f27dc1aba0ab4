package main

import (
	"fmt"
	"time"
)

// Names of contenders on PostgreSQL that goals refer to.
const (
	rawRows         = "bare upsert + update"
	advisoryRow     = "pg_advisory_lock, a connection each"
	pgRing          = "one update + one NOTIFY, ring of 8"
	tableRow        = "INSERT and DELETE, tried every 20 ms"
	gooseRow        = "goose's table locker, tried every 20 ms"
	tableKeepersRow = "goroutine and UPDATE per lease"
	oursRows        = "Interlock pglock, rows"
	oursRowsStrict  = "Interlock pglock, rows, strict"
	oursRowsNames   = "Interlock pglock, rows, 1,000 locks"
	oursSession     = "Interlock pglock, session"
	oursSessions    = "Interlock pglock, session, strict"
)

// pgServer is said of every row on PostgreSQL.
const pgServer = "one PostgreSQL on loopback with fsync, new for each run; a pool of pgx for each process and contender"

// pgRows are the rows of the store on PostgreSQL.
func pgRows() []row {
	return []row{pgFree(), pgHandoffs(), pgPassing(), pgIdle(), pgKill(), pgDead(), pgLeases()}
}

func pgFree() row {
	on := &stage{adapters: []string{"raw rows", "raw rows, unprepared", "advisory", "table", "goose", "pg rows", "pg session"}}
	return row{
		name:  "pg-free",
		title: "PostgreSQL, free lock and unlock",
		options: fmt.Sprintf("one goroutine, nobody else; rounds of %d pairs in turn, all in one process and on one server; %s",
			roundPairs, pgServer),
		reps:    20,
		stage:   on,
		metrics: []metric{pairMedian, pairSlow, requestsEach, cpuEach, serverEach},
		contenders: []contender{
			{rawRows, floor, stagedPair{on, "raw rows"}},
			{rawRows + ", not prepared", remark, stagedPair{on, "raw rows, unprepared"}},
			{advisoryRow, floor, stagedPair{on, "advisory"}},
			{tableRow, rival, stagedPair{on, "table"}},
			{gooseRow, rival, stagedPair{on, "goose"}},
			{oursRows, ours, stagedPair{on, "pg rows"}},
			{oursSession, ours, stagedPair{on, "pg session"}},
		},
		goals: []goal{
			{oursRows, pairMedian, atMost, 1.5, 1.25, rawRows},
			{oursSession, pairMedian, atMost, 1.1, 1, advisoryRow},
		},
	}
}

func pgContested() row {
	return contested(pgServer,
		contender{advisoryRow, floor, contest{"advisory", 8, 8}},
		contender{tableRow, rival, contest{"table", 8, 8}},
		contender{gooseRow, rival, contest{"goose", 8, 8}},
	)
}

func pgHandoffs() row {
	r := pgContested()
	r.name = "pg-handoffs"
	r.title = "PostgreSQL, 8 processes × 8 goroutines on one lock, strict: no goroutine passes the lock on within its process"
	r.contenders = append(r.contenders,
		contender{pgRing, floor, contest{"pg push", 8, 1}},
		contender{oursRowsStrict, ours, contest{"pg rows strict", 8, 8}},
		contender{oursSessions, ours, contest{"pg session strict", 8, 8}},
	)
	r.goals = []goal{
		{oursRowsStrict, handoffs, atLeast, 0.4, 0.6, advisoryRow},
		{oursSessions, handoffs, atLeast, 1, 1.3, advisoryRow},
		{oursRowsStrict, jain, atLeast, 0.99, 0, ""},
		{oursSessions, jain, atLeast, 0.99, 0, ""},
	}
	return r
}

func pgPassing() row {
	r := pgContested()
	r.name = "pg-passing"
	r.title = "PostgreSQL, 8 processes × 8 goroutines on one lock"
	r.contenders = append(r.contenders,
		contender{oursRows, ours, contest{"pg rows", 8, 8}},
		contender{oursSession, ours, contest{"pg session", 8, 8}},
	)
	r.goals = []goal{
		{oursRows, acquisitions, atLeast, 5, 0, advisoryRow},
		{oursRows, jain, atLeast, 0.99, 0, ""},
		{oursSession, jain, atLeast, 0.99, 0, ""},
	}
	return r
}

func pgIdle() row {
	const ttl, patient = 2 * time.Second, 30 * time.Second
	return row{
		name:  "pg-idle",
		title: "PostgreSQL, 1,000 goroutines of one process wait while another process holds",
		options: "both processes together over 4 s; TTL " + ttl.String() + ", " + patient.String() +
			" for the others; renewals are no requests; " + pgServer,
		reps:    2,
		scale:   scale{warm: 5 * time.Second, rest: 4 * time.Second},
		short:   manyShort,
		metrics: []metric{requests, requestsPerTTL, renewals, connections, cpuShare, serverShare},
		contenders: []contender{
			{advisoryRow, rival, atRest{"advisory", patient, 1, 1000}},
			{tableRow, rival, atRest{"table", patient, 1, 1000}},
			{gooseRow, rival, atRest{"goose", patient, 1, 1000}},
			{oursRows, ours, atRest{"pg rows", ttl, 1, 1000}},
			{oursRowsNames, ours, atRest{"pg rows", ttl, 1000, 1000}},
			{oursSession, ours, atRest{"pg session", ttl, 1, 1000}},
		},
		goals: []goal{
			{oursRows, requestsPerTTL, atMost, 1, 0, ""},
			{oursRowsNames, requestsPerTTL, atMost, 1, 0, ""},
			{oursSession, requestsPerTTL, atMost, 1, 0, ""},
		},
	}
}

func pgKill() row {
	return row{
		name:    "pg-kill",
		title:   "PostgreSQL, kill -9 of a holder whose lock lives with its connection, until the next process holds",
		options: "one kill a repetition, the waiter in line for " + settle.String() + "; " + pgServer,
		reps:    15,
		metrics: []metric{latency},
		contenders: []contender{
			{advisoryRow, floor, takeover{"advisory"}},
			{oursSession, ours, takeover{"pg session"}},
		},
		goals: []goal{{oursSession, latency, atMost, 2, 1, ""}},
	}
}

func pgDead() row {
	const ttl = time.Second
	return row{
		name:  "pg-dead",
		title: "PostgreSQL, kill -9 of the holder: from the end of its lease until the next process holds",
		options: "TTL " + ttl.String() + " and up to 100 ms more, 1 s for goose; one kill a repetition, the waiter in line for " + settle.String() +
			"; the lease's end is the table's own; " + pgServer,
		reps:    15,
		metrics: []metric{latency},
		contenders: []contender{
			{"INSERT, tried without a pause", floor, lapse{"table, eager", ttl}},
			{tableRow, rival, lapse{"table", ttl}},
			{gooseRow, rival, lapse{"goose", ttl}},
			{oursRows, ours, lapse{"pg rows", ttl}},
		},
		goals: []goal{{oursRows, latency, neverOver, 100, 50, ""}},
	}
}

func pgLeases() row {
	const ttl = 10 * time.Second / 3 // renewed each second
	return row{
		name:    "pg-leases",
		title:   "PostgreSQL, 10,000 leases held by one process and renewed each second",
		options: "TTL " + ttl.String() + "; CPU of the process over 5 s of holding; " + pgServer,
		reps:    3,
		scale:   scale{warm: time.Second, rest: 5 * time.Second},
		short:   manyShort,
		metrics: []metric{perRenewal, requests, renewals, cpuShare, serverShare},
		contenders: []contender{
			{tableKeepersRow, rival, atRest{"table keepers", ttl, 10_000, 0}},
			{oursRows, ours, atRest{"pg rows", ttl, 10_000, 0}},
			{oursSession, ours, atRest{"pg session", ttl, 10_000, 0}},
		},
		goals: []goal{
			{oursRows, perRenewal, atMost, 1, 0, ""},
			{oursSession, perRenewal, atMost, 1, 0, ""},
			{oursRows, cpuShare, atMost, 1.0 / 10, 1.0 / 20, tableKeepersRow},
			{oursSession, cpuShare, atMost, 1.0 / 10, 1.0 / 20, tableKeepersRow},
		},
	}
}
