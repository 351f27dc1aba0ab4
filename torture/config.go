package torture

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/torture/flawed"
	"github.com/interlock-go/interlock/torture/internal/servers"
)

// Config says what to run. The zero value of each field but Store means its default.
type Config struct {
	// Store is the URL of the store. Its package must be imported. The names that are locked begin
	// with "torture/".
	Store string

	// Start has the run start servers of its own in place of a Store: "redis" for one that writes
	// down everything before it answers, "redisson" for the same with Redisson's locks, "sentinel"
	// for a master with its replica and three Sentinels, "cluster" for three masters with a replica
	// each, "redlock" for five masters that know nothing of each other, "postgres" for a PostgreSQL
	// whose clock is hours behind, "postgres-sync" and "postgres-async" for one with a standby,
	// "mariadb" for a MariaDB, "zookeeper" and "zookeeper-ensemble" for one ZooKeeper and for
	// three, "shedlock-postgres" and "shedlock-mariadb" for ShedLock's table there. They can be
	// harmed; Faults are what is done to them in a storm besides what is done to workers: see
	// [FaultLink] and the others. Default: link, pause and restart for one, link, failover and
	// stale for those with replicas, link, pause, restart, forget and outage for the five. What a
	// fault may cost is not held against the locks, and the report says so.
	Start  string
	Faults []string

	// Flawed are the names of locks with a flaw, see package flawed, that are to be run in place of
	// a store, "all" for all of them: each must be convicted, and a correct lock must not be under
	// the same faults. The scenarios are not run.
	Flawed []string

	// For is how long each scenario goes on. Default: 20 s. Twins end as soon as they have failed,
	// and are given half of it or 10 s.
	For time.Duration

	// Scenarios are the names of what to run, in this order: see [Scenarios]. Default: storm.
	Scenarios []string

	// Processes and Goroutines are how many workers there are, and how many goroutines in each.
	// Default: 8 and 8. The scenarios turns and notice have numbers of their own.
	Processes, Goroutines int

	// Names is how many names the workers of a storm share. Default: 8.
	Names int

	// TTL and Grace are those of the locks where there are faults. Default: 300 ms, or what the
	// store wants at least, and a third of the time for which it keeps a session then: a machine
	// that runs so many processes lets some of them wait for long, and 30 ms of grace, the
	// library's default for such a TTL, would be about the machine. Without faults both are the
	// library's.
	TTL, Grace time.Duration

	// Seed decides on the faults. Default: taken from the clock, and reported.
	Seed uint64

	// Handoffs is how many times the lock must go from one process to another in the scenario
	// handoffs. Default: 0, which only counts.
	Handoffs int

	// Cuts is how often links are cut in the scenario soak. Default: 300.
	Cuts int

	tries bool // of handoffs: workers try again and again: there is no line
	// want is what a scenario with faults must show besides a case for each check; nil: nothing.
	want    func(Trial) bool
	tx      string // of handoffs: the lock is one of a transaction
	patient bool   // of handoffs: the contest goes on until there are so many
	// untimed: a storm reports failures of V4 without a verdict, and runs no negative control of it.
	untimed bool
	tenth   bool // the grace is the default of locks, a tenth of the TTL

	// Fairness is what Jain's index must reach where fairness is judged: 1 when everybody got as
	// often. Default: 0.99.
	Fairness float64
}

// The names of the scenarios.
const (
	Storm    = "storm"
	Handoffs = "handoffs"
	Kills    = "kills"
	Turns    = "turns"
	Notice   = "notice"
	Soak     = "soak"
)

// Flawed is the name of what runs for Config.Flawed in place of scenarios.
const Flawed = "flawed"

// Scenarios are all there are, with what each does.
func Scenarios() []Scenario {
	return []Scenario{
		{Storm, "workers are killed, stopped and cut off while they add to numbers through the fence: V1, V2, V3, V4, V6"},
		{Handoffs, "all goroutines add to one number in a plain file as fast as they can: nothing lost, nobody starved"},
		{Kills, "the same through the fence, while three workers are killed and started again at random"},
		{Turns, "a process with one goroutine and one with a hundred take turns"},
		{Soak, "links are cut again and again, and every holder is told before the next gets in, until there were Cuts of them"},
		{Notice, "every holder is stopped or cut off at a random moment, and told before the next gets in"},
	}
}

// Scenario is one of the things that can be run.
type Scenario struct{ Name, Title string }

// withDefaults fills in what can be, or says what would be right.
func (c Config) withDefaults() (Config, error) {
	for _, d := range []time.Duration{c.For, c.TTL, c.Grace} {
		if d < 0 {
			return c, fmt.Errorf("torture: %v is no time to run or to hold: want a positive duration", d)
		}
	}
	c.For = cmp.Or(c.For, 20*time.Second)
	c.Processes = cmp.Or(c.Processes, 8)
	c.Goroutines = cmp.Or(c.Goroutines, 8)
	c.Names = cmp.Or(c.Names, 8)
	c.Cuts = cmp.Or(c.Cuts, 300)
	c.Seed = cmp.Or(c.Seed, uint64(time.Now().UnixNano())&(1<<31-1))
	c.Fairness = cmp.Or(c.Fairness, 0.99)
	if len(c.Scenarios) == 0 {
		c.Scenarios = []string{Storm}
	}
	if c.Store != "" && (c.Start != "" || len(c.Flawed) > 0) {
		return c, errors.New("torture: a store that is there cannot be started, nor replaced by a flawed one: want one of Store, Start and Flawed")
	}
	if c.Start == "" && len(c.Faults) > 0 {
		return c, errors.New("torture: Faults are done to servers that the run starts itself: want Start")
	}
	for _, f := range c.Flawed {
		if f != "all" && !slices.ContainsFunc(flawed.Flaws(), func(k flawed.Flaw) bool { return k.Name == f }) {
			return c, fmt.Errorf("torture: no flaw %q: want all, or some of those that package flawed has", f)
		}
	}
	if c.Start != "" {
		var err error
		if c.Faults, err = servers.Resolve(c.Start, c.Faults); err != nil {
			return c, err
		}
	}
	if c.Processes < 2 || c.Goroutines < 1 || c.Names < 1 || c.Processes*c.Goroutines > 1000 {
		return c, fmt.Errorf("torture: %d processes of %d goroutines over %d names: want 2 processes or more, 1,000 goroutines at most, and a name", c.Processes, c.Goroutines, c.Names)
	}
	var known []string
	for _, s := range Scenarios() {
		known = append(known, s.Name)
	}
	for _, s := range c.Scenarios {
		if !slices.Contains(known, s) {
			return c, fmt.Errorf("torture: unknown scenario %q: want one of %s", s, strings.Join(known, ", "))
		}
	}
	return c, nil
}

// fit adds what depends on the store.
func (c Config) fit(t driver.Traits) Config {
	if c.TTL == 0 {
		c.TTL = max(300*time.Millisecond, t.MinTTL)
	}
	if c.Grace == 0 && c.tenth {
		c.Grace = c.TTL / 10
	}
	if c.Grace == 0 {
		c.Grace = c.TTL / 3
	}
	return c
}
