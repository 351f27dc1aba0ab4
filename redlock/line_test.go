package redlock_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// Contenders with one driver each take turns, and their tokens grow.
func TestCrowd(t *testing.T) {
	set := startMasters(t, 5)
	for _, turn := range []bool{true, false} {
		drivers, j := crowd(t, 8, 400, func(int) string { return urlOf(addrs(set)) }, 15*time.Second, turn, nil)
		t.Logf("turn %v: longest wait %v, %+v", turn, j.longest, total(drivers))
	}
}

// Claims that reach the masters in different orders split them. They must step back for the oldest,
// or all wait until their time is over.
func TestSplit(t *testing.T) {
	set := startMasters(t, 5)
	slow := func(int) string {
		var all []string
		for _, s := range set {
			w := wire.New(t, s.Addr())
			w.Delay(0, 2*time.Millisecond)
			all = append(all, w.Addr())
		}
		return urlOf(all)
	}
	think := func() {
		timer := time.NewTimer(rand.N(4 * time.Millisecond))
		<-timer.C
	}
	const ttl = 15 * time.Second
	drivers, j := crowd(t, 8, 200, slow, ttl, false, think)
	t.Logf("longest wait %v, %+v", j.longest, total(drivers))
	if j.longest > ttl/2 {
		t.Errorf("one waited %v of a TTL of %v: it stood still", j.longest, ttl)
	}
}

// Two claims have a master each of the two that are left, and wait for each other's. The newer one
// steps back, or both wait until their time is over.
func TestNewerOneStepsBack(t *testing.T) {
	set := startMasters(t, 3)
	late, wires := wired(t, set, "?node_timeout=10s")
	elder := session(t, late, time.Minute)
	younger := session(t, open(t, urlOf(addrs(set))), time.Minute)
	occupy(t, "split", set[2])
	heal := wires[1].Stall(wire.Both)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got := make(chan error, 1)
	go func() {
		_, err := acquire(ctx, elder, mutex("split", true))
		got <- err
	}()
	until(t, 30*time.Second, "taken by the elder", func() bool { return ours(t, set[0], "split") })
	if g, err := younger.Acquire(t.Context(), mutex("split", true)); g.Held || err != nil {
		t.Fatalf("with one master of three: %+v, %v", g, err)
	}
	if !ours(t, set[1], "split") {
		t.Fatal("the younger has no master: nothing is shown")
	}
	heal()
	if err := <-got; err != nil {
		t.Errorf("the elder was not let in: %v", err)
	}
}

// A master is stopped while contenders take turns. Each waits for it in vain once or twice, not at
// every turn: only until it is seen to be late.
func TestTurnsGoOnWithoutAMasterThatIsLate(t *testing.T) {
	const contenders, before, turns = 4, 50, 200
	set := startMasters(t, 5)
	defer func() { _ = set[4].Resume() }()
	grants := 0
	drivers, _ := crowd(t, contenders, turns, func(int) string { return urlOf(addrs(set)) + "?node_timeout=90s" }, time.Minute, true, func() {
		if grants++; grants == before {
			if err := set[4].Pause(); err != nil {
				t.Error(err)
			}
		}
	})
	vain := int64(0)
	for _, d := range drivers {
		vain += d.Vain()[4]
	}
	t.Logf("%d turns waited in vain %d times", turns-before, vain)
	if vain > (turns-before)/3 {
		t.Errorf("%d turns waited %d times while a master was silent, want %d times at most: somebody waits for it at every turn", turns-before, vain, (turns-before)/3)
	}
}

