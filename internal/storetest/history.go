package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/driver"
	rule "github.com/interlock-go/interlock/driver/line"
)

// History does whatever users may do, in whatever order, each session over one of the drivers: what stands in the store is what package line
// says. The rule is written twice: in Go, and in the schema of a database. Expire has the time of a session be over in the database.
func History(t *testing.T, drivers []driver.Driver, expire func(session string)) {
	t.Helper()
	runs := 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		h := &history{t: t, drivers: drivers, ended: expire}
		for i, what := range []string{"locks", "permits"} {
			h.names[i] = &rule.Line{Name: fmt.Sprintf("%s/%d\x00'\"\\", what, runs)}
		}
		for i := range h.sessions {
			h.open(r, i)
		}
		r.Repeat(map[string]func(*rapid.T){
			"acquire": h.acquire, "again": h.again, "release": h.release, "leave": h.release, "requeue": h.requeue,
			"renew": h.renew, "break": h.breaks, "close": h.close, "expire": h.expire, "": h.check,
		})
		for i := range h.sessions {
			h.end(i)
		}
		h.check(r)
	})
}

// history is one run, on names of its own.
type history struct {
	t        *testing.T
	drivers  []driver.Driver
	ended    func(id string)
	sessions [3]driver.Session
	ids      [3]string
	names    [2]*rule.Line
	claims   []*place // that nobody has released
	last     [2]uint64
}

// place is a claim and whose it is.
type place struct {
	driver.Claim
	of    int
	line  *rule.Line
	fence uint64
}

func (h *history) open(r *rapid.T, i int) {
	h.ids[i] = driver.NewID()
	d := h.drivers[rapid.IntRange(0, len(h.drivers)-1).Draw(r, "driver")]
	s, err := d.Open(h.t.Context(), driver.Spec{ID: h.ids[i], TTL: time.Hour})
	if err != nil {
		h.t.Fatal(err)
	}
	h.sessions[i] = s
}

