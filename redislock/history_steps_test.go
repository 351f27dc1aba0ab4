package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/driver"
	rule "github.com/interlock-go/interlock/driver/line"
)

func (h *history) acquire(r *rapid.T) { h.enter(r, true) }

func (h *history) try(r *rapid.T) { h.enter(r, false) }

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
	for _, l := range renewal.Lost {
		lost[l.ID] = true
		if h.claims[l.ID] == nil || h.claims[l.ID].of != a {
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
