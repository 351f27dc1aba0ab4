//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/torture/flawed"
)

// masters are five Redis servers that know nothing of each other. The first two keep everything over a restart. The others
// have nothing on disk but the snapshots that are taken of them, so they come back with an old memory or with none; or they write
// down every second what they know, where they are to come back with that.
type masters struct {
	nodes  []*servertest.Server
	rolled int           // how many have started again in their turn
	kept   bool          // the others write down every second what they know
	maxTTL time.Duration // of the leases on them, on which the time until a master votes again depends
	vote   string        // the key of a master that has its vote; "" where there is none
	forgot []instant     // by node, when it was there again with less than it knew; 0 when it has its vote
}

const (
	fiveMasters = 5
	keepers     = 2               // masters that keep everything
	most        = fiveMasters / 2 // masters that may be without a vote at a time
)

// redlockVote is the key that a master has which may give itself to claims of package redlock.
const redlockVote = "il:{redlock}:vote"

// countsBy says by which locks the masters are used: those of a scheme.
func (m *masters) countsBy(scheme string) {
	switch {
	case !strings.HasPrefix(scheme, flawed.Prefix):
		m.vote = redlockVote
	case scheme == flawed.Prefix+"rejoin":
		m.vote = ""
	default:
		m.vote = flawed.VoteKey
	}
}

// raiseMasters starts them, so that those faults can be done to them.
func raiseMasters(ctx context.Context, faults []string) (*masters, error) {
	m := &masters{vote: redlockVote, forgot: make([]instant, fiveMasters)}
	m.kept = slices.Contains(faults, FaultMajority) || slices.Contains(faults, FaultRolling)
	m.bear(0)
	for i := range fiveMasters {
		o := servertest.Options{Clock: slices.Contains(faults, FaultClock)}
		switch {
		case i < keepers:
			o.Args = durable
		case m.kept:
			o.Args = everySecond
		}
		s, err := servertest.Start(ctx, o)
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.nodes = append(m.nodes, s)
	}
	return m, nil
}

// bear sets the longest TTL of leases on the masters, which is short: whoever forgets is to be back within a run.
func (m *masters) bear(ttl time.Duration) { m.maxTTL = max(time.Second, ttl) }

func (m *masters) url() string {
	var hosts []string
	for _, s := range m.nodes {
		hosts = append(hosts, s.Addr())
	}
	return fmt.Sprintf("redlock://%s?max_ttl=%v", strings.Join(hosts, ","), m.maxTTL)
}

