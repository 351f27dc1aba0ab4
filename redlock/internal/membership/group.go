package membership

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/gather"
)

// Config says which masters there are, and what to tell whom.
type Config struct {
	Conns   []redisconn.Conn
	Names   []string      // of the masters, for people
	MaxTTL  time.Duration // of this program
	Timeout time.Duration // of one master
	Needs   []string      // commands that a user of the masters may use, or a probe fails
	Looks   bool          // nothing is written on the masters
	Logger  *slog.Logger  // told when a master loses its vote, and when it has it again

	Ctx        context.Context //nolint:containedctx // ends what goes on in the background
	Background *sync.WaitGroup // counts that
	Unanswered func(i int)     // a master has not answered
	Forgot     func(i int)     // a master has lost what it had given to claims
}

// Group is the masters of a program. It is safe for concurrent use.
type Group struct {
	Config
	masters []*Master
	wanted  chan struct{} // a probe
	told    atomic.Int64  // when the masters were last told that the set is in use, in ns since epoch
	set     atomic.Pointer[Set]
	unmade  atomic.Pointer[Unmade]

	mu       sync.Mutex    // held during a probe
	patience time.Duration // for the last masters; guarded by mu
	begun    time.Time     // the last probe; guarded by mu
}

// epoch is when this process began, for times of its own.
var epoch = time.Now()

// New returns a group that has not probed any master yet.
func New(c Config) *Group {
	g := &Group{Config: c, wanted: make(chan struct{}, 1)}
	for i, conn := range c.Conns {
		g.masters = append(g.masters, &Master{
			Name: c.Names[i], conn: conn,
			recheck: g.Recheck, unanswered: func() { c.Unanswered(i) }, forgot: func() { c.Forgot(i) },
		})
	}
	return g
}

// Master returns a master by its index.
func (g *Group) Master(i int) *Master { return g.masters[i] }

// Unmade returns the set that a program that looks would have made, by its last probe, or nil.
func (g *Group) Unmade() *Unmade { return g.unmade.Load() }

// Voters counts the masters that had a vote when last heard of.
func (g *Group) Voters() (n int) {
	for _, m := range g.masters {
		if m.Votes() {
			n++
		}
	}
	return n
}

// Used reports whether the masters are to be told that their set is in use. While no majority votes
// nobody can hold anything in it: it is not used, however many ask whether it is back, so that a
// new one may begin where it never will be.
func (g *Group) Used() bool {
	if g.Voters() < Majority(len(g.masters)) {
		return false
	}
	now, told := time.Since(epoch), g.told.Load()
	if now-time.Duration(told) < g.MaxTTL/2 || !g.told.CompareAndSwap(told, int64(now)) {
		return false
	}
	g.Recheck() // somebody may have turned off a log, which the others must hear of before the master restarts
	return true
}

// Recheck requests a probe soon.
func (g *Group) Recheck() {
	select {
	case g.wanted <- struct{}{}:
	default:
	}
}

// Between probes that were not requested, while a master has no vote.
const (
	soonest = 50 * time.Millisecond
	latest  = time.Second
)

// Watch probes the masters when that is requested, and when one of them has no vote, until all
// have. It returns when Ctx ends.
func (g *Group) Watch() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for pause := soonest; ; {
		select {
		case <-g.wanted:
			pause = soonest
		case <-timer.C:
		case <-g.Ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(g.Ctx, g.bound())
		if r := g.Probe(ctx); r.Missing {
			timer.Reset(pause)
			pause = min(2*pause, latest)
		}
		cancel()
		if !gather.Sleep(g.Ctx, soonest) { // however many ask for it
			return
		}
	}
}

// bound is the longest that a probe takes.
func (g *Group) bound() time.Duration { return 4 * max(g.Timeout, redisconn.DefaultTimeout) }

// ProbeSince probes the masters, unless a probe has begun since a time, and waits for it, but not
// longer than patience.
func (g *Group) ProbeSince(since time.Time, patience time.Duration) {
	done := make(chan struct{})
	g.Background.Go(func() {
		defer close(done)
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.begun.Before(since) {
			ctx, cancel := context.WithTimeout(g.Ctx, g.bound())
			defer cancel()
			if g.probe(ctx, nil).Missing {
				g.Recheck()
			}
		}
	})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// Probe asks all masters who they are, writes what Decide says, and returns what came of it.
func (g *Group) Probe(ctx context.Context) Result {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.probe(ctx, nil)
}

// Masters is a probe for people. It waits longer for masters that are slow.
func (g *Group) Masters(ctx context.Context) ([]driver.Master, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.list(ctx, nil)
}

// GiveUp is Masters, and gives up masters, by index: see driver.Quorum.
func (g *Group) GiveUp(ctx context.Context, masters []int) ([]driver.Master, error) {
	if g.Looks {
		return nil, refuse("the masters were opened for a look, by driver.LookURL: want driver.OpenURL to give one up")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.list(ctx, masters)
}

// list is Masters and GiveUp. mu is held.
func (g *Group) list(ctx context.Context, giveUp []int) ([]driver.Master, error) {
	g.patience = endurance
	r := g.probe(ctx, giveUp)
	all := make([]driver.Master, len(g.masters))
	for i, m := range g.masters {
		s := m.status.Load()
		if all[i] = (driver.Master{Name: m.Name, Err: s.err}); s.silent != nil {
			all[i].Err = fmt.Errorf("redlock: %s: %w", m.Name, s.silent)
		}
	}
	return all, cmp.Or(r.Err, r.refusal)
}
