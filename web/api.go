package web

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What programs are given.
const (
	mostLines  = 1000 // in one answer
	mostClaims = 50   // of a line in a list; /v1/line has all
)

// listedLine is a line in a list.
type listedLine struct {
	line
	More    int   `json:"more_claims,omitempty"` // beyond those that are here
	Waiting int   `json:"waiting"`               // claims
	Waits   int64 `json:"waiting_ms"`            // how long they have waited together
	Waited  int64 `json:"waited_ms"`             // how long those waited together whose wait this server saw end
}

// linesAnswer is a part of a list.
type linesAnswer struct {
	Store   string          `json:"store"`
	AsOf    int64           `json:"as_of_ms"` // the age of the list
	Names   int             `json:"names"`    // with the prefix, as held and waiting
	Held    int             `json:"held"`
	Waiting int             `json:"waiting"` // claims
	Lines   json.RawMessage `json:"lines"`
	Next    string          `json:"next,omitempty"`    // what after has to be for the rest
	Partial string          `json:"partial,omitempty"` // why there may be more
	Failure *failureAnswer  `json:"failure,omitempty"` // the store does not answer: this is old

	sum uint64 // differs where something else has happened; that claims were renewed is nothing
}

// failureAnswer is a store that does not answer.
type failureAnswer struct {
	Since  time.Time `json:"since"`
	Detail string    `json:"detail"`
}

func (f *failure) answer(who Principal) *failureAnswer {
	if f == nil {
		return nil
	}
	return &failureAnswer{f.since.UTC(), who.told(f.err)}
}

// apiLines answers GET /v1/lines.
func (h *Handler) apiLines(w http.ResponseWriter, r *http.Request, who Principal) error {
	b, sel, err := h.linesWanted(r, who)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), readingLimit)
	defer cancel()
	snap, failure := b.see(ctx)
	switch {
	case failure != nil && (snap == nil || isUnsupported(failure.err)):
		return lookProblem(failure.err, who)
	case snap == nil:
		return problemOf("not-sent", "the list is not there yet: it is being read")
	}
	answer, err := b.lines(snap, failure, sel)
	if err != nil {
		return err
	}
	return answerJSON(w, answer)
}

// linesWanted reads which part of a list is wanted.
func (h *Handler) linesWanted(r *http.Request, who Principal) (b *hub, sel selection, err error) {
	p, err := paramsOf(r, true, "store", "prefix", "after", "limit", "sort")
	if err == nil {
		b, err = h.meant(p, false)
	}
	if err == nil {
		sel, err = h.listSelection(p, who)
	}
	if err == nil {
		sel.limit, err = p.number("limit", onPage, 1, mostLines)
	}
	sort := ""
	if err == nil {
		sort, err = p.oneOf("sort", "name", "waiting")
	}
	sel.waiting = sort == "waiting"
	if err == nil && sel.waiting && sel.after != "" {
		err = problemOf("bad-request", "after goes with sort=name: by waiting there are the first ones only")
	}
	return b, sel, err
}

// lines returns a part of a list. Of one list each part is made once.
func (b *hub) lines(s *snapshot, f *failure, sel selection) (*linesAnswer, error) {
	s.drawn.mu.Lock()
	defer s.drawn.mu.Unlock()
	key := fmt.Sprintf("json %t %q %q %d %q", sel.waiting, sel.prefix, sel.after, sel.limit, sel.who.Read)
	d := s.drawn.made[key]
	if d == nil {
		d = &drawing{}
		var lines []listedLine
		if sel.waiting {
			lines = b.contended(s, sel, &d.part)
		} else {
			d.part = sel.of(s.lines)
			for _, l := range d.part.lines {
				_, waited := b.history.of(l.Name)
				lines = append(lines, b.listed(l, s.at, waited))
			}
		}
		var err error
		if d.json, err = json.Marshal(append([]listedLine{}, lines...)); err != nil {
			return nil, err
		}
		d.sum = sumOf(&d.part, s.partial)
		s.drawn.keep(key, d)
	}
	a := &linesAnswer{
		sum:   d.sum,
		Store: b.store.Name, AsOf: *span(s.at, time.Now()), Names: d.names, Held: d.held, Waiting: d.waiting, Lines: d.json, Failure: f.answer(sel.who),
	}
	if d.more && !sel.waiting {
		a.Next = d.part.lines[len(d.part.lines)-1].Name
	}
	if s.partial != nil {
		a.Partial = sel.who.told(s.partial)
	}
	return a, nil
}

// sumOf is a number that differs where a follower has something to hear.
func sumOf(p *part, partial error) uint64 {
	sum := fnv.New64a()
	fmt.Fprint(sum, p.names, p.held, p.waiting, p.more, partial)
	for _, l := range p.lines {
		fmt.Fprint(sum, l.Name, "\x00")
		for _, h := range l.Claims {
			fmt.Fprint(sum, h.PublicID, h.Held, h.Broken, h.Fence, h.Passes, "\x00")
		}
	}
	return sum.Sum64()
}

