package flawed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// quorum is the lock over several masters without a flaw, and without anything that is not needed:
// it has no line, and a claim that gets too few masters gives them back and tries again after a
// random pause.
//
// With n permits each master lets n in. Of Q masters for each of n + 1 holders n × N would have to
// be enough; so with Q = n × N / (n + 1) + 1 they are not, which is a majority for n = 1 and more
// for more.
//
// The token is the largest counter among the masters that were won, and is written back to a quorum
// before the claim is held: any two quorums of exclusive claims share a master, and there the later
// one draws its counter above. A master that has restarted counts when the longest TTL is over and
// it has the counters of the others.
type quorum struct {
	masters []*master
	maxTTL  time.Duration
	tries   *atomic.Uint64
	longest time.Duration // for which one master is waited for

	// What the flaws change.
	need     func(masters, permits int) int // masters to be won
	raise    bool                           // the token is written back
	voteless bool                           // a master counts as soon as it answers
	keep     bool                           // what was won in vain is kept
}

func newQuorum(masters []*master, maxTTL time.Duration) quorum {
	return quorum{
		masters: masters, maxTTL: maxTTL, tries: new(atomic.Uint64), longest: 200 * time.Millisecond, raise: true,
		need: func(masters, permits int) int { return permits*masters/(permits+1) + 1 },
	}
}

func (quorum) value(g *grip) string { return g.id }

// valid leaves out a hundredth for clocks that differ, and what masters round.
func (quorum) valid(ttl, _ time.Duration) time.Duration { return ttl - ttl/100 - 2*time.Millisecond }

// patience is how long one master is waited for.
func (q quorum) patience(ttl time.Duration) time.Duration { return min(ttl/3, q.longest) }

// vote is what one master answered to a step.
type vote struct {
	i   int
	n   int64
	err error
}

// ask has all masters, or some, carry out a step at once.
func (q quorum) ask(ctx context.Context, ttl time.Duration, which []int, step func(context.Context, *master) (int64, error)) <-chan vote {
	votes := make(chan vote, len(which))
	for _, i := range which {
		go func() {
			ctx, cancel := context.WithTimeout(ctx, q.patience(ttl))
			defer cancel()
			n, err := step(ctx, q.masters[i])
			if errors.Is(err, errVoteless) {
				q.admit(q.masters[i])
			}
			votes <- vote{i, n, err}
		}()
	}
	return votes
}

func (q quorum) everywhere() []int {
	all := make([]int, len(q.masters))
	for i := range all {
		all[i] = i
	}
	return all
}

// count waits for votes until so many said yes, or can no more. Of no answer at all it is an error.
func (q quorum) count(votes <-chan vote, asked, need int) (yes []vote, err error) {
	var errs []error
	for asked > 0 && len(yes) < need && len(yes)+asked >= need {
		v := <-votes
		asked--
		if v.err != nil {
			errs = append(errs, v.err)
		} else if v.n > 0 {
			yes = append(yes, v)
		}
	}
	if len(yes) < need && len(errs) > len(q.masters)-need {
		return yes, fmt.Errorf("flawed: %d of %d masters did not answer, want %d: %w", len(errs), len(q.masters), need, errors.Join(errs...))
	}
	return yes, nil
}

// acquire tries once. Each try has a value of its own: what an earlier one has left on its way can
// hit nothing of this.
func (q quorum) acquire(ctx context.Context, g *grip, ttl time.Duration) (held bool, err error) {
	g.value = g.id + " " + strconv.FormatUint(q.tries.Add(1), 10)
	value, need := g.value, q.need(len(q.masters), g.limit)
	decided := make(chan struct{})
	defer close(decided)
	votes := q.ask(context.WithoutCancel(ctx), ttl, q.everywhere(), func(ctx context.Context, m *master) (int64, error) {
		n, err := m.step(ctx, g, "take", value, ttl, driver.Stride, q.voteless)
		go q.undo(ctx, m, g, value, ttl, decided, &held)
		return n, err
	})
	won, err := q.count(votes, len(q.masters), need)
	if err != nil || len(won) < need {
		return false, err
	}
	for _, v := range won {
		g.token = max(g.token, v.n)
	}
	if q.raise && g.limit == 1 {
		return q.writeBack(ctx, g, ttl, won, need)
	}
	return true, nil
}

