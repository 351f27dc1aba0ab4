//go:build linux || darwin

package torture

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
)

// everySecond has a Redis write down every second what it knows, as its documentation recommends: one that is killed has all its
// data when it starts again, and cannot know that.
var everySecond = []string{"--appendonly", "yes", "--appendfsync", "everysec"}

// redlockMember is what a master knows of itself: whether it may vote, and of which start of the server that is said.
const redlockMember = "il:{redlock}:member"

// wipe takes from a server that has ended whatever it would find when it starts.
func wipe(s *servertest.Server) error {
	var errs []error
	for _, name := range []string{"dump.rdb", "appendonlydir", "appendonly.aof"} {
		errs = append(errs, os.RemoveAll(filepath.Join(s.Dir(), name)))
	}
	return errors.Join(errs...)
}

// fell kills a majority of the masters in one stroke, all that may lose something, and starts them again, at once or up to
// twice the TTL later, with their data or with nothing. From then on nobody gets in until all of them have waited, and then everything goes on by
// itself: it returns when all have their votes again.
func (h *havoc) fell(ctx context.Context, blank bool) error {
	m := h.servers.masters
	if err := h.awaitVotes(ctx, everyMaster...); err != nil { // those that were to forget before
		return err
	}
	which := everyMaster[keepers:]
	for _, i := range which {
		h.note("the master at %s is killed", m.nodes[i].Addr())
		if err := m.nodes[i].Kill(); err != nil {
			return err
		}
	}
	if h.rand.IntN(2) == 0 {
		pause(h.some(0, 2), ctx.Done())
	}
	for _, i := range which {
		what := "with its data"
		if blank {
			what = "and has forgotten everything"
			if err := wipe(m.nodes[i]); err != nil {
				return err
			}
		}
		if err := m.nodes[i].Restart(ctx); err != nil {
			return err
		}
		h.note("the master at %s is there again, %s", m.nodes[i].Addr(), what)
	}
	if err := h.awaitVotes(ctx, everyMaster...); err != nil {
		return err
	}
	h.note("all masters vote again")
	return nil
}

// roll starts a master again, and waits until it votes: all of them in turn, as often as it is called. So a majority votes all the
// time, and locks are to be had.
func (h *havoc) roll(ctx context.Context) error {
	m := h.servers.masters
	i := m.rolled % fiveMasters
	m.rolled++
	if err := h.renew(ctx, i); err != nil {
		return err
	}
	if err := h.awaitVotes(ctx, i); err != nil {
		return err
	}
	h.note("the master at %s votes again", m.nodes[i].Addr())
	return nil
}

// everyMaster are the numbers of the masters.
var everyMaster = []int{0, 1, 2, 3, 4}

// awaitVotes waits until these masters vote, which those see to who use the masters. When the workers have ended, that is somebody
// who wants a name now and then.
func (h *havoc) awaitVotes(ctx context.Context, which ...int) error {
	m, used := h.servers.masters, now()
	err := until(ctx, func() error {
		var without []string
		for _, i := range which {
			if m.votesNow(i) {
				m.forgot[i] = 0
			} else {
				without = append(without, m.nodes[i].Addr())
			}
		}
		if len(without) == 0 {
			return nil
		}
		if t := now(); h.use != nil && t >= h.end && t.sub(used) > 200*time.Millisecond {
			h.use(ctx)
			used = now()
		}
		return fmt.Errorf("the master at %s", strings.Join(without, ", and that at "))
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errVoteless, err)
	}
	return nil
}

// errVoteless: nobody saw to it that masters vote again.
var errVoteless = errors.New("torture: a master was there again, and has got no vote since")

// votesNow reports whether a master votes, as it is since it last started: what it has from before may say that it votes.
func (m *masters) votesNow(i int) bool {
	if m.vote != redlockVote {
		return m.votes(i)
	}
	run, err := m.nodes[i].Do("HGET", redlockMember, "run")
	if err != nil || !m.votes(i) {
		return false
	}
	info, err := m.nodes[i].Do("INFO", "server")
	return err == nil && slices.Contains(strings.Fields(info), "run_id:"+run)
}

// waits reports whether a fault of masters is over only when they have waited for what they may have forgotten, which takes
// seconds.
func waits(fault string) bool {
	return fault == FaultMajority || fault == FaultBlank || fault == FaultRolling
}

const (
	waiting      = 5 * time.Second  // how much of a round there must be left for such a fault
	waitingRound = 30 * time.Second // how long a round with such faults is at least: all masters are to start again in it
)
