package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/driver"
	rule "github.com/interlock-go/interlock/internal/line"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redislock"
)

// Several processes do everything that can be done, in any order, and others interfere. After every step the server is
// looked into: what stands there is sound, and as long as nobody interferes it is what the pure rule says.
func TestRandomHistory(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) { t.Parallel(); tryHistories(t, newStage(t, servertest.Redis(t))) })
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		tryHistories(t, newClusterStage(t, servertest.RedisCluster(t, 3, 0)))
	})
}

func tryHistories(t *testing.T, s *stage) {
	t.Helper()
	actors := make([]*actor, 3)
	rapid.Check(t, func(r *rapid.T) {
		h := newHistory(t, r, s, actors)
		r.Repeat(map[string]func(*rapid.T){
			"acquire": h.acquire,
			"try":     h.try,
			"again":   h.again,
			"release": h.release,
			"leave":   h.release, // twice as often as each way in
			"requeue": h.requeue,
			"renew":   h.renew,
			"hear":    h.hear,
			"expire":  h.expire,
			"lapse":   h.lapse,
			"set":     h.foreignSet,
			"del":     h.foreignDel,
			"close":   h.close,
			"kill":    h.kill,
			"":        h.check,
		})
		h.drain(r)
	})
}

// history is one run, on names of its own.
type history struct {
	t      *testing.T
	stage  *stage
	actors []*actor
	names  []*track
	claims map[string]*place // that nobody has released, by ID
	number int
}

// track is what a name should be like.
type track struct {
	rule.Line
	counter    int64  // when last seen
	foreign    string // the value of another program
	interfered bool   // by another program, at any time: nobody knows the order of grants any more
	unsettled  bool   // the holder's time was over, and maybe nobody has noticed
}

// place is a claim and whose it is.
type place struct {
	driver.Claim
	number int // in order of time
	of     *actor
	track  *track
	fence  uint64
	dead   bool
}

// historyTTL is a time that no history lasts.
const historyTTL = time.Hour

func newHistory(t *testing.T, r *rapid.T, s *stage, actors []*actor) *history {
	t.Helper()
	h := &history{t: t, stage: s, actors: actors, claims: map[string]*place{}}
	for i := range actors {
		if actors[i] == nil {
			actors[i] = s.actorWith(t, historyTTL, redislock.Options{})
		} else {
			actors[i].renewSession(r) // whatever the last run left
		}
	}
	for _, what := range []string{"history/locks", "history/permits"} {
		h.names = append(h.names, &track{Line: rule.Line{Name: s.name(what)}})
	}
	return h
}

func (h *history) actor(r *rapid.T) *actor { return h.actors[rapid.IntRange(0, 2).Draw(r, "actor")] }

// draw draws a claim for a name: mostly of a kind that goes with it.
func (h *history) draw(r *rapid.T, queue bool) (*track, driver.Claim) {
	i := rapid.IntRange(0, 1).Draw(r, "name")
	kind := rapid.SampledFrom([]driver.Kind{driver.Mutex, driver.Read, driver.Read, driver.Write}).Draw(r, "kind")
	if (i == 1) != (rapid.IntRange(0, 19).Draw(r, "misfit") == 0) {
		kind = driver.Permit
	}
	return h.names[i], h.claim(r, h.names[i].Name, kind, queue)
}

func (h *history) claim(r *rapid.T, name string, kind driver.Kind, queue bool) driver.Claim {
	c := driver.Claim{Name: name, ID: driver.NewID(), Kind: kind, Weight: 1, Limit: driver.All, Queue: queue}
	switch kind {
	case driver.Mutex, driver.Write:
		c.Weight = driver.All
	case driver.Permit:
		c.Limit = rapid.IntRange(1, 5).Draw(r, "limit")
		c.Weight = rapid.IntRange(1, c.Limit).Draw(r, "weight")
	}
	return c
}

