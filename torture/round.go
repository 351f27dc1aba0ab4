//go:build linux || darwin

package torture

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// plan is what the rounds of a trial have in common.
type plan struct {
	label     string
	job       job // for every worker
	processes int
	names     int
	spread    bool // worker i has names of its own: each is shared by a few workers only
	kills     int  // how many of the workers may be killed
	stops     bool
	probe     bool          // see afterwards whether every name can be had
	soon      time.Duration // within which a free name is granted; 0 = that is not looked at
	length    time.Duration // of a round, at least; 0 = any
	harm      harm
}

// noticed reports whether leases are lost, and it is looked at whether their holders are told in time.
func (p plan) noticed() bool {
	return p.job.Guard != unlocked && p.job.Guard != shared && (p.stops || p.job.Cuts || p.harm.wired || len(p.harm.server) > 0)
}

// dated reports whether a store can say when it granted a claim. Masters that know nothing of each other cannot: the time that their
// tokens tell is that of the order that brought the grant, which a wire may have held back since.
func dated(store string) bool { return !strings.HasPrefix(store, realRedlock+"://") }

// harm is what is done to the servers of a trial and to the way to them, and what that may cost.
type harm struct {
	wired  bool          // every worker has a cable, which is damaged
	delay  time.Duration // of its cable
	calm   bool          // the cables are slow, and nothing else is wrong with them
	resets bool          // nothing else is wrong with the cables than that connections are reset, with the replies that are under way
	apart  int           // the first masters, so many, that no worker reaches but the last
	server []string      // what is done to the servers
	pace   time.Duration // how fast one thing follows another at the servers; 0 = as the TTL has it
	once   bool          // one stale failover, of a replica that hears nothing from before the workers begin
	skew   time.Duration // how far ahead the clock of the first worker is
	excuse []string      // checks that may fail for it
	why    string
}

// round is what came of one.
type round struct {
	history *history
	kills   int
	stops   int
	cuts    int64
	done    map[string]int // harm
	probes  int
	slowest time.Duration // until a name could be had after the faults
	swept   int           // names where a claim of the dead had stayed on a master until somebody came by
	stuck   []violation
	kept    []violation
	counted int // times that the servers were counted
	untold  int // times that nothing can be said of that
	void    int // probes of which nothing can be said, because the conductor did not run
	errors  []error
}

// storm runs workers that write everything down for d, does to them what the plan says, and reads what they wrote.
func (c *conductor) storm(ctx context.Context, p plan, d time.Duration) (*round, error) {
	if p.probe {
		if err := c.take(ctx); err != nil {
			return nil, err
		}
	}
	dir, names, files, err := c.place(p.names)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c.Seed++ // so that rounds differ
	var links *cables
	if p.harm.wired {
		if links, err = lay(ctx, c.servers.wirable(), p.processes, p.harm.delay, c.TTL); err != nil {
			return nil, err
		}
		links.resets = p.harm.resets
		defer links.remove()
		if err := links.part(p.harm.apart); err != nil {
			return nil, err
		}
	}
	jobs := make([]job, p.processes)
	for i := range jobs {
		j := p.job
		j.Task, j.Store, j.TTL, j.Grace, j.Seed = "storm", c.Config.Store, c.TTL, c.Grace, c.Seed
		j.Looks = p.noticed() && dated(c.Config.Store)
		j.Wired, j.Harmed = links != nil, links != nil || len(p.harm.server) > 0
		if links != nil {
			j.Store = links.url(j.Store, i)
		}
		if p.harm.skew != 0 && i == 0 {
			j.Store += "?skew=" + p.harm.skew.String()
		}
		j.Names, j.Files = names, files
		if p.spread {
			// Neighbours share no names, every second worker does.
			from := i * j.Count % len(names)
			j.Names, j.Files = turned(names, from), turned(files, from)
		}
		jobs[i] = j
	}
	t, err := newTeam(dir, jobs)
	if err != nil {
		return nil, err
	}
	defer t.disband()
	if err := t.await(ctx); err != nil {
		return nil, err
	}
	h := c.havoc(p)
	if p.harm.once {
		if err := h.mute(); err != nil {
			return nil, err
		}
	}
	began := now()
	t.begin(began.add(d))
	done, err := c.rage(ctx, t, p, h, links, began, began.add(d))
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := &round{done: done}
	if p.kills > 0 { // the last thing that happens is a death, so that something is left behind
		if w := t.procs[p.processes-1]; w != nil && !w.ended() {
			t.kill(w)
		}
	}
	ended := now()
	if p.probe {
		c.probe(ctx, out, dir, names, ended)
	}
	t.finish(now().add(c.TTL*5 + 30*time.Second))
	if p.probe {
		c.leftovers(ctx, out, names)
	}
	if links != nil {
		links.remove()
	}
	if p.probe {
		if err := c.checkServers(ctx, out); err != nil {
			return nil, err
		}
	}
	hs := &history{names: names, lives: t.past, faults: t.faults, began: began, ended: began.add(d), whole: h.whole}
	if p.spread {
		unturn(hs, p.job.Count)
	}
	hs.blame(out.stuck)
	out.probes, out.stuck = out.probes+len(h.stuck), append(out.stuck, h.stuck...)
	for _, f := range files {
		n, err := readNumber(f)
		if err != nil {
			return nil, err
		}
		hs.finals = append(hs.finals, n)
	}
	out.history, out.kills, out.stops, out.cuts = hs, t.kills, t.stops, t.cuts
	out.errors = append(out.errors, t.errors...)
	return out, nil
}

