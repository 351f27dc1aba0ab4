package redislock_test

import (
	"strings"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/driver"
	rule "github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/redislock"
)

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
	if err := h.stage.raw.HDel(h.t.Context(), claims, "^").Err(); err != nil { // before that nobody ends, it says
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
		if channel := h.stage.look(h.t, p.Name).channel(p.ID); channel != "" {
			h.stage.reached(h.t, p.Name, channel, 0)
		}
	}
	h.actors[i] = h.stage.actorWith(h.t, historyTTL, redislock.Options{})
}
