package mysqllock

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/driver"
	rule "github.com/interlock-go/interlock/driver/line"
)

// The rule is written twice: in Go, where every store is compared with it, and in the schema. Whatever is done in whatever order, by
// connections of whatever settings, what stands in the row is what package line says.
func TestRandomHistory(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	root := pool(t, s, nil)
	all := []map[string]string{
		nil,
		{"autocommit": "0", "tx_isolation": "'SERIALIZABLE'", "time_zone": "'+05:00'"},
		{"sql_mode": "'ANSI,NO_BACKSLASH_ESCAPES,TRADITIONAL,PIPES_AS_CONCAT'", "tx_isolation": "'REPEATABLE-READ'"},
		{"autocommit": "0", "sql_mode": "''"},
	}
	pools := make([]*sql.DB, len(all))
	for i := range pools {
		pools[i] = pool(t, s, all[i])
	}
	runs := 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		h := &history{t: t, root: root, pools: pools}
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
			h.end(r, i)
		}
		h.check(r)
	})
	for i, db := range pools {
		rows, err := asks(t.Context(), db, "select @@in_transaction, @@autocommit, @@tx_isolation, @@innodb_lock_wait_timeout")
		want := []string{"0", "1", "REPEATABLE-READ", "50"}
		if all[i]["autocommit"] != "" {
			want[1] = "0"
		}
		if i == 1 {
			want[2] = "SERIALIZABLE"
		}
		if err != nil || !slices.Equal(rows[0], want) {
			t.Errorf("a connection is left with %v, %v; want %v", rows, err, want)
		}
	}
}

// history is one run, on names of its own.
type history struct {
	t        *testing.T
	root     *sql.DB
	pools    []*sql.DB
	sessions [3]*client
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
	h.sessions[i] = opens(h.t, h.pools[rapid.IntRange(0, len(h.pools)-1).Draw(r, "pool")])
}

// end closes a session, which leaves every line.
func (h *history) end(r *rapid.T, i int) {
	h.sessions[i].close(rapid.Bool().Draw(r, "everywhere"))
	h.claims = slices.DeleteFunc(h.claims, func(p *place) bool { return p.of == i })
	for _, l := range h.names {
		l.Drop(func(c rule.Claim) bool { return c.Session == h.sessions[i].id })
		settle(l)
	}
}

func (h *history) close(r *rapid.T) {
	i := rapid.IntRange(0, 2).Draw(r, "session")
	h.end(r, i)
	h.open(r, i)
}

// expire has a session's time be over, which everybody sees who looks.
func (h *history) expire(r *rapid.T) {
	i := rapid.IntRange(0, 2).Draw(r, "session")
	s := h.sessions[i]
	execute(h.t, h.root, "update interlock_session set valid_until = 0 where id = ?", s.id)
	h.open(r, i)
	for _, l := range h.names { // somebody looks
		kind := driver.Mutex
		if len(l.Claims) > 0 && l.Claims[0].Kind == driver.Permit {
			kind = driver.Permit
		}
		c := h.claim(r, l.Name, kind)
		c.Queue = false
		a := h.sessions[i].turn(l.Name, nil, &c)
		l.Drop(func(c rule.Claim) bool { return c.Session == s.id })
		settle(l)
		if fits := l.Fits(rule.New("", c)); fits != a.Held {
			r.Fatalf("a try was held: %v; the rule says %v: %+v", a.Held, fits, l.Claims)
		}
		if a.Held {
			h.sessions[i].turn(l.Name, &c, nil)
		}
	}
	if _, alive := s.renew(); alive {
		r.Fatal("a session whose time was over is renewed")
	}
	s.close(false)
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
	a := h.sessions[i].turn(l.Name, nil, &c)
	joins := rule.New(h.sessions[i].id, c)
	if l.Admits(joins) != nil {
		if a.state != 5 {
			r.Fatalf("%v where others stand whom it does not go with: %+v", kind, a)
		}
		return
	}
	if !c.Queue && !l.Fits(joins) {
		if a.state != 0 || a.Holder == nil || a.Holder.PublicID != driver.PublicID(l.Claims[0].ID) {
			r.Fatalf("a try that does not fit: %+v; the rule says %+v", a, l.Claims)
		}
		return
	}
	l.Join(joins, time.Time{})
	settle(l)
	p := &place{Claim: c, of: i, line: l}
	h.claims = append(h.claims, p)
	h.told(r, p, a)
}

// told compares an answer with the rule.
func (h *history) told(r *rapid.T, p *place, g answer) {
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
	a := h.sessions[p.of].turn(p.Name, nil, &p.Claim)
	if i := p.line.Find(p.ID); i < 0 || p.line.Claims[i].Broken {
		if a.state != 3 {
			r.Fatalf("a claim that was broken: %+v", a)
		}
		return
	}
	h.told(r, p, a)
}

func (h *history) release(r *rapid.T) {
	p := h.some(r)
	a := h.sessions[p.of].turn(p.Name, &p.Claim, nil)
	_, was := p.line.Leave(p.ID)
	if a.was != was {
		r.Fatalf("released: was held %v; the rule says %v", a.was, was)
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
	s := h.sessions[p.of]
	a := s.turn(p.Name, &p.Claim, &next)
	_, was := p.line.Leave(p.ID)
	h.claims = slices.DeleteFunc(h.claims, func(other *place) bool { return other == p })
	if a.was != was {
		r.Fatalf("requeue: was held %v; the rule says %v", a.was, was)
	}
	joins := rule.New(s.id, next)
	if p.line.Admits(joins) != nil { // old was gone, and others stand there
		settle(p.line)
		if a.state != 5 {
			r.Fatalf("requeue: %+v where others stand whom it does not go with", a)
		}
		return
	}
	p.line.Join(joins, time.Time{})
	settle(p.line)
	q := &place{Claim: next, of: p.of, line: p.line}
	h.claims = append(h.claims, q)
	h.told(r, q, a)
}

func (h *history) renew(r *rapid.T) {
	i := rapid.IntRange(0, 2).Draw(r, "session")
	all, alive := h.sessions[i].renew()
	if !alive {
		r.Fatal("the session is over")
	}
	for _, p := range h.claims {
		at := p.line.Find(p.ID)
		if lost := at < 0 || p.line.Claims[at].Broken; p.of == i && lost != all[p.ID] {
			r.Fatalf("%v is lost: %v; the rule says %v", p.Kind, !lost, lost)
		}
	}
}

func (h *history) breaks(r *rapid.T) {
	p, now := h.some(r), rapid.Bool().Draw(r, "now")
	fence := uint64(0)
	for _, c := range shown(h.t, h.root, p.Name).Claims {
		if c.PublicID == driver.PublicID(p.ID) {
			fence = c.Fence
		}
	}
	i := p.line.Find(p.ID)
	f := h.sessions[0].must(fmt.Sprintf("call interlock_break(x'%x', '%s', %d, %t)", p.Name, driver.PublicID(p.ID), fence, now))
	if there := i >= 0; there != (f[0] == "t") {
		r.Fatalf("break: %v; it is there: %v", f, there)
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
		got := shown(h.t, h.root, l.Name)
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
