//go:build linux || darwin

package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/flawed"
)

// What masters do that come back with less than they knew, and how it shows that they vote again.

// LongRound is how long a round is at least with faults that are over when masters have waited: all
// masters are to start again in it.
const LongRound = 30 * time.Second

// everyMaster are the numbers of the masters.
var everyMaster = []int{0, 1, 2, 3, 4}

// forget kills one or two masters that do not keep everything, and starts them again at once:
// without a memory, or with one of up to a TTL before. While two have no vote it does nothing.
func (m *masters) forget(ctx context.Context, i *Injector) error {
	frail := []int{2, 3, 4}
	if slices.Contains(i.kinds, FaultClock) {
		// What dies while a clock is ahead stays there for an hour: no third master may lack its
		// vote then.
		frail = frail[1:]
	}
	without := m.without()
	if len(without) >= most {
		i.Count[FaultForget]--
		return nil
	}
	frail = slices.DeleteFunc(frail, func(k int) bool { return slices.Contains(without, k) })
	i.rand.Shuffle(len(frail), func(a, b int) { frail[a], frail[b] = frail[b], frail[a] })
	which := frail[:min(1+i.rand.IntN(2), most-len(without), len(frail))]
	old := i.rand.IntN(2) == 0 && !m.kept
	if old {
		for _, k := range which {
			if _, err := m.all[k].Do("SAVE"); err != nil {
				return err
			}
		}
		monotonic.Pause(i.some(0, 1), ctx.Done())
	}
	if err := m.kill(i, which); err != nil {
		return err
	}
	for _, k := range which {
		if !old {
			if err := wipe(m.all[k]); err != nil {
				return err
			}
		}
		if err := m.all[k].Restart(ctx); err != nil {
			return err
		}
		m.forgot[k] = monotonic.Now()
		what := map[bool]string{true: "with an old memory", false: "and has forgotten everything"}[old]
		i.note("the master at %s is there again, %s", m.all[k].Addr(), what)
	}
	return nil
}

// kill kills masters, one after the other.
func (m *masters) kill(i *Injector, which []int) error {
	for _, k := range which {
		i.note("the master at %s is killed", m.all[k].Addr())
		if err := m.all[k].Kill(); err != nil {
			return err
		}
	}
	return nil
}

// wipe takes from a server that has ended whatever it would find when it starts.
func wipe(s *servertest.Server) error {
	var errs []error
	for _, name := range []string{"dump.rdb", "appendonlydir", "appendonly.aof"} {
		errs = append(errs, os.RemoveAll(filepath.Join(s.Dir(), name)))
	}
	return errors.Join(errs...)
}

// killMajority kills a majority of the masters in one stroke, all that may lose something, and
// starts them again, at once or up to twice the TTL later, with their data or with nothing. From
// then on nobody gets in until all of them have waited, and then everything goes on by itself: it
// returns when all have their votes again.
func (m *masters) killMajority(ctx context.Context, i *Injector, blank bool) error {
	if err := m.awaitVotes(ctx, i, everyMaster...); err != nil { // those that were to forget before
		return err
	}
	which := everyMaster[Keepers:]
	if err := m.kill(i, which); err != nil {
		return err
	}
	if i.rand.IntN(2) == 0 {
		monotonic.Pause(i.some(0, 2), ctx.Done())
	}
	for _, k := range which {
		what := "with its data"
		if blank {
			what = "and has forgotten everything"
			if err := wipe(m.all[k]); err != nil {
				return err
			}
		}
		if err := m.all[k].Restart(ctx); err != nil {
			return err
		}
		i.note("the master at %s is there again, %s", m.all[k].Addr(), what)
	}
	if err := m.awaitVotes(ctx, i, everyMaster...); err != nil {
		return err
	}
	i.note("all masters vote again")
	return nil
}

// roll restarts a master, and waits until it votes: all of them in turn, as often as it is called.
// So a majority votes all the time, and locks are to be had.
func (m *masters) roll(ctx context.Context, i *Injector) error {
	k := m.rolled % fiveMasters
	m.rolled++
	if err := m.restart(ctx, i, k); err != nil {
		return err
	}
	if err := m.awaitVotes(ctx, i, k); err != nil {
		return err
	}
	i.note("the master at %s votes again", m.all[k].Addr())
	return nil
}

// awaitVotes waits until these masters vote, which the clients of the masters see to. When the
// workers have ended, that is a client that wants a name now and then.
func (m *masters) awaitVotes(ctx context.Context, i *Injector, which ...int) error {
	used := monotonic.Now()
	err := until(ctx, func() error {
		var without []string
		for _, k := range which {
			if m.votesNow(k) {
				m.forgot[k] = 0
			} else {
				without = append(without, m.all[k].Addr())
			}
		}
		if len(without) == 0 {
			return nil
		}
		if t := monotonic.Now(); i.Use != nil && t >= i.end && t.Sub(used) > 200*time.Millisecond {
			i.Use(ctx)
			used = monotonic.Now()
		}
		return fmt.Errorf("the master at %s", strings.Join(without, ", and that at "))
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errStuck, err)
	}
	return nil
}

// without returns the masters that have forgotten and are not known to vote again.
func (m *masters) without() (all []int) {
	for k, at := range m.forgot {
		if at == 0 {
			continue
		}
		if monotonic.Now().Sub(at) > m.maxTTL+m.maxTTL/2+time.Second && m.votes(k) {
			m.forgot[k] = 0
			continue
		}
		all = append(all, k)
	}
	return all
}

// votes reports whether a master has the key of its vote.
func (m *masters) votes(k int) bool {
	if m.vote == "" {
		return true
	}
	v, err := m.all[k].Do("GET", m.vote)
	if err != nil || v == "(nil)" {
		return false
	}
	if m.vote == flawed.VoteKey { // which an old memory has as well, of another start of the server
		info, err := m.all[k].Do("INFO", "server")
		return err == nil && strings.Contains(info, v)
	}
	return true
}

// votesNow reports whether a master votes, as it is since it last started: what it has from before
// may say that it votes.
func (m *masters) votesNow(k int) bool {
	if m.vote != redlockVote {
		return m.votes(k)
	}
	run, err := m.all[k].Do("HGET", redlockMember, "run")
	if err != nil || !m.votes(k) {
		return false
	}
	info, err := m.all[k].Do("INFO", "server")
	return err == nil && slices.Contains(strings.Fields(info), "run_id:"+run)
}