// The masters take no writes when the holder leaves, for want of replicas. The one behind it must
// not hear of a grant that no master can write, and is let in when they can.
func TestNobodyHearsOfAGrantThatIsNotWritten(t *testing.T) {
	set := startMasters(t, 3)
	url := urlOf(addrs(set))
	holder, waiter := session(t, open(t, url), 30*time.Second), session(t, open(t, url), 30*time.Second)
	first, next := mutex("refused", true), mutex("refused", true)
	if g, err := holder.Acquire(t.Context(), first); !g.Held || err != nil {
		t.Fatalf("a free name: %+v, %v", g, err)
	}
	if g, err := waiter.Acquire(t.Context(), next); g.Held || err != nil {
		t.Fatalf("behind a holder: %+v, %v", g, err)
	}
	replicas := func(want string) {
		for _, server := range set {
			server.MustDo(t, "CONFIG", "SET", "min-replicas-to-write", want)
		}
	}
	replicas("1")
	if held, err := holder.Release(t.Context(), first); err == nil {
		t.Errorf("a release that hands on where nothing can be written: held %v and no error", held)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	g, err := waiter.Wait(ctx, next)
	cancel()
	if g.Held {
		t.Errorf("granted with token %d, %v, although no master could write it", g.Fence, err)
	}
	replicas("0")
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := acquire(ctx, waiter, next); err != nil {
		t.Errorf("when the masters can write again: %v", err)
	}
}

// One holds, and one that was there before it comes to the masters later. Its claim is the older
// one, but what is held is not given back.
func TestHolderKeepsWhatAnOlderOneWants(t *testing.T) {
	set := startMasters(t, 5)
	late, wires := wired(t, set, "?node_timeout=10s")
	waits := session(t, late, time.Minute)
	holds := session(t, open(t, urlOf(addrs(set))), time.Minute)
	var heals []func()
	for _, w := range wires {
		heals = append(heals, w.Stall(wire.Both))
	}
	old := mutex("older", true)
	type result struct {
		g   driver.Grant
		err error
	}
	got := make(chan result, 1)
	sent := make(chan struct{})
	go func() {
		close(sent)
		g, err := acquire(t.Context(), waits, old)
		got <- result{g, err}
	}()
	<-sent
	<-time.After(50 * time.Millisecond) // it has its ticket by then; if not, nothing is shown, but nothing fails
	occupy(t, "older", set...)
	c := mutex("older", true)
	if g, err := holds.Acquire(t.Context(), c); g.Held || err != nil {
		t.Fatalf("while another program holds: %+v, %v", g, err)
	}
	for _, s := range set {
		s.MustDo(t, "DEL", "older")
	}
	g, err := acquire(t.Context(), holds, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, heal := range heals {
		heal()
	}
	until(t, 20*time.Second, "in line", func() bool {
		line, err := late.Line(t.Context(), "older")
		return err == nil && len(line.Claims) == 2
	})
	for range 50 {
		line, err := late.Line(t.Context(), "older")
		if err != nil {
			t.Fatal(err)
		}
		if len(line.Claims) == 0 || !line.Claims[0].Held || line.Claims[0].PublicID != driver.PublicID(c.ID) {
			t.Fatalf("the holder is not the holder any more: %+v", line.Claims)
		}
	}
	if held, err := holds.Release(t.Context(), c); !held || err != nil {
		t.Errorf("release: %v, %v", held, err)
	}
	r := <-got
	if r.err != nil || r.g.Fence < g.Fence+driver.Stride {
		t.Errorf("the older one: %+v, %v after token %d", r.g, r.err, g.Fence)
	}
}

// Whoever is first in line looks by itself when what stands in its way is over: another program's
// lock, or a holder that has died. The first leaves, and the next one looks from then on. No
// session is renewed: what only a renewal finds, nobody finds here. Where the first has died nobody
// can tell the next one, which learns by one renewal that it is first.
func TestWhoIsFirstInLineNowLooks(t *testing.T) {
	t.Parallel()
	all := func(t *testing.T, set []*servertest.Server, words ...string) {
		t.Helper()
		for _, s := range set {
			s.MustDo(t, words...)
		}
	}
	for what, behind := range map[string]struct {
		stands, fades, ends func(t *testing.T, set []*servertest.Server) // fades is before the first leaves, and ends after that
	}{
		"another program": {
			stands: func(t *testing.T, set []*servertest.Server) { t.Helper(); occupy(t, "first", set...) },
			fades:  func(*testing.T, []*servertest.Server) {},
			ends:   func(t *testing.T, set []*servertest.Server) { t.Helper(); all(t, set, "DEL", "first") },
		},
		"a dead holder": {
			stands: func(t *testing.T, set []*servertest.Server) {
				t.Helper()
				s := session(t, open(t, urlOf(addrs(set))+endless), endlessTTL)
				within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, s, mutex("first", true)); return err })
				everywhere(t, set, "first")
			},
			fades: func(t *testing.T, set []*servertest.Server) { t.Helper(); all(t, set, "PEXPIRE", "first", "500") },
			ends:  func(*testing.T, []*servertest.Server) {},
		},
	} {
		for how, leaves := range map[string]func(t *testing.T, b *leaver){
			"gives up": func(t *testing.T, b *leaver) {
				t.Helper()
				within(t, "a release", func(ctx context.Context) error { _, err := b.Release(ctx, b.claim); return err })
			},
			"is closed": func(t *testing.T, b *leaver) {
				t.Helper()
				within(t, "a close", func(ctx context.Context) error { return b.Close(ctx) })
			},
			"is broken": func(t *testing.T, b *leaver) {
				t.Helper()
				within(t, "a break", func(ctx context.Context) error {
					return b.d.Break(ctx, b.claim.Name, driver.PublicID(b.claim.ID), 0, true)
				})
			},
			"dies": func(t *testing.T, b *leaver) {
				t.Helper()
				var channels []string
				for _, s := range b.set {
					channels = append(channels, strings.Fields(s.MustDo(t, "HGET", "il:{"+b.claim.Name+"}:qclaims:"+b.claim.Name, b.claim.ID))[4])
				}
				b.board.Kill()
				for i, s := range b.set {
					until(t, 30*time.Second, "seen to be gone", func() bool { return strings.HasSuffix(s.MustDo(t, "PUBSUB", "NUMSUB", channels[i]), "\n0") })
				}
				within(t, "a renewal", func(ctx context.Context) error { _, err := b.next.Renew(ctx); return err })
			},
		} {
			t.Run(how+" behind "+what, func(t *testing.T) {
				t.Parallel()
				set := startMasters(t, 3)
				behind.stands(t, set)
				b := &leaver{set: set, claim: mutex("first", true), board: redistest.NewProxies(t)}
				var wired []string
				for _, s := range set {
					wired = append(wired, b.board.To(s.Addr()).Addr())
				}
				b.d = open(t, urlOf(wired)+endless)
				b.Session, b.next = session(t, b.d, endlessTTL), session(t, open(t, urlOf(addrs(set))+endless), endlessTTL)
				next := mutex("first", true)
				stand := func(s driver.Session, c driver.Claim, n string) {
					t.Helper()
					until(t, 30*time.Second, "in line everywhere", func() bool { // also where the subscription is confirmed later
						if g, err := s.Acquire(t.Context(), c); g.Held || err != nil {
							t.Fatalf("behind %s: held %v, %v", what, g.Held, err)
						}
						return !slices.ContainsFunc(set, func(s *servertest.Server) bool { return s.MustDo(t, "ZCARD", "il:{first}:qline:first") != n })
					})
				}
				stand(b, b.claim, "1")
				stand(b.next, next, "2")
				held := waits(t, b.next, next)
				behind.fades(t, set)
				leaves(t, b)
				behind.ends(t, set)
				if err := redistest.Receive(t, 30*time.Second, "who is first in line now is let in", held); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A leaver is the first in line, in a process of its own.
type leaver struct {
	driver.Session
	d     *redlock.Driver
	set   []*servertest.Server
	board *redistest.Proxies
	claim driver.Claim
	next  driver.Session // of the claim behind it
}

func TestFullMemory(t *testing.T) {
	set := startMasters(t, 3)
	redistest.TryFullMemories(t, set, func() driver.Driver { return open(t, urlOf(addrs(set))) })
}
