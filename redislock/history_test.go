package redislock_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/driver"
	rule "github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redislock"
)

// Several processes do everything that can be done, in any order, and others interfere. After every
// step the server is looked into: what stands there is sound, and as long as nobody interferes it
// is what the pure rule says.
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