// turned returns s beginning at its nth element.
func turned(s []string, n int) []string { return append(append([]string{}, s[n:]...), s[:n]...) }

// unturn gives the names of spread workers their common numbers.
func unturn(hs *history, count int) {
	for _, l := range hs.lives {
		for _, h := range l.handles {
			h.name = (h.name + l.slot*count) % len(hs.names)
		}
	}
}

// havoc is what harms the servers of a plan.
func (c *conductor) havoc(p plan) *havoc {
	return &havoc{
		servers: c.servers, faults: p.harm.server, rand: rand.New(rand.NewPCG(c.Seed, 1)), ttl: cmp.Or(p.harm.pace, c.TTL), once: p.harm.once, done: map[string]int{},
		use: c.use,
	}
}

// rage lets the nemesis and havoc loose, and shows progress. When it returns everything is whole again. It returns how
// often each harm was done.
func (c *conductor) rage(ctx context.Context, t *team, p plan, h *havoc, links *cables, began, end instant) (map[string]int, error) {
	wreaked := make(chan error, 1)
	go func() { wreaked <- h.wreak(ctx, end) }()
	err := c.torment(ctx, t, p, links, began, end)
	err = errors.Join(err, <-wreaked)
	t.faults = append(t.faults, h.history...)
	if links != nil {
		t.faults = append(t.faults, links.mend()...)
		h.done[FaultLink] = int(links.strikes.Load())
	}
	return h.done, err
}

// torment lets the nemesis loose on the workers and their cables.
func (c *conductor) torment(ctx context.Context, t *team, p plan, links *cables, began, end instant) error {
	n := &nemesis{team: t, rand: rand.New(rand.NewPCG(c.Seed, 0)), ttl: c.TTL, stops: p.stops}
	if !p.harm.calm {
		n.cables = links
	}
	for slot := range p.kills {
		n.kills = append(n.kills, p.processes-1-slot)
	}
	shown := began
	return n.rage(ctx, end, func() {
		if at := now(); at.sub(shown) >= 2*time.Second {
			shown = at
			var grants, losses int64
			for _, p := range t.procs {
				if p != nil {
					grants += p.diary.head.grants.Load()
					losses += p.diary.head.losses.Load()
				}
			}
			c.say("%s %2.0f s: %d leases, %d lost, %d kills, %d stops", p.label, at.sub(began).Seconds(), grants+t.grants, losses+t.losses, t.kills, t.stops)
		}
	})
}
