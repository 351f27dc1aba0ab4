package interlock_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

var (
	stressSeeds = flag.Uint64("interlock.seeds", 30, "how many histories TestStress plays")
	stressFirst = flag.Uint64("interlock.seed", 0, "the seed of the first of them")
)

// TestStress plays random histories: several clients with several goroutines take locks of every
// kind, while wires stall and fail, operators break claims and sessions end. It checks that
//
//   - no two leases that exclude each other are valid at one instant, and what a lease believes is what the store
//     knows, with a grace to spare (but for histories in which the store forgets);
//   - the tokens of a name grow in the order of its grants;
//   - everybody comes to an end when the faults have;
//   - then nothing is left in the store, and no goroutine.
func TestStress(t *testing.T) {
	for seed := *stressFirst; seed < *stressFirst+*stressSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newHistory(t, seed).play() })
		})
	}
}

// history is one of these.
type history struct {
	t     *testing.T
	store *memlock.Driver // whose wire stays whole
	p     memlock.Personality
	rough atomic.Bool // the store forgets what it granted
	end   time.Time

	clients []*interlock.Client
	wires   []*memlock.Driver

	mu     sync.Mutex
	rng    *rand.Rand
	leases map[string][]*held
	newest map[string]*held // by name: the last grant with a token
	tokens map[string]bool
	grants int
}

// held is a lease as the history remembers it.
type held struct {
	*interlock.Lease
	name   string
	weight int // of limit
	limit  int
	fence  uint64
	grace  time.Duration
	at     time.Time
}

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 1)), leases: map[string][]*held{}, newest: map[string]*held{}, tokens: map[string]bool{}}
	kinds := []memlock.Personality{
		{},
		{},
		{},
		{Clamp: 2 * time.Second},
		{Round: 200 * time.Millisecond},
		{NoExpiry: true},
		{NoOrder: true},
		{NoFence: true},
		{Notices: memlock.Lost},
		{Notices: memlock.Doubled},
		{Notices: memlock.Early},
	}
	h.p = kinds[h.rng.IntN(len(kinds))]
	h.rough.Store(h.rng.IntN(3) == 0)
	h.store = memlock.NewPersonality(h.p)
	h.end = time.Now().Add(time.Minute)
	for range 2 + h.rng.IntN(3) {
		wire := h.store.Share()
		o := &interlock.Options{TTL: h.between(400*time.Millisecond, 6*time.Second), Idle: h.between(time.Second, time.Minute)}
		if h.rng.IntN(2) == 0 {
			o.Grace = h.between(2*time.Millisecond, min(o.TTL, 2*time.Second)/3)
		}
		if h.rng.IntN(2) == 0 {
			o.Patience = h.between(100*time.Millisecond, 20*time.Second)
		}
		h.wires = append(h.wires, wire)
		h.clients = append(h.clients, newClient(t, wire, o))
	}
	return h
}

func (h *history) intN(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rng.IntN(n)
}

func (h *history) between(low, high time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return low + time.Duration(h.rng.Int64N(int64(high-low)+1))
}

func (h *history) play() {
	t := h.t
	var users, faults sync.WaitGroup
	for range 2 {
		faults.Go(h.disturb)
	}
	for _, c := range h.clients {
		for range 2 + h.intN(4) {
			users.Go(func() { h.use(c) })
		}
	}
	faults.Wait()
	healed := time.Now()
	for _, w := range h.wires {
		w.Fail(nil)
	}
	if h.p.NoExpiry { // whoever was cut off for too long: such a store learns of it in its own way
		h.rough.Store(true)
		for _, w := range h.wires {
			w.EndSessions()
		}
	}
	done := make(chan struct{})
	go func() {
		users.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		t.Errorf("somebody is stuck three minutes after the last fault; in line: %s", h.lines())
		for _, c := range h.clients {
			c.Close()
		}
		users.Wait()
		return
	}
	if d := time.Since(healed); d > 90*time.Second {
		t.Errorf("the last came to its end %v after the last fault", d)
	}
	time.Sleep(8 * time.Second) // the longest TTL, and 2 s
	if left := h.lines(); left != "" {
		t.Errorf("left in line: %s", left)
	}
	if h.grants < 10 {
		t.Errorf("%d grants in a minute: nothing was tried", h.grants)
	}
}

