//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/torture/internal/servers"
	"github.com/interlock-go/interlock/torture/internal/worker"
)

// Main must be the first thing in the main function of every program that calls [Run], and in
// TestMain of a test that does. In a process that Run started as a worker it does the work and
// never returns; in every other process it returns at once.
func Main() { worker.Main() }

// Run runs the scenarios of a configuration and judges them. What it finds is in the report, whose
// Err says whether everything held; an error of Run itself means that nothing could be judged.
// While it runs it writes a line to out every two seconds.
//
// It executes its own binary again, whose main must call [Main] first. When ctx ends the workers
// are ended.
func Run(ctx context.Context, cfg Config, out io.Writer) (*Report, error) {
	if worker.IsWorker() {
		return nil, errors.New("torture: this process is to be a worker: want torture.Main as the first thing in main")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	// Workers die with the thread that started them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	dir, err := os.MkdirTemp(scratch(), "interlock-torture-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c := &conductor{Config: cfg, out: out, dir: dir, id: driver.PublicID(driver.NewID())[:8]}
	r := &Report{Seed: cfg.Seed, Started: time.Now()}
	if len(cfg.Flawed) > 0 {
		r.Store = "locks with a flaw"
		r.Trials, err = convictFlawed(ctx, c)
	} else {
		err = runScenarios(ctx, c, r)
	}
	if err != nil {
		return nil, err
	}
	r.Took = Duration(time.Since(r.Started))
	return r, nil
}

// scenarios are what runs each of them.
var scenarios = map[string]func(context.Context, *conductor) ([]Trial, error){
	Storm:    runStorm,
	Handoffs: runHandoffs,
	Kills:    runKills,
	Turns:    runTurns,
	Notice:   runNotice,
	Soak:     runSoak,
}

// runScenarios runs the scenarios on one store, and adds what they show to the report.
func runScenarios(ctx context.Context, c *conductor, r *Report) (err error) {
	r.Store = driver.Redact(c.Store)
	if c.Start != "" {
		if c.servers, err = servers.Start(ctx, c.Start, c.Faults); err != nil {
			return err
		}
		defer c.servers.Close()
		c.servers.SetMaxTTL(c.TTL)
		c.Store = c.servers.URL()
		r.Store = c.Start + ", started for this"
	}
	closeStore, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer closeStore()
	r.Traits = c.traits.Has().String()
	for _, name := range c.Scenarios {
		trials, err := scenarios[name](ctx, c)
		if err != nil {
			return fmt.Errorf("torture: %s: %w", name, err)
		}
		r.Trials = append(r.Trials, trials...)
	}
	return nil
}

// scratch is where logs go: into memory where there is a file system for that, because writing to a
// disk would be a load that the locks are not to blame for.
func scratch() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		if f, err := os.CreateTemp("/dev/shm", "interlock-torture-"); err == nil {
			f.Close()
			os.Remove(f.Name())
			return "/dev/shm"
		}
	}
	return ""
}
