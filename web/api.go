package web

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/web/internal/hub"
)

// linesAnswer is a part of a list, as programs read it.
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

// apiLines answers GET /v1/lines.
func apiLines(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	b, sel, err := linesWanted(s, r, who)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), hub.ListLimit)
	defer cancel()
	snap, failure := b.List.Newest(ctx)
	switch {
	case failure != nil && (snap == nil || failure.Unsupported()):
		return lookProblem(failure.Err, who)
	case snap == nil:
		return problemOf("not-sent", "the list is not there yet: it is being read")
	}
	answer, err := listAnswer(b, snap, failure, sel)
	if err != nil {
		return err
	}
	return answerJSON(w, answer)
}

// linesWanted returns the part of a list that a request asks for.
func linesWanted(s *site, r *http.Request, who Principal) (b *hub.Hub, sel selection, err error) {
	p, err := paramsOf(r, true, "store", "prefix", "after", "limit", "sort")
	if err == nil {
		b, err = s.store(p, false)
	}
	if err == nil {
		sel, err = selectionOf(p, who)
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

// listAnswer returns a part of a list. Of one list each part is made once.
func listAnswer(b *hub.Hub, s *hub.Snapshot, f *hub.Failure, sel selection) (*linesAnswer, error) {
	key := fmt.Sprintf("json %t %q %q %d %q", sel.waiting, sel.prefix, sel.after, sel.limit, sel.who.Read)
	d, err := hub.Once(&s.Made, key, func() (*rendered, error) {
		d := &rendered{}
		var lines []listedLine
		if sel.waiting {
			lines = contended(b, s, sel, &d.part)
		} else {
			d.part = sel.of(s.Lines)
			for _, l := range d.part.lines {
				_, waited := b.History.Of(l.Name)
				lines = append(lines, listedOf(b, l, s.At, waited))
			}
		}
		var err error
		d.json, err = json.Marshal(append([]listedLine{}, lines...))
		d.sum = sumOf(&d.part, s.Partial)
		return d, err
	})
	if err != nil {
		return nil, err
	}
	a := &linesAnswer{
		sum:   d.sum,
		Store: b.Name, AsOf: *span(s.At, time.Now()), Names: d.names, Held: d.held, Waiting: d.waiting, Lines: d.json, Failure: failureOf(f, sel.who),
	}
	if d.more && !sel.waiting {
		a.Next = d.part.lines[len(d.part.lines)-1].Name
	}
	if s.Partial != nil {
		a.Partial = sel.who.reason(s.Partial)
	}
	return a, nil
}

// sumOf returns a number that differs where a follower is to be sent the list.
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

// nameWanted returns the name that a request asks for, if who may read it.
func nameWanted(s *site, r *http.Request, who Principal) (*hub.Hub, string, error) {
	p, err := paramsOf(r, true, "store", "name")
	if err != nil {
		return nil, "", err
	}
	b, err := s.store(p, false)
	if err != nil {
		return nil, "", err
	}
	name, err := p.name("name")
	if err == nil && !who.mayRead(name) {
		err = problemOf("forbidden", "%s may not read that name", who.label())
	}
	return b, name, err
}

// apiLine answers GET /v1/line.
func apiLine(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	b, name, err := nameWanted(s, r, who)
	if err != nil {
		return err
	}
	l, err := b.Store.Line(r.Context(), name)
	if err != nil {
		return lookProblem(err, reader)
	}
	return answerJSON(w, lineOf(b, l, time.Now()))
}

// historyAnswer is what this server saw of a name.
type historyAnswer struct {
	Store  string      `json:"store"`
	Name   string      `json:"name"`
	Since  time.Time   `json:"since"`     // when this server began
	Waited int64       `json:"waited_ms"` // by those whose wait has ended
	Events []hub.Event `json:"events"`    // the oldest first
}

// apiHistory answers GET /v1/history.
func apiHistory(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	b, name, err := nameWanted(s, r, who)
	if err != nil {
		return err
	}
	events, waited := b.History.Of(name)
	return answerJSON(w, historyAnswer{b.Name, name, b.History.Since, waited.Milliseconds(), append([]hub.Event{}, events...)})
}

// apiWatch answers GET /v1/watch: of a name, or of a part of the list.
func apiWatch(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	if !r.URL.Query().Has("name") {
		return watchLines(s, w, r, who)
	}
	b, name, err := nameWanted(s, r, who)
	if err != nil {
		return err
	}
	return s.streams.serve(w, r, who, func(m *hub.Mailbox) (leave func()) { return b.Names.Follow(name, m) }, func(s hub.State, who Principal) (*message, error) {
		switch {
		case !who.mayRead(name):
			return &message{"end", []byte(`{}`)}, nil
		case s.Failure != nil:
			return jsonMessage("gap", failureOf(s.Failure, who))
		}
		return jsonMessage("line", lineOf(b, s.Line.Line, time.Now()))
	})
}

// watchLines tells what GET /v1/lines would answer, whenever it has changed.
func watchLines(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	b, sel, err := linesWanted(s, r, who)
	if err != nil {
		return err
	}
	last, first := uint64(0), true
	return s.streams.serve(w, r, who, b.List.Follow, func(s hub.State, who Principal) (*message, error) {
		sel.who = who
		if s.Failure != nil {
			first = true // a client that was sent the gap is sent its end
			return jsonMessage("gap", failureOf(s.Failure, who))
		}
		answer, err := listAnswer(b, s.List, nil, sel)
		if err != nil || !first && last == answer.sum {
			return nil, err
		}
		last, first = answer.sum, false
		return jsonMessage("lines", answer)
	})
}

// breakBody is the body of POST /v1/break.
type breakBody struct {
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
func apiBreak(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	var body breakBody
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
	b, err := s.store(p, false)
	if err != nil {
		return err
	}
	q, err := breakRequestOf(b, p)
	if err != nil {
		return err
	}
	state, err := s.breaker.do(r, who, q)
	if err != nil {
		return err
	}
	return answerJSON(w, breakAnswer{state})
}
