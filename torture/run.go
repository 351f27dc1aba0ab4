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
)

// conductor runs the scenarios of one configuration.
type conductor struct {
	Config
	out    io.Writer
	dir    string // of diaries and guarded files
	store  driver.Driver
	traits driver.Traits
	id     string // in the names of this run
	rounds int

	servers *servers // that were started for this; nil when the store was there
	was     *census  // of those, before the workers came; nil when nobody counts
	placed  int      // names since
}

// Run runs the scenarios of a configuration and judges them. What it finds is in the report, whose Err says whether
// everything held; an error of Run itself means that nothing could be judged. While it runs it writes a line to out
// every two seconds.
//
// It executes its own binary again, whose main must call [Main] first. When ctx ends the workers are ended.
func Run(ctx context.Context, cfg Config, out io.Writer) (*Report, error) {
	if os.Getenv(workerVariable) != "" {
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
		r.Trials, err = c.convict(ctx)
	} else {
		err = c.run(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	r.Took = Duration(time.Since(r.Started))
	return r, nil
}

// run runs the scenarios on one store.
func (c *conductor) run(ctx context.Context, r *Report) (err error) {
	r.Store = driver.Redact(c.Store)
	if c.Start != "" {
		if c.servers, err = raise(ctx, c.Start, c.Faults); err != nil {
			return err
		}
		defer c.servers.close()
		if c.servers.masters != nil {
			c.servers.masters.bear(c.TTL)
		}
		c.Store = c.servers.url()
		r.Store = c.Start + ", started for this"
	}
	closeStore, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer closeStore()
	r.Traits = c.traits.Has().String()
	for _, name := range c.Scenarios {
		trials, err := c.scenario(ctx, name)
		if err != nil {
			return fmt.Errorf("torture: %s: %w", name, err)
		}
		r.Trials = append(r.Trials, trials...)
	}
	return nil
}

// open opens the conductor's own way to the store.
func (c *conductor) open(ctx context.Context) (closeStore func(), err error) {
	if c.store, err = openStore(ctx, c.Store); err != nil {
		return nil, err
	}
	store := c.store
	c.traits = store.Traits()
	given := c.Grace
	c.Config = c.fit(c.traits)
	if given == 0 { // the store may keep a session for less than its TTL
		if session, err := store.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: c.TTL, Owner: driver.Owner{Name: "torture conductor"}}); err == nil {
			c.Grace = min(c.Grace, session.Valid()/3)
			_ = session.Close(ctx)
		}
	}
	return func() { _ = c.store.Close(context.WithoutCancel(ctx)) }, nil
}

// scratch is where diaries go: into memory where there is a file system for that, because writing to a disk would be a
// load that the locks are not to blame for.
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

func (c *conductor) scenario(ctx context.Context, name string) ([]Trial, error) {
	switch name {
	case Storm:
		return c.runStorm(ctx)
	case Handoffs:
		return c.runHandoffs(ctx)
	case Kills:
		return c.runKills(ctx)
	case Turns:
		return c.runTurns(ctx)
	case Notice:
		return c.runNotice(ctx)
	case Soak:
		return c.runSoak(ctx)
	}
	return nil, fmt.Errorf("no scenario %q", name)
}

// say writes a line of progress.
func (c *conductor) say(format string, args ...any) {
	if c.out != nil {
		fmt.Fprintf(c.out, format+"\n", args...)
	}
}

// place makes a directory for one round, and names that nobody has used.
func (c *conductor) place(names int) (dir string, locks, files []string, err error) {
	c.rounds++
	c.placed += names
	dir, err = os.MkdirTemp(c.dir, "round-")
	for i := range names {
		locks = append(locks, fmt.Sprintf("torture/%s/%d/%d", c.id, c.rounds, i))
		files = append(files, fmt.Sprintf("%s/number-%d", dir, i))
	}
	return dir, locks, files, err
}
