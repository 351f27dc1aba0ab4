package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Names of contenders on Redis that goals refer to.
const (
	rawPair             = "raw SET NX PX + compare-and-delete"
	pushRing            = "one script + one push, ring of 8"
	redsyncRow          = "redsync"
	redsyncRueidisRow   = "redsync over rueidis"
	redislockRow        = "redislock, tried every 20 ms"
	rueidislockRow      = "rueidislock"
	rawKeepersRow       = "goroutine and script per lease"
	redislockKeepersRow = "goroutine per lease, redislock"
	oursRedis           = "Interlock redislock"
	oursRedisStrict     = "Interlock redislock, strict"
	oursRedisIsolated   = "Interlock redislock, isolated"
	oursRedisNames      = "Interlock redislock, 1,000 locks"
)

// redisServer is said of every row on Redis.
const redisServer = "one redis-server on loopback without persistence, new for each run; defaults of each library, rueidislock with one key and NoLoopTracking"

// redisRows are the rows of the store on Redis.
func redisRows() []row {
	return []row{
		redisFree(), redisAwake(), redis512(), redisLocal(), redisHandoffs(), redisPassing(), redisIdle(), redisDead(), redisLeases(),
		redisPermits(), redisReaders(), redisList(),
	}
}

// rivals are what people use on Redis, all doing the same work.
func rivals(does func(adapter string) racer) []contender {
	return []contender{
		{redsyncRow, rival, does("redsync")},
		{redsyncRueidisRow, rival, does("redsync rueidis")},
		{redislockRow, rival, does("redislock")},
		{rueidislockRow, rival, does("rueidislock")},
	}
}

func redisFree() row {
	r := freeOnRedis(&stage{})
	r.name, r.title = "redis-free", "Redis, free lock and unlock"
	for _, g := range []goal{ // by CPU time: latency has two modes here
		{than: rawPair, factor: 1.1, stretch: 0.7},
		{than: redislockRow, factor: 1, stretch: 0.8},
		{than: rueidislockRow, factor: 1, stretch: 0.8},
		{than: redsyncRow, factor: 1, stretch: 0.8},
		{than: redsyncRueidisRow, factor: 1, stretch: 0.8},
	} {
		g.who, g.metric, g.sign = oursRedis, bothEach, atMost
		r.goals = append(r.goals, g)
	}
	return r
}

// redisAwake is redis-free on a machine whose cores need not be woken. It is
// there to be read beside the ordinary row, and judges nothing.
func redisAwake() row {
	r := freeOnRedis(&stage{awake: true})
	r.name, r.title = "redis-awake", "Redis, free lock and unlock, a core kept from idling by a process of the lowest priority"
	return r
}

func freeOnRedis(on *stage) row {
	on.adapters = []string{"raw", "redsync", "redsync rueidis", "redislock", "rueidislock", "redis"}
	r := row{
		options: fmt.Sprintf("one goroutine, nobody else; rounds of %d pairs in turn, all in one process and on one server; %s",
			roundPairs, redisServer),
		reps:    60,
		stage:   on,
		metrics: []metric{pairMedian, pairSlow, packets, bothEach, cpuEach, serverEach, scriptTime},
	}
	r.contenders = append(r.contenders, contender{rawPair, floor, stagedPair{on, "raw"}})
	r.contenders = append(r.contenders, rivals(func(a string) racer { return stagedPair{on, a} })...)
	r.contenders = append(r.contenders, contender{oursRedis, ours, stagedPair{on, "redis"}})
	return r
}

func redis512() row {
	const n = 512
	return row{
		name:    "redis-512",
		title:   "Redis, 512 goroutines of one process, a lock each",
		options: "every goroutine locks and unlocks its own name; 500 ms of pairs after 100 ms of warm-up; " + redisServer,
		reps:    7,
		scale:   scale{warm: 100 * time.Millisecond, window: 500 * time.Millisecond},
		metrics: []metric{pairs, packets, cpuEach, serverEach, scriptTime},
		contenders: append(rivals(func(a string) racer { return crowd{a, n} }),
			contender{rawPair, floor, crowd{"raw", n}},
			contender{oursRedis, ours, crowd{"redis", n}},
		),
		goals: []goal{
			{oursRedis, pairs, atLeast, 0.9, 1, rawPair},
		},
	}
}

