//go:build linux || darwin

package torture

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/internal/history"
	"github.com/interlock-go/interlock/torture/internal/proxies"
	"github.com/interlock-go/interlock/torture/internal/servers"
	"github.com/interlock-go/interlock/torture/internal/worker"
)

// runRound runs workers that log everything for d, injects the faults of the plan, and reads the
// logs.
func runRound(ctx context.Context, c *conductor, p plan, d time.Duration) (*round, error) {
	if p.probe {
		if err := countServers(ctx, c); err != nil {
			return nil, err
		}
	}
	dir, names, files, err := c.place(p.names)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c.Seed++ // so that rounds differ
	links, err := linksOf(ctx, c, p)
	if err != nil {
		return nil, err
	}
	defer links.Close()
	t, err := worker.NewTeam(dir, jobsOf(c, p, links, names, files))
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if err := t.Await(ctx); err != nil {
		return nil, err
	}
	f := faultsOf(c, t, p, links)
	if p.harm.once {
		if err := c.servers.CutReplica(f.servers); err != nil {
			return nil, err
		}
	}
	f.began = monotonic.Now()
	f.end = f.began.Add(d)
	t.Begin(f.end)
	if err := f.inject(ctx); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.kills > 0 { // the last thing that happens is a death, so that something is left behind
		t.KillLast()
	}
	out := &round{done: f.servers.Count}
	if err := judgeEnd(ctx, c, p, t, links, out, dir, names); err != nil {
		return nil, err
	}
	return out, f.read(out, names, files)
}

// judgeEnd ends the workers, and looks at what is as it was when the faults are over, where the
// plan asks for that.
func judgeEnd(ctx context.Context, c *conductor, p plan, t *worker.Team, links *proxies.Proxies, out *round, dir string, names []string) error {
	ended := monotonic.Now()
	if p.probe {
		probe(ctx, c, out, dir, names, ended)
	}
	t.Finish(monotonic.Now().Add(c.TTL*5 + 30*time.Second))
	if !p.probe {
		return nil
	}
	findLeftovers(ctx, c, out, names)
	links.Close()
	return recountServers(ctx, c, out)
}

// linksOf starts the proxies of a plan; nil where workers have none.
func linksOf(ctx context.Context, c *conductor, p plan) (*proxies.Proxies, error) {
	if !p.harm.proxied {
		return nil, nil
	}
	links, err := proxies.New(ctx, c.servers.Proxied(), p.processes, p.harm.delay, c.TTL)
	if err != nil {
		return nil, err
	}
	links.Resets = p.harm.resets
	if err := links.Isolate(p.harm.apart); err != nil {
		links.Close()
		return nil, err
	}
	return links, nil
}

// jobsOf returns the job of each worker.
func jobsOf(c *conductor, p plan, links *proxies.Proxies, names, files []string) []worker.Job {
	jobs := make([]worker.Job, p.processes)
	for i := range jobs {
		j := p.job
		j.Task, j.Store, j.TTL, j.Grace, j.Seed = "storm", c.Config.Store, c.TTL, c.Grace, c.Seed
		j.AskSince = p.noticed() && dated(c.Config.Store)
		j.Proxied, j.Harmed = links != nil, links != nil || len(p.harm.server) > 0
		if links != nil {
			j.Store = links.URL(j.Store, i)
		}
		if p.harm.skew != 0 && i == 0 {
			j.Store += "?skew=" + p.harm.skew.String()
		}
		j.Names, j.Files = names, files
		if p.spread {
			// Neighbours share no names, every second worker does.
			from := i * j.Count % len(names)
			j.Names, j.Files = rotated(names, from), rotated(files, from)
		}
		jobs[i] = j
	}
	return jobs
}

// rotated returns s beginning at its nth element.
func rotated(s []string, n int) []string { return append(append([]string{}, s[n:]...), s[:n]...) }

// rotateBack gives the names of spread workers their common numbers.
func rotateBack(hs *history.History, count int) {
	for _, l := range hs.Lives {
		for _, h := range l.Calls {
			h.Name = (h.Name + l.Slot*count) % len(hs.Names)
		}
	}
}

// faults are those of a round, at servers and at workers and their links.
type faults struct {
	c          *conductor
	plan       plan
	team       *worker.Team
	servers    *servers.Injector
	links      *proxies.Proxies // nil where workers have none
	began, end monotonic.Instant
}

func faultsOf(c *conductor, t *worker.Team, p plan, links *proxies.Proxies) *faults {
	f := &faults{c: c, plan: p, team: t, servers: &servers.Injector{}, links: links}
	if c.servers != nil {
		f.servers = c.servers.Injector(p.harm.server, c.Seed, cmp.Or(p.harm.pace, c.TTL))
		f.servers.Use = func(ctx context.Context) { useOnce(ctx, c) }
	}
	return f
}

// inject injects the faults until the end. When it returns everything is whole again.
func (f *faults) inject(ctx context.Context) error {
	run := f.servers.Run
	if f.plan.harm.once {
		run = f.servers.RunOnce
	}
	harmed := make(chan error, 1)
	go func() { harmed <- run(ctx, f.end) }()
	err := f.atWorkers(ctx)
	err = errors.Join(err, <-harmed)
	f.team.Faults = append(f.team.Faults, f.servers.Faults...)
	if f.links != nil {
		f.team.Faults = append(f.team.Faults, f.links.Heal()...)
		f.servers.Count[FaultLink] = int(f.links.Count.Load())
	}
	return err
}

// atWorkers injects those at workers and their links, and shows progress.
func (f *faults) atWorkers(ctx context.Context) error {
	t, p := f.team, f.plan
	n := &worker.Injector{Team: t, Rand: rand.New(rand.NewPCG(f.c.Seed, 0)), TTL: f.c.TTL, Stops: p.stops}
	if f.links != nil && !p.harm.calm {
		n.Links = f.links
	}
	for slot := range p.kills {
		n.Kills = append(n.Kills, p.processes-1-slot)
	}
	shown := f.began
	return n.Run(ctx, f.end, func() {
		if at := monotonic.Now(); at.Sub(shown) >= 2*time.Second {
			shown = at
			grants, losses := t.Progress()
			f.c.say("%s %2.0f s: %d leases, %d lost, %d kills, %d stops", p.label, at.Sub(f.began).Seconds(), grants, losses, t.Kills, t.Stops)
		}
	})
}

// read reads what the workers logged, and adds what the faults have shown.
func (f *faults) read(out *round, names, files []string) error {
	t := f.team
	hs := &history.History{Names: names, Lives: t.Past, Faults: t.Faults, Began: f.began, Ended: f.end, Healed: f.servers.Healed}
	if f.plan.spread {
		rotateBack(hs, f.plan.job.Count)
	}
	hs.Blame(out.stuck)
	out.probes, out.stuck = out.probes+len(f.servers.Stuck), append(out.stuck, f.servers.Stuck...)
	for _, file := range files {
		n, err := worker.ReadNumber(file)
		if err != nil {
			return err
		}
		hs.Finals = append(hs.Finals, n)
	}
	out.history, out.kills, out.stops, out.cuts = hs, t.Kills, t.Stops, t.Cuts
	out.errors = append(out.errors, t.Errors...)
	return nil
}