// end closes a session, which leaves every line.
func (h *history) end(i int) {
	if err := h.sessions[i].Close(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.claims = slices.DeleteFunc(h.claims, func(p *place) bool { return p.of == i })
	for _, l := range h.names {
		l.Drop(func(c rule.Claim) bool { return c.Session == h.ids[i] })
		settle(l)
	}
}

func (h *history) close(r *rapid.T) {
	i := rapid.IntRange(0, 2).Draw(r, "session")
	h.end(i)
	h.open(r, i)
}

// expire has a session's time be over, which everybody sees who looks.
func (h *history) expire(r *rapid.T) {
	i := rapid.IntRange(0, 2).Draw(r, "session")
	h.ended(h.ids[i])
	s, id := h.sessions[i], h.ids[i]
	h.open(r, i)
	for _, l := range h.names { // somebody looks
		kind := driver.Mutex
		if len(l.Claims) > 0 && l.Claims[0].Kind == driver.Permit {
			kind = driver.Permit
		}
		c := h.claim(r, l.Name, kind)
		c.Queue = false
		g, err := h.sessions[i].Acquire(h.t.Context(), c)
		if err != nil {
			r.Fatalf("look: %v", err)
		}
		l.Drop(func(c rule.Claim) bool { return c.Session == id })
		settle(l)
		if fits := l.Fits(rule.New("", c)); fits != g.Held {
			r.Fatalf("a try was held: %v; the rule says %v: %+v", g.Held, fits, l.Claims)
		}
		if g.Held {
			if _, err := h.sessions[i].Release(h.t.Context(), c); err != nil {
				r.Fatal(err)
			}
		}
	}
	if _, err := s.Renew(h.t.Context()); !errors.Is(err, driver.ErrSessionLost) {
		r.Fatalf("Renew of a session whose time was over: %v", err)
	}
	if err := s.Close(h.t.Context()); err != nil {
		r.Fatal(err)
	}
	h.claims = slices.DeleteFunc(h.claims, func(p *place) bool { return p.of == i })
}

func settle(l *rule.Line) {
	_, _ = l.Settle(time.Time{}, func(stored uint64, _ time.Time) (uint64, uint64, error) { return stored + 1, stored + 1, nil })
}

func (h *history) claim(r *rapid.T, name string, kind driver.Kind) driver.Claim {
	c := driver.Claim{Name: name, ID: driver.NewID(), Kind: kind, Weight: 1, Limit: driver.All, Queue: rapid.IntRange(0, 3).Draw(r, "queue") > 0}
	switch kind {
	case driver.Mutex, driver.Write:
		c.Weight = driver.All
	case driver.Permit:
		c.Limit = rapid.IntRange(1, 5).Draw(r, "limit")
		c.Weight = rapid.IntRange(1, c.Limit).Draw(r, "weight")
	}
	return c
}

func (h *history) acquire(r *rapid.T) {
	i, n := rapid.IntRange(0, 2).Draw(r, "session"), rapid.IntRange(0, 1).Draw(r, "name")
	kind := rapid.SampledFrom([]driver.Kind{driver.Mutex, driver.Read, driver.Read, driver.Write}).Draw(r, "kind")
	if (n == 1) != (rapid.IntRange(0, 19).Draw(r, "misfit") == 0) {
		kind = driver.Permit
	}
	l := h.names[n]
	c := h.claim(r, l.Name, kind)
	g, err := h.sessions[i].Acquire(h.t.Context(), c)
	joins := rule.New(h.ids[i], c)
	if l.Admits(joins) != nil {
		if !errors.Is(err, driver.ErrName) {
			r.Fatalf("%v where others stand whom it does not go with: %+v, %v; want %v", kind, g, err, driver.ErrName)
		}
		return
	}
	if err != nil {
		r.Fatalf("acquire: %v", err)
	}
	if !c.Queue && !l.Fits(joins) {
		if g.Held || g.Holder == nil || g.Holder.PublicID != driver.PublicID(l.Claims[0].ID) {
			r.Fatalf("a try that does not fit: %+v; the rule says %+v", g, l.Claims)
		}
		return
	}
	l.Join(joins, time.Time{})
	settle(l)
	p := &place{Claim: c, of: i, line: l}
	h.claims = append(h.claims, p)
	h.told(r, p, g)
}

// told compares an answer with the rule.
func (h *history) told(r *rapid.T, p *place, g driver.Grant) {
	if held := p.line.Claims[p.line.Find(p.ID)].Held; g.Held != held {
		r.Fatalf("held: %v; the rule says %v: %+v", g.Held, held, p.line.Claims)
	}
	if !g.Held || !p.Kind.Exclusive() {
		return
	}
	n := slices.Index(h.names[:], p.line)
	switch {
	case p.fence == 0 && g.Fence < h.last[n]+driver.Stride:
		r.Fatalf("token %d after %d", g.Fence, h.last[n])
	case p.fence != 0 && g.Fence != p.fence:
		r.Fatalf("token %d, and before for the same claim %d", g.Fence, p.fence)
	}
	p.fence, h.last[n] = g.Fence, max(h.last[n], g.Fence)
}

func (h *history) some(r *rapid.T) *place {
	if len(h.claims) == 0 {
		r.Skip("nobody stands anywhere")
	}
	return h.claims[rapid.IntRange(0, len(h.claims)-1).Draw(r, "claim")]
}

func (h *history) again(r *rapid.T) {
	p := h.some(r)
	g, err := h.sessions[p.of].Acquire(h.t.Context(), p.Claim)
	if i := p.line.Find(p.ID); i < 0 || p.line.Claims[i].Broken {
		if !errors.Is(err, driver.ErrBroken) {
			r.Fatalf("a claim that was broken: %+v, %v; want %v", g, err, driver.ErrBroken)
		}
		return
	}
	if err != nil {
		r.Fatalf("acquire again: %v", err)
	}
	h.told(r, p, g)
}

func (h *history) release(r *rapid.T) {
	p := h.some(r)
	held, err := h.sessions[p.of].Release(h.t.Context(), p.Claim)
	h.left(r, p, held, err)
}

func (h *history) left(r *rapid.T, p *place, held bool, err error) {
	_, was := p.line.Leave(p.ID)
	if err != nil || held != was {
		r.Fatalf("released: was held %v, %v; the rule says %v", held, err, was)
	}
	settle(p.line)
	h.claims = slices.DeleteFunc(h.claims, func(other *place) bool { return other == p })
}

func (h *history) requeue(r *rapid.T) {
	p := h.some(r)
	kind := rapid.SampledFrom([]driver.Kind{driver.Mutex, driver.Read, driver.Write}).Draw(r, "kind")
	if p.Kind == driver.Permit {
		kind = driver.Permit
	}
	next := h.claim(r, p.Name, kind)
	next.Queue = true
	g, held, err := h.sessions[p.of].(driver.Requeuer).Requeue(h.t.Context(), p.Claim, next)
	_, was := p.line.Leave(p.ID)
	h.claims = slices.DeleteFunc(h.claims, func(other *place) bool { return other == p })
	joins := rule.New(h.ids[p.of], next)
	if p.line.Admits(joins) != nil { // old was gone, and others stand there
		settle(p.line)
		if !errors.Is(err, driver.ErrName) {
			r.Fatalf("requeue: %v; want %v", err, driver.ErrName)
		}
		for _, c := range []driver.Claim{p.Claim, next} {
			if _, err := h.sessions[p.of].Release(h.t.Context(), c); err != nil {
				r.Fatal(err)
			}
		}
		return
	}
	if err != nil || held != was {
		r.Fatalf("requeue: was held %v, %v; the rule says %v", held, err, was)
	}
	p.line.Join(joins, time.Time{})
	settle(p.line)
	q := &place{Claim: next, of: p.of, line: p.line}
	h.claims = append(h.claims, q)
	h.told(r, q, g)
}

func (h *history) renew(r *rapid.T) {
	i := rapid.IntRange(0, 2).Draw(r, "session")
	renewal, err := h.sessions[i].Renew(h.t.Context())
	if err != nil {
		r.Fatalf("renew: %v", err)
	}
	for _, p := range h.claims {
		at := p.line.Find(p.ID)
		named := slices.IndexFunc(renewal.Lost, func(l driver.Loss) bool { return l.ID == p.ID })
		if lost := at < 0 || p.line.Claims[at].Broken; p.of == i && lost != (named >= 0) {
			r.Fatalf("%v is lost: %v; the rule says %v", p.Kind, !lost, lost)
		}
		if p.of == i && at >= 0 && named >= 0 && !errors.Is(renewal.Lost[named].Err, driver.ErrBroken) {
			r.Fatalf("%v is broken, and is lost because %v", p.Kind, renewal.Lost[named].Err)
		}
	}
}

func (h *history) breaks(r *rapid.T) {
	p, now := h.some(r), rapid.Bool().Draw(r, "now")
	line, err := h.drivers[0].(driver.Inspector).Line(h.t.Context(), p.Name)
	if err != nil {
		r.Fatal(err)
	}
	fence := uint64(0)
	for _, c := range line.Claims {
		if c.PublicID == driver.PublicID(p.ID) {
			fence = c.Fence
		}
	}
	i := p.line.Find(p.ID)
	err = h.drivers[0].(driver.Inspector).Break(h.t.Context(), p.Name, driver.PublicID(p.ID), fence, now)
	if there := i >= 0; there != (err == nil) || !there && !errors.Is(err, driver.ErrRefused) {
		r.Fatalf("break: %v; it is there: %v", err, there)
	}
	if i >= 0 {
		if _, err := p.line.Break(driver.PublicID(p.ID), p.line.Claims[i].Fence, now); err != nil {
			r.Fatal(err)
		}
		settle(p.line)
	}
}

// check compares what stands in the database with the rule.
func (h *history) check(r *rapid.T) {
	type stands struct {
		id           string
		held, broken bool
	}
	for _, l := range h.names {
		got, err := h.drivers[0].(driver.Inspector).Line(h.t.Context(), l.Name)
		if err != nil {
			r.Fatal(err)
		}
		var is, should []stands
		for _, c := range got.Claims {
			is = append(is, stands{c.PublicID, c.Held, c.Broken})
		}
		for _, c := range l.Claims {
			should = append(should, stands{driver.PublicID(c.ID), c.Held, c.Broken})
		}
		if !slices.Equal(is, should) {
			r.Fatalf("%s: there stand %+v\nthe rule says %+v", l.Name, is, should)
		}
	}
}
