//go:build linux || darwin

package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/flawed"
)

// masters are five Redis servers that know nothing of each other. The first two keep everything
// over a restart. The others have nothing on disk but the snapshots that are taken of them, so they
// come back with an old memory or with none; or they write down every second what they know, where
// they are to come back with that.
type masters struct {
	usual
	all    []*servertest.Server
	rolled int           // how many have started again in their turn
	kept   bool          // the others write down every second what they know
	maxTTL time.Duration // of leases, on which the time without a vote depends
	vote   string        // the key of a master that has its vote; "" where there is none
	// forgot is, by node, when it was there again with less than it knew; 0 when it has its vote.
	forgot []monotonic.Instant
}

// Keepers is how many of the five masters keep everything: the first ones.
const Keepers = 2

const (
	fiveMasters = 5
	most        = fiveMasters / 2 // masters that may be without a vote at a time
)

// What a master knows of itself: whether it may vote for claims of package redlock, and of which
// start of the server that is said.
const (
	redlockVote   = "il:{redlock}:vote"
	redlockMember = "il:{redlock}:member"
)

// everySecond are the arguments of a Redis that writes down every second what it knows, as its
// documentation recommends: one that is killed has all its data when it starts again, and cannot
// know that.
var everySecond = []string{"--appendonly", "yes", "--appendfsync", "everysec"}

// usedBy says by which locks the masters are used: those of a scheme.
func (m *masters) usedBy(scheme string) {
	switch {
	case !strings.HasPrefix(scheme, flawed.Prefix):
		m.vote = redlockVote
	case scheme == flawed.Prefix+"rejoin":
		m.vote = ""
	default:
		m.vote = flawed.VoteKey
	}
}

// startMasters starts them, so that those faults can be injected.
func startMasters(ctx context.Context, faults []string) (kind, error) {
	m := &masters{vote: redlockVote, forgot: make([]monotonic.Instant, fiveMasters)}
	m.kept = slices.Contains(faults, FaultMajority) || slices.Contains(faults, FaultRolling)
	m.setMaxTTL(0)
	for i := range fiveMasters {
		o := servertest.Options{Clock: slices.Contains(faults, FaultClock)}
		switch {
		case i < Keepers:
			o.Args = durable
		case m.kept:
			o.Args = everySecond
		}
		s, err := servertest.Start(ctx, o)
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.all = append(m.all, s)
	}
	return m, nil
}

// setMaxTTL sets the longest TTL of leases on the masters, which is short: a master that forgets is
// to vote again within a run.
func (m *masters) setMaxTTL(ttl time.Duration) { m.maxTTL = max(time.Second, ttl) }

func (m *masters) url() string {
	return fmt.Sprintf("redlock://%s?max_ttl=%v", strings.Join(addrs(m.all), ","), m.maxTTL)
}

func (m *masters) nodes() []*servertest.Server { return m.all }
func (m *masters) proxied() []string           { return addrs(m.all) }
func (m *masters) recovers() bool              { return true }

// tells is false: the time that their tokens tell is that of the request that brought the grant,
// which a proxy may have held back since.
func (m *masters) tells() bool { return false }

func (m *masters) close() error {
	var errs []error
	for _, s := range m.all {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// entries leaves out the lines in which all that wait are dead: a request that a proxy held back
// until its process had ended puts one there, for an hour.
func (m *masters) entries(context.Context) (n int, err error) {
	for _, s := range m.all {
		all, err := keys(s)
		if err != nil {
			return 0, err
		}
		dead, err := number(s, "EVAL", deadLines, "0")
		if err != nil {
			return 0, err
		}
		n += all - dead
	}
	return n, nil
}

// deadLines counts the keys of lines in which nobody has been renewed in time. A line that does not
// go by itself is none of them.
const deadLines = `
local t, n = redis.call('TIME'), 0
local now = t[1] * 1000 + math.floor(t[2] / 1000)
for _, k in ipairs(redis.call('KEYS', 'il:{*}:qclaims:*')) do
  local dead = redis.call('PTTL', k) > 0
  for _, record in ipairs(redis.call('HVALS', k)) do
    local stop = string.match(record, '^w %d+ (%d+) ')
    dead = dead and stop and tonumber(stop) < now
  end
  if dead then
    n = n + 1 + redis.call('EXISTS', (string.gsub(k, ':qclaims:', ':qline:', 1)))
  end
end
return n`

// lasts is more than nothing for faults that are over only when the masters have waited for what
// they may have forgotten, which takes seconds.
func (m *masters) lasts(fault string) time.Duration {
	if fault == FaultMajority || fault == FaultBlank || fault == FaultRolling {
		return 5 * time.Second
	}
	return 0
}

// harm injects one fault. A majority keeps its memory, unless the fault is to take that: no more
// than two are without a vote at a time.
func (m *masters) harm(ctx context.Context, i *Injector, fault string) error {
	some := i.rand.Perm(fiveMasters)
	switch fault {
	case FaultPause:
		return m.pause(ctx, i, some[:1+i.rand.IntN(2)])
	case FaultOutage:
		return m.pause(ctx, i, some[:3])
	case FaultRestart:
		return m.restart(ctx, i, i.rand.IntN(Keepers))
	case FaultForget:
		return m.forget(ctx, i)
	case FaultClock:
		return shiftClocks(ctx, i, m.all[fiveMasters-2:])
	case FaultMajority, FaultBlank:
		return m.killMajority(ctx, i, fault == FaultBlank)
	case FaultRolling:
		return m.roll(ctx, i)
	}
	return fmt.Errorf("torture: no fault %q of masters", fault)
}

// pause stops masters for one to four times the TTL.
func (m *masters) pause(ctx context.Context, i *Injector, which []int) error {
	slices.Sort(which)
	for _, k := range which {
		i.note("the master at %s is stopped", m.all[k].Addr())
		if err := m.all[k].Pause(); err != nil {
			return err
		}
	}
	monotonic.Pause(i.some(1, 4), ctx.Done())
	var errs []error
	for _, k := range which {
		errs = append(errs, m.all[k].Resume())
		i.note("the master at %s is continued", m.all[k].Addr())
	}
	return errors.Join(errs...)
}

// restart kills a master that keeps everything, or stops it in an orderly way, and starts it again.
func (m *masters) restart(ctx context.Context, i *Injector, k int) error {
	return i.restartNamed(ctx, m.all[k], fmt.Sprintf("the master at %s ", m.all[k].Addr()))
}

// shiftClocks sets the clocks of masters an hour forth or back, each for itself, and back again one
// to four times the TTL later.
func shiftClocks(ctx context.Context, i *Injector, nodes []*servertest.Server) error {
	var steps []time.Duration
	for _, s := range nodes {
		d := []time.Duration{time.Hour, -time.Hour}[i.rand.IntN(2)]
		steps = append(steps, d)
		i.note("the clock of the master at %s goes %v", s.Addr(), d)
		if err := s.Step(d); err != nil {
			return err
		}
	}
	monotonic.Pause(i.some(1, 4), ctx.Done())
	for k, s := range nodes {
		i.note("the clock of the master at %s is right again", s.Addr())
		if err := s.Step(-steps[k]); err != nil {
			return err
		}
	}
	return nil
}
