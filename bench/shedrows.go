package main

import "fmt"

// Names of contenders over ShedLock's table that goals refer to.
const (
	bareShedRow = "ShedLock's own UPDATE and UPDATE"
	oursShedRow = "Interlock shedlock"
)

// shedRows are the rows over ShedLock's table.
func shedRows() []row {
	pg, my := shedFree("shed-pg-free", "PostgreSQL", " pg", pgServer), shedFree("shed-my-free", "MariaDB", " my", myServer)
	pg.stage.adapters = append(pg.stage.adapters, "bare shed pg, unprepared")
	pg.contenders = append(pg.contenders, contender{bareShedRow + ", not prepared", remark, stagedPair{pg.stage, "bare shed pg, unprepared"}})
	return []row{pg, my}
}

func shedFree(name, database, suffix, server string) row {
	on := &stage{adapters: []string{"bare shed" + suffix, "shed" + suffix}}
	return row{
		name:    name,
		title:   "ShedLock's table on " + database + ", free lock and unlock",
		options: fmt.Sprintf("one goroutine, nobody else; rounds of %d pairs in turn, all in one process and on one server, by database/sql; %s", roundPairs, server),
		reps:    20,
		stage:   on,
		metrics: []metric{pairMedian, pairSlow, cpuEach},
		contenders: []contender{
			{bareShedRow, floor, stagedPair{on, "bare shed" + suffix}},
			{oursShedRow, ours, stagedPair{on, "shed" + suffix}},
		},
		goals: []goal{{oursShedRow, pairMedian, atMost, 1.5, 0, bareShedRow}},
	}
}
