package main

import (
	"context"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/cli"
	"github.com/interlock-go/interlock/torture"
)

// scenarios names what torture can run, for its help.
func scenarios() string {
	var names []string
	for _, s := range torture.Scenarios() {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

type tortureCommand struct {
	For        time.Duration `help:"How long each scenario goes on." default:"20s" placeholder:"20s"`
	Scenario   []string      `help:"What to run, of ${scenarios}. May be repeated." default:"storm" placeholder:"NAME"`
	Processes  int           `help:"Worker processes." placeholder:"8"`
	Goroutines int           `help:"Goroutines in each of them." placeholder:"8"`
	Names      int           `help:"Names that the workers of a storm share." placeholder:"8"`
	TTL        time.Duration `help:"TTL of the locks where there are faults." placeholder:"300ms" name:"ttl"`
	Grace      time.Duration `help:"Their grace. The default of locks is a tenth of their TTL; this is about the locks, not the machine: a third." placeholder:"100ms"`
	Seed       uint64        `help:"Decides on the faults; reported, so that a run can be had again." placeholder:"N"`
	Start      string        `help:"Start servers for this in place of a store: redis, redisson, sentinel, cluster, redlock, postgres, postgres-sync, postgres-async, postgres-pooler, mariadb, memcached, etcd, zookeeper, zookeeper-ensemble, shedlock-postgres or shedlock-mariadb; ?technique=session may follow." placeholder:"KIND"`
	Faults     []string      `help:"What is done to those servers in a storm: link, pause, restart, failover, stale, evict, forget, outage, clock, majority, blank, terminate, exhaust, rolling. Default: what they must bear." placeholder:"FAULT"`
	Flawed     []string      `help:"Run locks with a known flaw in place of a store, which must be convicted: all, or some of forever, two-steps, plain-delete, one-value, client-clocks, reply-time, promoted, revive, watchdog, unclosed, litter, pooled, face-value, lapsed, unprotected; or over five masters: quorum, token-max, rejoin, minority, counting." placeholder:"NAME"`
	Cuts       int           `help:"How often links are cut in the scenario soak." placeholder:"300"`
	Handoffs   int           `help:"How often the lock must go from one process to another in the scenario handoffs." placeholder:"N"`
}

// Run kills, stops and cuts off worker processes of its own over the store, and judges what they saw. Its status is 0
// when every check held and every control failed as it must, 70 otherwise.
func (c *tortureCommand) Run(ctx context.Context, t terminal, line *commandLine) error {
	storeURL, err := c.store(t, line)
	if err != nil {
		return err
	}
	report, err := torture.Run(ctx, torture.Config{
		Store: storeURL, Start: c.Start, Faults: c.Faults, Flawed: c.Flawed,
		For: c.For, Scenarios: c.Scenario, Processes: c.Processes, Goroutines: c.Goroutines, Names: c.Names,
		TTL: c.TTL, Grace: c.Grace, Seed: c.Seed, Handoffs: c.Handoffs, Cuts: c.Cuts,
	}, t.err)
	if err != nil {
		return cli.WithStatus(cli.ExitStore, err)
	}
	if line.JSON {
		err = printJSON(t.out, report)
	} else {
		err = report.Print(t.out)
	}
	if err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return cli.WithStatus(cli.ExitInternal, err)
	}
	return nil
}

// store is the URL of the store, or "" where servers of its own are to be started.
func (c *tortureCommand) store(t terminal, line *commandLine) (string, error) {
	if c.Start != "" || len(c.Flawed) > 0 {
		if cli.StoreGiven(line.args) {
			return "", usage("--start and --flawed bring a store of their own: leave out --store")
		}
		return "", nil
	}
	return line.url(t)
}