func (h *history) lines() string {
	var b strings.Builder
	for _, l := range must[[]driver.Line](h.t)(h.store.Lines(h.t.Context(), "")) {
		fmt.Fprintf(&b, "%s:", l.Name)
		for _, c := range l.Claims {
			fmt.Fprintf(&b, " %v %v held=%v broken=%v until=%v", c.PublicID, c.Kind, c.Held, c.Broken, time.Until(c.Until))
		}
	}
	return b.String()
}

// disturb makes faults, one after the other, until the end.
func (h *history) disturb() {
	names := []string{"a", "b", "rw", "s", "e"}
	for time.Now().Before(h.end) {
		time.Sleep(h.between(0, 3*time.Second))
		w, name := h.wires[h.intN(len(h.wires))], names[h.intN(len(names))]
		for1 := h.between(time.Millisecond, 8*time.Second)
		switch h.intN(9) {
		case 0:
			resume := w.Stall()
			time.Sleep(for1)
			resume()
		case 1:
			resume := w.StallReplies()
			time.Sleep(for1)
			resume()
		case 2:
			w.Fail(errReset)
			time.Sleep(for1)
			w.Fail(nil)
		case 3: // a burst
			for range 10 {
				w.Fail(errReset)
				time.Sleep(for1 / 100)
				w.Fail(nil)
				time.Sleep(for1 / 100)
			}
		case 4:
			h.store.Lose(name)
		case 5:
			line := must[driver.Line](h.t)(h.store.Line(h.t.Context(), name))
			if len(line.Claims) > 0 {
				c := line.Claims[h.intN(len(line.Claims))]
				_ = h.store.Break(h.t.Context(), name, c.PublicID, c.Fence, h.rough.Load())
			}
		case 6:
			if h.rough.Load() {
				w.EndSessions()
			}
		case 7:
			if h.rough.Load() {
				h.store.Forget(name)
			}
		case 8: // peace
			time.Sleep(for1 / 2)
		}
	}
}

// use takes locks until the end.
func (h *history) use(c *interlock.Client) {
	for time.Now().Before(h.end) {
		h.once(c)
		if h.intN(3) == 0 {
			time.Sleep(h.between(0, 300*time.Millisecond))
		}
	}
}

func (h *history) once(c *interlock.Client) {
	ctx, cancel := h.t.Context(), context.CancelFunc(func() {})
	switch h.intN(4) {
	case 0:
		ctx, cancel = context.WithTimeout(ctx, h.between(0, 5*time.Second))
	case 1:
		ctx, cancel = context.WithCancel(ctx)
		time.AfterFunc(h.between(0, 2*time.Second), cancel)
	}
	defer cancel()

	var o []interlock.LockOption
	ttl, grace := time.Duration(0), time.Duration(0)
	if h.intN(6) == 0 {
		ttl = h.between(400*time.Millisecond, 3*time.Second)
		o = append(o, interlock.TTL(ttl))
	}
	if ttl > 0 || h.intN(4) == 0 { // that of the client's options may not go with a TTL of its own
		grace = h.between(2*time.Millisecond, 130*time.Millisecond)
		o = append(o, interlock.Grace(grace))
	}
	switch h.intN(8) {
	case 0:
		o = append(o, interlock.MinHold(h.between(0, time.Second)))
	case 1:
		o = append(o, interlock.MaxHold(h.between(4*time.Second, 8*time.Second)))
	case 2:
		o = append(o, interlock.Note("n"))
	case 3:
		o = append(o, interlock.Isolated())
	case 4:
		o = append(o, interlock.Wait(h.between(0, 2*time.Second)))
	}
	names, limit, weight := []string{"a"}, driver.All, driver.All
	var lock func() (*interlock.Lease, error)
	switch h.intN(8) {
	case 0:
		m := c.Mutex("a", o...)
		lock = func() (*interlock.Lease, error) { return m.TryLock(ctx) }
	case 1, 2:
		m := c.Mutex("a", o...)
		lock = func() (*interlock.Lease, error) { return m.Lock(ctx) }
	case 3:
		names = []string{"a", "b"}
		m := c.Multi(names, o...)
		lock = func() (*interlock.Lease, error) { return m.Lock(ctx) }
	case 4:
		names = []string{"rw"}
		m := c.RWMutex("rw", o...)
		lock = func() (*interlock.Lease, error) { return m.Lock(ctx) }
	case 5:
		names, weight = []string{"rw"}, 1
		m := c.RWMutex("rw", o...)
		lock = func() (*interlock.Lease, error) { return m.RLock(ctx) }
	case 6:
		names, weight, limit = []string{"s"}, 1+h.intN(2), 3
		s := c.Semaphore("s", 3, o...)
		lock = func() (*interlock.Lease, error) { return s.Acquire(ctx, weight) }
	case 7:
		names = []string{"b"}
		m := c.Mutex("b", o...)
		lock = func() (*interlock.Lease, error) { return m.Lock(ctx) }
	}
	l, err := lock()
	if err != nil {
		for _, known := range []error{
			interlock.ErrHeld, interlock.ErrUnavailable, context.DeadlineExceeded, context.Canceled, driver.ErrBroken,
			errors.ErrUnsupported, // a grace that a clamped store cannot give
		} {
			if errors.Is(err, known) {
				return
			}
		}
		h.t.Errorf("lock: unknown error %v", err)
		return
	}
	var mine []*held
	for _, name := range names {
		mine = append(mine, h.grant(l, name, weight, limit, grace))
	}
	time.Sleep(h.between(0, time.Duration(1+h.intN(300))*10*time.Millisecond))
	for _, g := range mine {
		h.check(g)
	}
	err = l.Release()
	for _, g := range mine {
		h.gone(g)
	}
	if err != nil && !errors.Is(err, interlock.ErrLost) && !errors.Is(err, interlock.ErrUncertain) {
		h.t.Errorf("release: unknown error %v", err)
	}
}

