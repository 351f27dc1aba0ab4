package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A witness sees all grants of one name, and two numbers that their holders add to: one checks
// tokens, one does not.
type witness struct {
	mark fence.Mark

	mu       sync.Mutex
	granted  uint64 // the highest token whose Acquire has returned
	tokens   map[uint64]bool
	grants   int
	accepted uint64 // the token of the last write that the mark let through
	guarded  number
	bare     number
	refused  int // writes
	ill      []error
}

// A number is read, and later written with one more.
type number struct{ value, acknowledged int }

func (w *witness) fails(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ill = append(w.ill, fmt.Errorf(format, args...))
}

// grant acquires, or tries to: the token of a try that fails is 0. A token is unique, and larger by
// a stride than that of every grant that was told before this one was asked for.
func (w *witness) grant(ctx context.Context, s driver.Session, c driver.Claim) (token uint64, err error) {
	w.mu.Lock()
	before := w.granted
	w.mu.Unlock()
	ask := acquire
	if !c.Queue {
		ask = func(ctx context.Context, s driver.Session, c driver.Claim) (driver.Grant, error) {
			return s.Acquire(ctx, c)
		}
	}
	g, err := ask(ctx, s, c)
	if err != nil || !g.Held {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range uint64(driver.Stride) {
		if w.tokens[g.Fence+i] {
			w.ill = append(w.ill, fmt.Errorf("token %d was granted twice", g.Fence+i))
		}
		w.tokens[g.Fence+i] = true
	}
	if g.Fence < before+driver.Stride {
		w.ill = append(w.ill, fmt.Errorf("token %d is granted after %d", g.Fence, before))
	}
	w.granted = max(w.granted, g.Fence)
	w.grants++
	return g.Fence, nil
}

// read begins a change of both numbers; the function that it returns ends it. Whoever was refused
// does not write, and is not told that it did.
func (w *witness) read(token uint64) (write func()) {
	claimed := w.mark.Claim(token)
	w.mu.Lock()
	defer w.mu.Unlock()
	guarded, bare := w.guarded.value, w.bare.value
	return func() {
		err := claimed
		if err == nil {
			err = w.mark.Do(token, func() error {
				w.mu.Lock()
				defer w.mu.Unlock()
				if token < w.accepted {
					w.ill = append(w.ill, fmt.Errorf("a write with token %d is accepted after one with %d", token, w.accepted))
				}
				w.accepted = token
				w.guarded = number{guarded + 1, w.guarded.acknowledged + 1}
				return nil
			})
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.bare = number{bare + 1, w.bare.acknowledged + 1}
		if errors.Is(err, fence.ErrStale) {
			w.refused++
		} else if err != nil {
			w.ill = append(w.ill, err)
		}
	}
}

// Two of five masters' clocks go an hour forth or back while one holds with a majority that needs
// them both, and three others want the lock. When they go forth, others get it beside the holder.
// Exclusion is gone then, and a hundred such runs show it: what is written without a look at tokens
// gets lost. Tokens are in order all the same, and what is written with them stays.
func TestClocksAmongContenders(t *testing.T) {
	if testing.Short() {
		t.Skip("contests under clocks that differ: make proof")
	}
	const runs, contenders, ttl = 100, 3, 30 * time.Second
	set := make([]*servertest.Server, 5)
	for i := range set {
		s, err := servertest.Start(t.Context(), servertest.Options{Clock: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		set[i] = s
	}
	url := urlOf(addrs(set)) + "?node_timeout=5s"
	holds := session(t, open(t, url), ttl)
	var others []driver.Session
	for range contenders {
		others = append(others, session(t, open(t, url), ttl))
	}
	w := &witness{tokens: map[uint64]bool{}}
	for run := range runs {
		order := rand.New(rand.NewPCG(uint64(run), 1)).Perm(5) //nolint:gosec // not for secrets
		by := time.Hour
		if run%2 == 1 {
			by = -by
		}
		clockRun(t, w, holds, others, set[order[0]], set[order[1]], set[order[2]], set[order[3]], by)
		if t.Failed() {
			t.Fatalf("run %d: masters %v, clocks by %v", run, order, by)
		}
	}
	t.Logf("%d runs: %d grants; %d stale writes refused; without tokens %d of %d writes lost", runs, w.grants, w.refused, w.bare.acknowledged-w.bare.value, w.bare.acknowledged)
	for _, err := range w.ill[:min(len(w.ill), 10)] {
		t.Error(err)
	}
	if w.guarded.value != w.guarded.acknowledged {
		t.Errorf("of %d writes that were acknowledged to those with a token %d are there", w.guarded.acknowledged, w.guarded.value)
	}
	if want := runs * (1 + contenders); w.grants != want || w.guarded.acknowledged+w.refused != want {
		t.Errorf("%d grants, %d writes and %d refusals: want %d grants, and as many of both others", w.grants, w.guarded.acknowledged, w.refused, want)
	}
	if lost := w.bare.acknowledged - w.bare.value; lost < runs/4 || w.refused < runs/4 {
		t.Errorf("only %d writes without tokens were lost and %d refused: the clocks let nobody in beside the holder, so nothing was shown", lost, w.refused)
	}
}

// clockRun has one session hold, with out1 and out2 in another program's hands, steps two clocks,
// and lets the others in.
func clockRun(t *testing.T, w *witness, holds driver.Session, others []driver.Session, step1, step2, out1, out2 *servertest.Server, by time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	occupy(t, "clocks", out1, out2)
	var c driver.Claim
	var write func()
	until(t, 20*time.Second, "held by the first", func() bool {
		c = mutex("clocks", false) // which stays in no line, so that it gets none of the other masters later
		token, err := w.grant(ctx, holds, c)
		if err == nil && token > 0 {
			write = w.read(token)
		}
		return write != nil
	})
	for _, s := range []*servertest.Server{step1, step2} {
		if err := s.Step(by); err != nil {
			t.Fatal(err)
		}
	}
	out1.MustDo(t, "DEL", "clocks")
	out2.MustDo(t, "DEL", "clocks")
	in := make(chan bool, len(others))
	var all sync.WaitGroup
	for i, s := range others {
		all.Go(func() {
			c := mutex("clocks", true)
			token, err := w.grant(ctx, s, c)
			if err != nil {
				w.fails("contender %d: %w", i+1, err)
				t.Errorf("contender %d: %v", i+1, err)
				return
			}
			w.read(token)()
			in <- true
			_, _ = s.Release(ctx, c)
		})
	}
	if by > 0 {
		select { // its time is over on a majority, and it does not know
		case <-in:
		case <-ctx.Done():
			t.Error("nobody got in although the holder's time was over on two masters and two were free")
		}
	}
	write()
	_, _ = holds.Release(ctx, c)
	all.Wait()
}

// Two of five masters' clocks go an hour forth and back. Exclusion may suffer from that, the order
// of tokens does not: what was granted later has the larger token, by whatever majority.
func TestClocks(t *testing.T) {
	if testing.Short() {
		t.Skip("contests under clocks that differ: make proof")
	}
	var set []*servertest.Server
	for range 5 {
		s, err := servertest.Start(t.Context(), servertest.Options{Clock: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		set = append(set, s)
	}
	d := open(t, urlOf(addrs(set)))
	s := session(t, d, 2*time.Second)
	last := uint64(0)
	for round := range 100 {
		for i, by := range []time.Duration{time.Hour, -time.Hour} {
			if round%4 >= 2 {
				by = -by // and back again
			}
			if round%2 == 0 {
				if err := set[(round/4+i)%5].Step(by); err != nil {
					t.Fatal(err)
				}
			}
		}
		out := set[round%5] // every majority has its turn
		occupy(t, "clocks", out)
		c := mutex("clocks", true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		g, err := acquire(ctx, s, c)
		cancel()
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if g.Fence < last+driver.Stride {
			t.Fatalf("round %d: token %d after %d", round, g.Fence, last)
		}
		last = g.Fence
		if _, err := s.Release(t.Context(), c); err != nil {
			t.Fatalf("round %d: release: %v", round, err)
		}
		out.MustDo(t, "DEL", "clocks")
	}
}

func TestDriftIsTakenOff(t *testing.T) {
	t.Parallel()
	set := []*servertest.Server{servertest.Redis(t), servertest.Redis(t), servertest.Redis(t)}
	redistest.TryDrift(t, open(t, urlOf(addrs(set))+patient), "m", set...)
}