// listed is a line in a list.
func (b *hub) listed(l driver.Line, now time.Time, waited time.Duration) listedLine {
	v := listedLine{Waited: waited.Milliseconds()}
	for _, h := range l.Claims {
		if !h.Held {
			v.Waiting++
			if ms := span(h.Since, now); ms != nil {
				v.Waits += *ms
			}
		}
	}
	if v.More = len(l.Claims) - mostClaims; v.More > 0 {
		l.Claims = l.Claims[:mostClaims]
	}
	v.More = max(v.More, 0)
	v.line = b.view(l, now)
	return v
}

// nameWanted reads which name is wanted.
func (h *Handler) nameWanted(r *http.Request, who Principal) (*hub, string, error) {
	p, err := paramsOf(r, true, "store", "name")
	if err != nil {
		return nil, "", err
	}
	b, err := h.meant(p, false)
	if err != nil {
		return nil, "", err
	}
	name, err := p.name("name")
	if err == nil && !who.mayRead(name) {
		err = problemOf("forbidden", "%s may not read that name", who.called())
	}
	return b, name, err
}

// apiLine answers GET /v1/line.
func (h *Handler) apiLine(w http.ResponseWriter, r *http.Request, who Principal) error {
	b, name, err := h.nameWanted(r, who)
	if err != nil {
		return err
	}
	l, err := b.ask(r.Context(), name)
	if err != nil {
		return lookProblem(err, reader)
	}
	return answerJSON(w, b.view(l, time.Now()))
}

// historyAnswer is what this server saw of a name.
type historyAnswer struct {
	Store  string    `json:"store"`
	Name   string    `json:"name"`
	Since  time.Time `json:"since"`     // when this server began
	Waited int64     `json:"waited_ms"` // by those whose wait has ended
	Events []event   `json:"events"`    // the oldest first
}

// apiHistory answers GET /v1/history.
func (h *Handler) apiHistory(w http.ResponseWriter, r *http.Request, who Principal) error {
	b, name, err := h.nameWanted(r, who)
	if err != nil {
		return err
	}
	events, waited := b.history.of(name)
	return answerJSON(w, historyAnswer{b.store.Name, name, b.history.since, waited.Milliseconds(), append([]event{}, events...)})
}

// apiWatch answers GET /v1/watch: of a name, or of a part of the list.
func (h *Handler) apiWatch(w http.ResponseWriter, r *http.Request, who Principal) error {
	if !r.URL.Query().Has("name") {
		return h.watchLines(w, r, who)
	}
	b, name, err := h.nameWanted(r, who)
	if err != nil {
		return err
	}
	return h.stream(w, r, who, func(m *mailbox) (leave func()) { return b.join(name, m) }, func(s state, who Principal) (*message, error) {
		switch {
		case !who.mayRead(name):
			return &message{"end", []byte(`{}`)}, nil
		case s.failure != nil:
			return jsonMessage("gap", s.failure.answer(who))
		}
		return jsonMessage("line", b.view(s.line.Line, time.Now()))
	})
}

// watchLines tells what GET /v1/lines would answer, whenever it has changed.
func (h *Handler) watchLines(w http.ResponseWriter, r *http.Request, who Principal) error {
	b, sel, err := h.linesWanted(r, who)
	if err != nil {
		return err
	}
	last, first := uint64(0), true
	return h.stream(w, r, who, b.joinList, func(s state, who Principal) (*message, error) {
		sel.who = who
		if s.failure != nil {
			first = true // so that whoever heard of it hears that it is over
			return jsonMessage("gap", s.failure.answer(who))
		}
		answer, err := b.lines(s.snap, nil, sel)
		if err != nil || !first && last == answer.sum {
			return nil, err
		}
		last, first = answer.sum, false
		return jsonMessage("lines", answer)
	})
}

// breakRequest is the body of POST /v1/break.
type breakRequest struct {
	Store  string  `json:"store"`
	Name   string  `json:"name"`
	ID     string  `json:"id"`
	Fence  *string `json:"fence"`
	Now    bool    `json:"now"`
	Reason string  `json:"reason"`
}

// breakAnswer says what became of a claim.
type breakAnswer struct {
	State string `json:"state"` // marked, broken
}

// apiBreak answers POST /v1/break.
func (h *Handler) apiBreak(w http.ResponseWriter, r *http.Request, who Principal) error {
	var body breakRequest
	if err := jsonOf(r, &body, "store", "name", "id", "fence", "now", "reason"); err != nil {
		return err
	}
	if body.Fence == nil {
		return problemOf("bad-request", `want {"store", "name", "id", "fence", "now", "reason"}, of which the last two may be left out, and store where there is one; fence is a string`)
	}
	p := params{"name": body.Name, "id": body.ID, "fence": *body.Fence, "reason": body.Reason, "now": strconv.Itoa(map[bool]int{true: 1}[body.Now])}
	if body.Store != "" {
		p["store"] = body.Store
	}
	wish, err := h.wished(p)
	if err != nil {
		return err
	}
	state, err := h.breaks(r, who, wish)
	if err != nil {
		return err
	}
	return answerJSON(w, breakAnswer{state})
}