func (m *masters) close() error {
	var errs []error
	for _, s := range m.nodes {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// without are the masters that have forgotten and are not known to vote again.
func (m *masters) without() (all []int) {
	for i, at := range m.forgot {
		if at == 0 {
			continue
		}
		if now().sub(at) > m.maxTTL+m.maxTTL/2+time.Second && m.votes(i) {
			m.forgot[i] = 0
			continue
		}
		all = append(all, i)
	}
	return all
}

func (m *masters) votes(i int) bool {
	if m.vote == "" {
		return true
	}
	v, err := m.nodes[i].Do("GET", m.vote)
	if err != nil || v == "(nil)" {
		return false
	}
	if m.vote == flawed.VoteKey { // which an old memory has as well, of another start of the server
		info, err := m.nodes[i].Do("INFO", "server")
		return err == nil && strings.Contains(info, v)
	}
	return true
}

// harmMasters does one thing to masters. A majority keeps its memory: no more than two are without a vote at a time.
func (h *havoc) harmMasters(ctx context.Context, kind string) error {
	m := h.servers.masters
	all := h.rand.Perm(fiveMasters)
	switch kind {
	case FaultPause:
		return h.still(ctx, all[:1+h.rand.IntN(2)])
	case FaultOutage:
		return h.still(ctx, all[:3])
	case FaultRestart:
		return h.renew(ctx, h.rand.IntN(keepers))
	case FaultForget:
		return h.forget(ctx)
	case FaultClock:
		return h.shift(ctx, m.nodes[fiveMasters-2:])
	case FaultMajority, FaultBlank:
		return h.fell(ctx, kind == FaultBlank)
	case FaultRolling:
		return h.roll(ctx)
	}
	return fmt.Errorf("torture: no fault %q of masters", kind)
}

// still stops masters for one to four times the TTL.
func (h *havoc) still(ctx context.Context, which []int) error {
	nodes := h.servers.masters.nodes
	slices.Sort(which)
	for _, i := range which {
		h.note("the master at %s is stopped", nodes[i].Addr())
		if err := nodes[i].Pause(); err != nil {
			return err
		}
	}
	pause(h.some(1, 4), ctx.Done())
	var errs []error
	for _, i := range which {
		errs = append(errs, nodes[i].Resume())
		h.note("the master at %s is continued", nodes[i].Addr())
	}
	return errors.Join(errs...)
}

// renew lets a master die, or end in an orderly way, that keeps everything, and starts it again up to twice the TTL later.
func (h *havoc) renew(ctx context.Context, i int) error {
	s := h.servers.masters.nodes[i]
	end, how := s.Kill, "is killed"
	if h.rand.IntN(2) == 0 {
		end, how = s.Stop, "ends"
	}
	h.note("the master at %s %s", s.Addr(), how)
	if err := end(); err != nil {
		return err
	}
	pause(h.some(0, 2), ctx.Done())
	defer h.note("the master at %s is there again, with all its data", s.Addr())
	return s.Restart(ctx)
}

// forget kills one or two masters that do not keep everything, and starts them again at once: without a memory, or with one
// of up to a TTL before. While two have no vote it does nothing.
func (h *havoc) forget(ctx context.Context) error {
	m := h.servers.masters
	frail := []int{2, 3, 4}
	if slices.Contains(h.faults, FaultClock) {
		// What dies while a clock is ahead stays there for an hour: no third master may lack its vote then.
		frail = frail[1:]
	}
	without := m.without()
	if len(without) >= most {
		h.done[FaultForget]--
		return nil
	}
	frail = slices.DeleteFunc(frail, func(i int) bool { return slices.Contains(without, i) })
	h.rand.Shuffle(len(frail), func(i, j int) { frail[i], frail[j] = frail[j], frail[i] })
	which := frail[:min(1+h.rand.IntN(2), most-len(without), len(frail))]
	old := h.rand.IntN(2) == 0 && !m.kept
	if old {
		for _, i := range which {
			if _, err := m.nodes[i].Do("SAVE"); err != nil {
				return err
			}
		}
		pause(h.some(0, 1), ctx.Done())
	}
	for _, i := range which {
		h.note("the master at %s is killed", m.nodes[i].Addr())
		if err := m.nodes[i].Kill(); err != nil {
			return err
		}
	}
	for _, i := range which {
		if !old {
			if err := wipe(m.nodes[i]); err != nil {
				return err
			}
		}
		if err := m.nodes[i].Restart(ctx); err != nil {
			return err
		}
		m.forgot[i] = now()
		h.note("the master at %s is there again, %s", m.nodes[i].Addr(), map[bool]string{true: "with an old memory", false: "and has forgotten everything"}[old])
	}
	return nil
}

// shift sets the clocks of masters an hour forth or back, each for itself, and back again one to four times the TTL later.
func (h *havoc) shift(ctx context.Context, nodes []*servertest.Server) error {
	var steps []time.Duration
	for _, s := range nodes {
		d := []time.Duration{time.Hour, -time.Hour}[h.rand.IntN(2)]
		steps = append(steps, d)
		h.note("the clock of the master at %s goes %v", s.Addr(), d)
		if err := s.Step(d); err != nil {
			return err
		}
	}
	pause(h.some(1, 4), ctx.Done())
	for i, s := range nodes {
		h.note("the clock of the master at %s is right again", s.Addr())
		if err := s.Step(-steps[i]); err != nil {
			return err
		}
	}
	return nil
}