func redisLocal() row {
	return inOneProcess(row{
		name:    "redis-local",
		title:   "Redis, ",
		options: "empty critical section; a contest lasts 500 ms after 100 ms of warm-up; " + redisServer,
		reps:    5,
		metrics: []metric{acquisitions, scriptsPer32, packets, jain, longestWait, cpuEach},
	}, func(r *row, suffix string, goroutines int) {
		for _, c := range rivals(func(a string) racer { return contest{a, 1, goroutines} }) {
			c.name += suffix
			r.contenders = append(r.contenders, c)
			r.goals = append(r.goals, goal{oursRedis + suffix, acquisitions, atLeast, 30, 50, c.name})
		}
		r.contenders = append(r.contenders, contender{oursRedis + suffix, ours, contest{"redis", 1, goroutines}})
		r.goals = append(r.goals,
			goal{oursRedis + suffix, acquisitions, atLeast, 0.35, 0.5, bareFIFO + suffix},
			goal{oursRedis + suffix, scriptsPer32, atMost, 2, 0, ""},
		)
	})
}

// redisContested is the common part of the rows in which 8 processes × 8
// goroutines want one lock.
func redisContested() row {
	return row{
		options: "n × m: processes × goroutines; empty critical section; a contest lasts 3 s after 300 ms of warm-up; " + redisServer,
		reps:    5,
		scale:   scale{warm: 300 * time.Millisecond, window: 3 * time.Second},
		metrics: []metric{handoffs, acquisitions, jain, longestWait, scriptsEach, packets, cpuEach, serverEach, scriptTime},
	}
}

func redisHandoffs() row {
	r := redisContested()
	r.name = "redis-handoffs"
	r.title = "Redis, 8 processes × 8 goroutines on one lock, strict: no goroutine passes the lock on within its process"
	r.contenders = append([]contender{
		{"one script + one push, 2 processes", floor, contest{"push", 2, 1}},
		{pushRing, floor, contest{"push", 8, 1}},
	}, rivals(func(a string) racer { return contest{a, 8, 8} })...)
	r.contenders = append(r.contenders,
		contender{oursRedisStrict, ours, contest{"redis strict", 8, 8}},
		contender{oursRedisIsolated, ours, contest{"redis isolated", 8, 8}},
	)
	r.goals = []goal{
		{oursRedisStrict, handoffs, atLeast, 0.75, 0.9, pushRing},
		{oursRedisStrict, longestWait, atMost, 1.0 / 20, 1.0 / 30, rueidislockRow},
		{oursRedisStrict, scriptsEach, atMost, 1.01, 0, ""}, // one, and those of the first claims and of renewals
		{oursRedisStrict, packets, atMost, 4, 2, ""},
	}
	return r
}

func redisPassing() row {
	r := redisContested()
	r.name = "redis-passing"
	r.title = "Redis, 8 processes × 8 goroutines on one lock"
	r.contenders = append(rivals(func(a string) racer { return contest{a, 8, 8} }),
		contender{oursRedis, ours, contest{"redis", 8, 8}})
	r.goals = []goal{
		{oursRedis, acquisitions, atLeast, 50, 80, rueidislockRow},
		{oursRedis, acquisitions, atLeast, 15, 0, redislockRow},
		{oursRedis, jain, atLeast, 0.99, 0, ""},
		{oursRedis, longestWait, atMost, 1.0 / 30, 1.0 / 60, rueidislockRow},
	}
	return r
}

func redisIdle() row {
	const ttl, patient = 2 * time.Second, 30 * time.Second
	return row{
		name:  "redis-idle",
		title: "Redis, 1,000 goroutines of one process wait while another process holds",
		options: "both processes together over 6 s; TTL " + ttl.String() + ", " + patient.String() +
			" for the others, two of which do not renew; renewals are no requests; one redis-server on loopback without persistence, new for each run",
		reps:    3,
		scale:   scale{warm: time.Second, rest: 6 * time.Second},
		metrics: []metric{requests, requestsPerTTL, renewals, serverCommands, cpuShare, serverShare},
		contenders: []contender{
			{redsyncRow, rival, atRest{"redsync", patient, 1, 1000}},
			{redislockRow, rival, atRest{"redislock", patient, 1, 1000}},
			{rueidislockRow, rival, atRest{"rueidislock", patient, 1, 1000}},
			{oursRedis, ours, atRest{"redis metered", ttl, 1, 1000}},
			{oursRedisNames, ours, atRest{"redis metered", ttl, 1000, 1000}},
		},
		goals: []goal{
			{oursRedis, requestsPerTTL, atMost, 1, 0, ""},
			{oursRedisNames, requestsPerTTL, atMost, 1, 0, ""},
		},
	}
}

