package rowline

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// gated is a server whose claims have gates, which are named after them.
type gated struct {
	*server
	mu     sync.Mutex
	open   map[string]chan struct{} // closed of a gate that is open
	waits  int                      // behind gates
	woken  int
	places int
}

func newGated() *gated {
	return &gated{server: newServer(), open: map[string]chan struct{}{}, places: 8}
}

func (g *gated) gate(id string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[id] == nil {
		g.open[id] = make(chan struct{})
	}
	return g.open[id]
}

func (g *gated) Step(ctx context.Context, s Step, patience time.Duration) (Answer, error) {
	a, err := g.server.Step(ctx, s, patience)
	if s.Old != "" {
		close(g.gate(s.Old))
	}
	return a, err
}

func (g *gated) Await(ctx context.Context, _ string, c driver.Claim, gate string) (Answer, error) {
	g.mu.Lock()
	if g.waits == g.places {
		g.mu.Unlock()
		return Answer{}, errors.New("no more may wait")
	}
	g.waits++
	g.mu.Unlock()
	var err error
	select {
	case <-g.gate(gate):
	case <-ctx.Done():
		err = ctx.Err()
	}
	g.mu.Lock()
	g.waits--
	if err == nil {
		g.woken++
	}
	g.mu.Unlock()
	if err != nil {
		return Answer{}, err
	}
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	return g.place(g.lineOf(c.Name), c.ID, Answer{}), nil
}

func (g *gated) enter(t *testing.T) *Session {
	t.Helper()
	d := New(Config{Store: g, Gates: g, Package: "test", Timeout: 4 * time.Second, MinTTL: time.Second, MaxName: 10})
	t.Cleanup(d.cancel)
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*Session)
}

// stands insists on how many wait behind gates, were woken there, and have looked by themselves.
func (g *gated) stands(t *testing.T, waits, woken, looks int) {
	t.Helper()
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.count("look"); g.waits != waits || g.woken != woken || n != looks {
		t.Errorf("%d wait behind gates, %d were woken, %d looked; want %d, %d, %d", g.waits, g.woken, n, waits, woken, looks)
	}
}

// Who waits is woken by the claim before it alone, whether that held or waited, and asks nothing.
func TestGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		a, b, c, d := g.enter(t), g.enter(t), g.enter(t), g.enter(t)
		mine, second, third, fourth := mutex("x"), mutex("x"), mutex("x"), mutex("x")
		asks(t, a, mine, true)
		asks(t, b, second, false)
		asks(t, c, third, false)
		asks(t, d, fourth, false)
		go func() { _, _ = c.Wait(t.Context(), third) }()
		g.stands(t, 3, 0, 0)
		time.Sleep(ttl / 2)
		g.stands(t, 3, 0, 0)
		leaves(t, c, third, false) // gives up, so that the fourth waits for the second
		g.stands(t, 2, 1, 0)
		leaves(t, a, mine, true)
		g.stands(t, 1, 2, 0)
		awaits(t, b, second)
		leaves(t, b, second, true)
		awaits(t, d, fourth)
		leaves(t, d, fourth, true)
		g.stands(t, 0, 3, 0)
		closes(t, a, b, c, d)
		g.nobody(t, "x")
	})
}

// A gate that is open although its claim stands there tells nothing: who waits asks, and waits
// behind it once it is locked again.
func TestGateThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		a, b := g.enter(t), g.enter(t)
		mine, next := mutex("x"), mutex("x")
		asks(t, a, mine, true)
		close(g.gate(mine.ID))
		asks(t, b, next, false)
		done := make(chan struct{})
		go func() { awaits(t, b, next); close(done) }()
		time.Sleep(pollFirst*4 + pollFirst/2)
		g.stands(t, 0, 5, 4)
		g.mu.Lock()
		delete(g.open, mine.ID)
		g.mu.Unlock()
		time.Sleep(time.Second)
		g.stands(t, 1, 5, 5)
		leaves(t, a, mine, true)
		<-done
		g.stands(t, 0, 6, 5)
		closes(t, a, b)
	})
}

// Who finds no place behind a gate asks.
func TestNoPlaceBehindAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		g.places = 0
		a, b := g.enter(t), g.enter(t)
		mine, next := mutex("x"), mutex("x")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		go func() {
			time.Sleep(pollFirst*3 + pollFirst/2)
			leaves(t, a, mine, true)
		}()
		awaits(t, b, next)
		g.stands(t, 0, 0, 4)
		closes(t, a, b)
	})
}

// A renewal that finds a claim waiting which is known to be held, as after a crash of the server,
// has it wait for nothing.
func TestHeldIsNotBehindAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		a, b := g.enter(t), g.enter(t)
		mine, next := mutex("x"), mutex("x")
		asks(t, a, mine, true)
		asks(t, b, next, false)
		c := b.claims[next.ID]
		b.mu.Lock()
		c.admit(1)
		b.mu.Unlock()
		renews(t, b)
		g.stands(t, 0, 0, 0)
		awaits(t, b, next)
		leaves(t, a, mine, true)
		closes(t, a, b)
	})
}