// grant remembers a lease that was granted now, and checks it against the others.
func (h *history) grant(l *interlock.Lease, name string, weight, limit int, grace time.Duration) *held {
	g := &held{Lease: l, name: name, weight: weight, limit: limit, fence: l.FenceOf(name), grace: max(grace, 2*time.Millisecond), at: time.Now()}
	h.mu.Lock()
	h.grants++
	others := append([]*held(nil), h.leases[name]...)
	if token := fmt.Sprint(name, g.fence); g.fence > 0 && h.tokens[token] {
		h.t.Errorf("%s: token %d twice", name, g.fence)
	} else {
		h.tokens[token] = true
	}
	h.leases[name] = append(h.leases[name], g)
	last := h.newest[name]
	if g.fence > 0 {
		h.newest[name] = g
	}
	h.mu.Unlock()
	reported := !h.rough.Load() // else the store may forget a grant while the news of it are under way
	if g.fence > 0 && last != nil && g.fence <= last.fence && g.at.After(last.at) && reported {
		h.t.Errorf("%s: token %d at %v after %d at %v", name, g.fence, g.at, last.fence, last.at)
	}
	if weight == driver.All && g.fence == 0 && !h.p.NoFence {
		h.t.Errorf("%s: an exclusive lease without a token", name)
	}
	if !h.rough.Load() && l.Err() == nil {
		sum := 0
		for _, o := range append(others, g) {
			if o.Err() == nil {
				sum += min(o.weight, limit)
			}
		}
		if sum > limit {
			h.t.Errorf("%s: granted at %v, while others are valid: %d of %d", name, g.at.Format("05.000000"), sum, limit)
			for _, o := range append(others, g) {
				h.t.Logf("weight %d, token %d, since %v, until %v: %v", o.weight, o.fence, o.at.Format("05.000000"), time.Until(o.Until()), o.Err())
			}
			h.t.Logf("the store has %s", h.lines())
		}
	}
	h.check(g)
	return g
}

// check compares what a lease believes with what the store knows.
func (h *history) check(g *held) {
	if h.rough.Load() || g.Err() != nil || h.p.NoExpiry {
		return
	}
	until, known := g.Until(), false
	for _, c := range standing(h.t, h.store, g.name) {
		if !c.Held || c.Until.Sub(until) < g.grace || g.fence != 0 && (g.fence < c.Fence || g.fence >= c.Fence+driver.Stride) {
			continue
		}
		known = true
	}
	if !known && g.Err() == nil {
		h.t.Errorf("%s: a lease until %v of which the store knows %s", g.name, time.Until(until), h.lines())
	}
}

func (h *history) gone(g *held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.leases[g.name]
	for i, o := range all {
		if o == g {
			h.leases[g.name] = append(all[:i:i], all[i+1:]...)
		}
	}
}