func redisDead() row {
	const ttl = time.Second
	return row{
		name:  "redis-dead",
		title: "Redis, kill -9 of the holder: from the end of its lease until the next process holds",
		options: "TTL " + ttl.String() + " and up to 100 ms more; one kill a repetition, the waiter in line for " + settle.String() +
			"; the lease's end is the server's own (PEXPIRETIME); " + redisServer,
		reps:    15,
		metrics: []metric{latency},
		contenders: append(rivals(func(a string) racer { return lapse{a, ttl} }),
			contender{"raw SET NX PX, asked without a pause", floor, lapse{"raw", ttl}},
			contender{oursRedis, ours, lapse{"redis", ttl}},
		),
		goals: []goal{{oursRedis, latency, atMost, 2, 1, ""}},
	}
}

func redisLeases() row {
	const ttl = 10 * time.Second / 3 // renewed each second
	return row{
		name:    "redis-leases",
		title:   "Redis, 10,000 leases held by one process and renewed each second",
		options: "TTL " + ttl.String() + "; CPU of the process over 5 s of holding; " + redisServer,
		reps:    3,
		scale:   scale{warm: time.Second, rest: 5 * time.Second},
		metrics: []metric{cpuShare, serverShare, requests, serverCommands},
		contenders: []contender{
			{rawKeepersRow, rival, atRest{"raw keepers", ttl, 10_000, 0}},
			{redislockKeepersRow, rival, atRest{"redislock keepers", ttl, 10_000, 0}},
			{rueidislockRow, rival, atRest{"rueidislock", ttl, 10_000, 0}},
			{oursRedis, ours, atRest{"redis", ttl, 10_000, 0}},
		},
		goals: []goal{
			{oursRedis, cpuShare, atMost, 1.0 / 10, 1.0 / 20, rawKeepersRow},
			{oursRedis, cpuShare, atMost, 1.0 / 10, 1.0 / 20, redislockKeepersRow},
		},
	}
}

// shared is a row of what a step costs among so many who share.
func shared(name, title string, kind driver.Kind, metrics ...metric) row {
	r := row{
		name:  name,
		title: title,
		options: fmt.Sprintf("of one name; one client has nearly all, and does nothing meanwhile; a mean of %d steps of others, whose claims stand all along the line, by the server's own "+
			"count (INFO commandstats); %s", steps, redisServer),
		reps:    3,
		metrics: metrics,
	}
	const few = "10"
	for _, n := range []int{10, 100, 1000, 10_000} {
		label := strconv.Itoa(n)
		r.contenders = append(r.contenders, contender{label, ours, sharers{kind, n}})
		if label == few {
			continue
		}
		for _, m := range metrics {
			r.goals = append(r.goals, goal{label, m, atMost, 2, 1.2, few})
		}
	}
	return r
}

func redisPermits() row {
	return shared("redis-permits", "Redis, permits of a semaphore that are held, and what one of them costs the server", driver.Permit, renewalTime, pairTime, handoffTime)
}

func redisReaders() row {
	return shared("redis-readers", "Redis, readers that hold, and what one of them costs the server", driver.Read, renewalTime, pairTime)
}

func redisList() row {
	const few, many, bare = "1 of 1,000 names", "1 of 200,000 names", "SCAN of 200,000 names, nothing asked"
	return row{
		name:    "redis-list",
		title:   "Redis, a list of who holds: one name is held, the others were once and have their counters still",
		options: "one list; " + redisServer,
		reps:    3,
		metrics: []metric{latency, serverTime, scripts},
		contenders: []contender{
			{bare, floor, listing{200_000, true}},
			{few, ours, listing{1000, false}},
			{many, ours, listing{200_000, false}},
		},
		goals: []goal{{many, serverTime, atMost, 8, 4, bare}},
	}
}