// undo gives a master back when it is decided that the claim is not held: after what may have won
// it, on the same connection.
func (q quorum) undo(ctx context.Context, m *master, g *grip, value string, ttl time.Duration, decided <-chan struct{}, held *bool) {
	if <-decided; *held || q.keep {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ttl)
	defer cancel()
	_, _ = m.step(ctx, g, "leave", value, 0, 0, true)
}

// writeBack stores the token where a smaller one was drawn.
func (q quorum) writeBack(ctx context.Context, g *grip, ttl time.Duration, won []vote, need int) (bool, error) {
	var behind []int
	for _, v := range won {
		if v.n < g.token {
			behind = append(behind, v.i)
		}
	}
	value := g.value
	votes := q.ask(ctx, ttl, behind, func(ctx context.Context, m *master) (int64, error) {
		return m.step(ctx, g, "raise", value, ttl, g.token, q.voteless)
	})
	more, err := q.count(votes, len(behind), need-(len(won)-len(behind)))
	return err == nil && len(won)-len(behind)+len(more) >= need, err
}

func (q quorum) renew(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	value, need := g.value, q.need(len(q.masters), g.limit)
	votes := q.ask(ctx, ttl, q.everywhere(), func(ctx context.Context, m *master) (int64, error) {
		return m.step(ctx, g, "keep", value, ttl, 0, q.voteless)
	})
	yes, err := q.count(votes, len(q.masters), need)
	return len(yes) >= need, err
}

func (q quorum) release(ctx context.Context, g *grip) (bool, error) {
	value, need := g.value, q.need(len(q.masters), g.limit)
	votes := q.ask(context.WithoutCancel(ctx), q.maxTTL, q.everywhere(), func(ctx context.Context, m *master) (int64, error) {
		return m.step(ctx, g, "leave", value, 0, 0, true)
	})
	yes, err := q.count(votes, len(q.masters), need)
	return len(yes) >= need, err
}

// admit sees to it that a master counts again, or for the first time.
func (q quorum) admit(m *master) {
	if !m.admits.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer m.admits.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), 3*q.maxTTL)
		defer cancel()
		_ = m.admit(ctx, q.maxTTL+q.maxTTL/50+10*time.Millisecond, q.counters)
	}()
}

// counters reads the largest counters from a majority of the masters that count. In the beginning
// no majority does, and none of all has a counter.
func (q quorum) counters(ctx context.Context) ([]string, error) {
	largest := map[string]int64{}
	answered, counting := 0, 0
	for _, m := range q.masters {
		ctx, cancel := context.WithTimeout(ctx, q.maxTTL/3)
		known, counts, err := m.counters(ctx)
		cancel()
		if err != nil {
			continue
		}
		answered++
		if counts {
			counting++
		}
		for name, text := range known {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("flawed: the counter of %q: %w", name, err)
			}
			largest[name] = max(largest[name], n)
		}
	}
	if majority := len(q.masters)/2 + 1; counting < majority && (len(largest) > 0 || answered < len(q.masters)) {
		return nil, fmt.Errorf("flawed: %d of %d masters answered and %d count, want %d", answered, len(q.masters), counting, majority)
	}
	var pairs []string
	for name, n := range largest {
		pairs = append(pairs, name, strconv.FormatInt(n, 10))
	}
	return pairs, nil
}

// settled waits until enough masters count for there to be a lock.
func (q quorum) settled(ctx context.Context) error {
	need := len(q.masters)/2 + 1
	for {
		votes := q.ask(ctx, q.maxTTL, q.everywhere(), func(ctx context.Context, m *master) (int64, error) {
			_, err := m.step(ctx, &grip{key: "flawed:none", limit: 1}, "keep", "", 0, 0, q.voteless)
			return 1, err
		})
		yes, err := q.count(votes, len(q.masters), need)
		if err == nil && len(yes) >= need {
			return nil
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), err)
		}
	}
}

func (q quorum) close() {
	for _, m := range q.masters {
		m.close()
	}
}