// some draws one of the claims of a living actor.
func (h *history) some(r *rapid.T) *place {
	var all []*place
	for _, p := range h.claims {
		if !p.dead {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		r.Skip("nobody stands anywhere")
	}
	slices.SortFunc(all, func(a, b *place) int { return a.number - b.number })
	return all[rapid.IntRange(0, len(all)-1).Draw(r, "claim")]
}

// add adds a claim that nobody has released.
func (h *history) add(p *place) *place {
	h.number++
	p.number = h.number
	h.claims[p.ID] = p
	return p
}

func (h *history) acquire(r *rapid.T) { h.enter(r, true) }
func (h *history) try(r *rapid.T)     { h.enter(r, false) }

func (h *history) enter(r *rapid.T, queue bool) {
	a := h.actor(r)
	n, c := h.draw(r, queue)
	p := h.add(&place{Claim: c, of: a, track: n})
	g, err := a.session.Acquire(h.t.Context(), c)
	n.settle(h)
	if !n.interfered && n.Admits(rule.New("", c)) != nil {
		if !errors.Is(err, driver.ErrRefused) {
			r.Fatalf("%v where others stand whom it does not go with: %+v, %v; want %v", c.Kind, g, err, driver.ErrRefused)
		}
		delete(h.claims, c.ID)
		return
	}
	if n.interfered && errors.Is(err, driver.ErrRefused) {
		delete(h.claims, c.ID)
		return
	}
	if err != nil {
		r.Fatalf("acquire: %v", err)
	}
	if fits := n.Fits(rule.New("", c)); queue || fits {
		n.Join(rule.New("", c), time.Time{})
		n.settle(h)
	}
	if !queue && !g.Held {
		delete(h.claims, c.ID)
	}
	h.told(r, p, g)
}

// told compares an answer with the rule.
func (h *history) told(r *rapid.T, p *place, g driver.Grant) {
	if i := p.track.Find(p.ID); !p.track.interfered && g.Held != (i >= 0 && p.track.Claims[i].Held) && !p.track.rests(h) {
		r.Fatalf("held: %v; the rule says %+v", g.Held, p.track.Claims)
	}
	if g.Held && p.Kind.Exclusive() {
		if p.fence != 0 && g.Fence != p.fence {
			r.Fatalf("token %d, and before for the same claim %d", g.Fence, p.fence)
		}
		p.fence = g.Fence
	}
}

// settle applies the rule, and skips whom nobody reaches when they would be let in.
func (n *track) settle(h *history) {
	n.unsettled = false
	if n.foreign != "" {
		return
	}
	for again := true; again; {
		again = false
		sum := int64(0)
		for _, c := range n.Claims {
			sum += int64(c.Weight)
			if p := h.claims[c.ID]; !c.Held && sum <= int64(c.Limit) && p != nil && p.dead {
				n.Leave(c.ID)
				again = true
				break
			}
		}
	}
	_, _ = n.Settle(time.Time{}, func(stored uint64, _ time.Time) (uint64, uint64, error) { return stored + 1, stored + 1, nil })
}

// again asks for a claim that stands there.
func (h *history) again(r *rapid.T) {
	p := h.some(r)
	g, err := p.of.session.Acquire(h.t.Context(), p.Claim)
	gone := p.track.Find(p.ID) < 0
	p.track.settle(h)
	switch {
	case p.track.interfered && (err == nil || errors.Is(err, driver.ErrGone)):
	case gone:
		if !errors.Is(err, driver.ErrGone) && !g.Held {
			r.Fatalf("a claim that is gone: %+v, %v", g, err)
		}
	case err != nil:
		r.Fatalf("acquire again: %v", err)
	default:
		h.told(r, p, g)
	}
}

func (h *history) release(r *rapid.T) { h.leave(r, h.some(r)) }

func (h *history) leave(r *rapid.T, p *place) {
	held, err := p.of.session.Release(h.t.Context(), p.Claim)
	if err != nil {
		r.Fatalf("release: %v", err)
	}
	h.left(r, p, held)
}

// left takes in that a claim was released.
func (h *history) left(r *rapid.T, p *place, held bool) {
	n := p.track
	_, was := n.Leave(p.ID)
	if !n.interfered && held != was {
		r.Fatalf("the claim was held: %v; the rule says %v", held, was)
	}
	delete(h.claims, p.ID)
	n.settle(h)
}

func (h *history) requeue(r *rapid.T) {
	p := h.some(r)
	kind := rapid.SampledFrom([]driver.Kind{driver.Mutex, driver.Read, driver.Write}).Draw(r, "kind")
	if p.Kind == driver.Permit {
		kind = driver.Permit
	}
	next := h.add(&place{Claim: h.claim(r, p.Name, kind, true), of: p.of, track: p.track})
	n := p.track
	g, held, err := p.of.session.(driver.Requeuer).Requeue(h.t.Context(), p.Claim, next.Claim)
	_, was := n.Leave(p.ID)
	if errors.Is(err, driver.ErrRefused) { // it was gone, and others stand there whom the next one does not go with
		n.settle(h)
		if !n.interfered && n.Admits(rule.New("", next.Claim)) == nil {
			r.Fatalf("requeue: %v", err)
		}
		h.leave(r, p)
		h.leave(r, next)
		return
	}
	if err != nil {
		r.Fatalf("requeue: %v", err)
	}
	if !n.interfered && held != was {
		r.Fatalf("the claim was held: %v; the rule says %v", held, was)
	}
	delete(h.claims, p.ID)
	n.Join(rule.New("", next.Claim), time.Time{})
	n.settle(h)
	h.told(r, next, g)
}

func (h *history) renew(r *rapid.T) {
	a := h.actor(r)
	renewal, err := a.session.Renew(h.t.Context())
	if err != nil {
		r.Fatalf("renew: %v", err)
	}
	lost := map[string]bool{}
	for _, id := range renewal.Lost {
		lost[id] = true
		if h.claims[id] == nil || h.claims[id].of != a {
			r.Fatalf("a claim is lost that was released, or is another's")
		}
	}
	for _, p := range h.claims {
		if p.of != a || p.track.interfered {
			continue
		}
		if gone := p.track.Find(p.ID) < 0; gone != lost[p.ID] {
			r.Fatalf("%v %s is lost: %v; the rule says %v", p.Kind, p.ID, lost[p.ID], gone)
		}
	}
}

// hear sees that everybody who was let in by others has heard of it.
func (h *history) hear(r *rapid.T) {
	for _, p := range h.claims {
		i := p.track.Find(p.ID)
		if p.dead || p.track.interfered || i < 0 || p.track.unsettled {
			continue
		}
		if p.track.Claims[i].Held {
			until(h.t, "who holds has heard of it", func() bool { return p.peek(h.t) })
		} else if p.peek(h.t) {
			r.Fatalf("a claim that waits was told that it holds")
		}
	}
}

// peek is what the claim's session knows.
func (p *place) peek(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g, _ := p.of.session.Wait(ctx, p.Claim)
	return g.Held
}

// expire ends the time of whoever holds.
func (h *history) expire(r *rapid.T) {
	n := h.names[rapid.IntRange(0, 1).Draw(r, "name")]
	if n.foreign != "" || n.interfered {
		r.Skip("another program holds, or may")
	}
	h.remove(n)
	if len(n.Drop(func(c rule.Claim) bool { return c.Held })) > 0 {
		n.unsettled = true
	}
}

// lapse ends the time of one of those who share a name.
func (h *history) lapse(r *rapid.T) {
	n := h.names[rapid.IntRange(0, 1).Draw(r, "name")]
	st := h.stage.look(h.t, n.Name)
	held := st.held()
	if st.value != cover || len(held) == 0 || n.interfered {
		r.Skip("nobody shares it")
	}
	id := held[rapid.IntRange(0, len(held)-1).Draw(r, "holder")]
	f := strings.SplitN(st.records[id], " ", 9)
	f[5] = "1" // a time long over
	_, _, claims := sideKeys(n.Name)
	if err := h.stage.raw.HSet(h.t.Context(), claims, id, strings.Join(f, " ")).Err(); err != nil {
		h.t.Fatal(err)
	}
	n.Leave(id)
	n.unsettled = true
}

func (h *history) remove(n *track) {
	if err := h.stage.raw.Del(h.t.Context(), n.Name).Err(); err != nil {
		h.t.Fatal(err)
	}
}

func (h *history) foreignSet(r *rapid.T) {
	if rapid.IntRange(0, 3).Draw(r, "seldom") != 0 {
		r.Skip("not this time")
	}
	n := h.names[rapid.IntRange(0, 1).Draw(r, "name")]
	value := rapid.SampledFrom([]string{"x", "7f5a3c0e-8f6b-4f0e-9b43-6f1d1b9cba4d", "\x00\x01il1:"}).Draw(r, "value")
	if h.stage.raw.SetNX(h.t.Context(), n.Name, value, historyTTL).Val() {
		n.foreign, n.interfered = value, true
	}
}

func (h *history) foreignDel(r *rapid.T) {
	n := h.names[rapid.IntRange(0, 1).Draw(r, "name")]
	if n.foreign == "" {
		r.Skip("no other program holds")
	}
	if n := foreignRelease.Run(h.t.Context(), h.stage.raw, []string{n.Name}, n.foreign).Val(); n != int64(1) {
		r.Fatalf("the other program cannot release what it holds")
	}
	n.foreign = ""
}

// close ends a session in order, with all its claims.
func (h *history) close(r *rapid.T) {
	i := rapid.IntRange(0, 2).Draw(r, "actor")
	a := h.actors[i]
	a.renewSession(r)
	for id, p := range h.claims {
		if p.of == a {
			p.track.Leave(id)
			delete(h.claims, id)
		}
	}
	for _, n := range h.names {
		if !n.unsettled {
			n.settle(h)
		}
	}
}

// renewSession closes the actor's session and opens another.
func (a *actor) renewSession(r *rapid.T) {
	if err := a.session.Close(a.t.Context()); err != nil {
		r.Fatalf("close: %v", err)
	}
	var err error
	if a.session, err = a.driver.Open(a.t.Context(), driver.Spec{ID: driver.NewID(), TTL: historyTTL}); err != nil {
		r.Fatalf("open: %v", err)
	}
}

// kill ends a process without a word.
func (h *history) kill(r *rapid.T) {
	if rapid.IntRange(0, 3).Draw(r, "seldom") != 0 {
		r.Skip("not this time")
	}
	i := rapid.IntRange(0, 2).Draw(r, "actor")
	a := h.actors[i]
	a.kill()
	for _, p := range h.claims {
		if p.of != a {
			continue
		}
		p.dead = true
		if channel := h.stage.look(h.t, p.Name).channel(p.ID); channel != "" && channel != "-" {
			h.stage.reached(h.t, p.Name, channel, 0)
		}
	}
	h.actors[i] = h.stage.actorWith(h.t, historyTTL, redislock.Options{})
}

// check looks into the server.
func (h *history) check(r *rapid.T) {
	for _, n := range h.names {
		st := h.stage.look(h.t, n.Name)
		ills := st.ill()
		highest := st.counter - st.counter%2 // of all tokens
		if highest < n.counter {
			ills = append(ills, fmt.Sprintf("the counter fell from %d", n.counter))
		}
		n.counter = highest
		if n.foreign != "" && st.value != n.foreign {
			ills = append(ills, fmt.Sprintf("another program's value was %q", n.foreign))
		}
		if !n.interfered {
			ills = append(ills, n.differs(h, st)...)
		}
		if len(ills) > 0 {
			r.Fatalf("%q\n%s", ills, st)
		}
	}
}

// differs compares the server with the rule.
func (n *track) differs(h *history, st standing) []string {
	if n.agrees(st) {
		return nil
	}
	if n.unsettled { // somebody has noticed
		n.settle(h)
		if n.agrees(st) {
			return nil
		}
	}
	if n.rests(h) {
		return nil
	}
	return []string{fmt.Sprintf("the rule says: %+v", n.Claims)}
}

// rests reports whether the name is left free for a moment, to see whether another program polls for it. Nobody knows the
// order of grants any more: whoever is next holds when he comes back.
func (n *track) rests(h *history) bool {
	st := h.stage.look(h.t, n.Name)
	if st.idle() && st.records["*"] != "" {
		n.interfered = true
	}
	return n.interfered
}

func (n *track) agrees(st standing) bool {
	var held, waits []string
	for _, c := range n.Claims {
		if c.Held {
			held = append(held, c.ID)
		} else {
			waits = append(waits, c.ID)
		}
	}
	return slices.Equal(held, st.held()) && slices.Equal(waits, st.waits())
}

// drain has everybody leave, each when it holds. Nobody is forgotten.
func (h *history) drain(r *rapid.T) {
	for _, n := range h.names {
		if n.foreign != "" {
			foreignRelease.Run(h.t.Context(), h.stage.raw, []string{n.Name}, n.foreign)
			n.foreign = ""
		}
		waiting := map[string]<-chan outcome{}
		for id, p := range h.claims {
			if p.track == n && !p.dead {
				waiting[id] = p.of.waiting(p.Claim)
			}
		}
		for len(waiting) > 0 {
			h.wake(n)
			for id, answer := range waiting {
				select {
				case <-answer:
					if _, err := h.claims[id].of.session.Release(h.t.Context(), h.claims[id].Claim); err != nil {
						r.Fatalf("release: %v", err)
					}
					delete(h.claims, id)
					delete(waiting, id)
				default:
				}
			}
		}
		h.wake(n)
		if st := h.stage.look(h.t, n.Name); st.value != "" || len(st.line) > 0 || len(st.ill()) > 0 {
			r.Fatalf("everybody has left\n%s", st)
		}
	}
	clear(h.claims)
}

// wake ends the time of holders that are dead, and has somebody look.
func (h *history) wake(n *track) {
	for {
		st := h.stage.look(h.t, n.Name)
		alive := slices.ContainsFunc(st.held(), func(id string) bool { return h.claims[id] != nil && !h.claims[id].dead })
		if alive || st.value == "" && len(st.line) == 0 {
			return
		}
		if st.value != "" {
			h.remove(n)
		}
		kind := driver.Mutex
		if len(st.line) > 0 && st.field(st.line[0], 1) == "p" {
			kind = driver.Permit
		}
		c := driver.Claim{Name: n.Name, ID: driver.NewID(), Kind: kind, Weight: 1, Limit: 1}
		if kind == driver.Mutex {
			c.Weight, c.Limit = driver.All, driver.All
		}
		if g, err := h.actors[0].session.Acquire(h.t.Context(), c); err == nil && g.Held {
			_, _ = h.actors[0].session.Release(h.t.Context(), c)
		}
	}
}
