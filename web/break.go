package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// breakRequest is a break as somebody asks for it.
type breakRequest struct {
	hub    *hub.Hub
	name   string
	id     string // public
	fence  uint64
	now    bool
	reason string
}

// breakRequestOf reads which claim is meant, and how it is to be broken.
func breakRequestOf(b *hub.Hub, p params) (q breakRequest, err error) {
	q.hub = b
	if q.name, err = p.name("name"); err != nil {
		return q, err
	}
	if q.id, err = p.text("id", 128); err != nil {
		return q, err
	}
	if q.id == "" {
		return q, problemOf("bad-request", "no id: want the public id of the claim")
	}
	if q.fence, err = strconv.ParseUint(p["fence"], 10, 64); err != nil {
		return q, problemOf("bad-request", "fence %.50q: want the token of the claim, 0 where it has none", p["fence"])
	}
	now, err := p.oneOf("now", "0", "1")
	if err != nil {
		return q, err
	}
	q.now = now == "1"
	q.reason, err = p.text("reason", 256)
	return q, err
}

// claim returns which claim is meant, without how it is to be broken.
func (q breakRequest) claim() breakRequest {
	return breakRequest{hub: q.hub, name: q.name, id: q.id, fence: q.fence}
}

// in returns the claim that is meant, if it is in the line.
func (q breakRequest) in(l driver.Line) (c driver.Holder, ok bool) {
	for _, c := range l.Claims {
		if c.PublicID == q.id && c.Fence == q.fence {
			return c, true
		}
	}
	return driver.Holder{}, false
}

// breakLimit bounds a break. It goes on when the client has gone, and its outcome is in the log.
const breakLimit = 15 * time.Second

// breaker breaks claims, and logs every attempt.
type breaker struct {
	life *hub.Life
	log  *slog.Logger
	done recentBreaks
}

// do breaks a claim, if it still is the one that is meant. It returns "marked" if its owner has not
// let go yet, else "broken". The outcome is in the log before it returns.
func (k *breaker) do(r *http.Request, who Principal, q breakRequest) (state string, err error) {
	if !k.life.Begin() {
		return "", problemOf("not-sent", "the server is closing")
	}
	defer k.life.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), breakLimit)
	defer cancel()
	var whose driver.Holder
	switch {
	case !who.mayBreak(q.name):
		err = problemOf("forbidden", "%s may not break that name", who.label())
	default:
		state, whose, err = k.ask(ctx, who, q)
	}
	outcome := state
	if err != nil {
		outcome = "uncertain"
		var p *problem
		if errors.As(err, &p) {
			outcome = p.kind()
		}
	}
	attrs := []slog.Attr{
		slog.String("by", who.Name), slog.String("from", r.RemoteAddr), slog.String("store", q.hub.Name), slog.String("name", printable.Text(q.name)),
		slog.String("id", printable.Text(q.id)), slog.Uint64("fence", q.fence), slog.Bool("now", q.now), slog.String("reason", printable.Text(q.reason)),
		slog.String("owner", ownerWords(whose)), slog.String("outcome", outcome),
	}
	if err != nil {
		attrs = append(attrs, slog.String("err", printable.Text(err.Error())))
	}
	k.log.LogAttrs(ctx, slog.LevelInfo, "interlock web: break", attrs...)
	return state, err
}

// refused logs the request of somebody who may break nothing. What he asks for is not read.
func (k *breaker) refused(r *http.Request, who Principal, err *problem) {
	k.log.LogAttrs(r.Context(), slog.LevelInfo, "interlock web: break",
		slog.String("by", who.Name), slog.String("from", r.RemoteAddr), slog.String("outcome", err.kind()), slog.Any("err", err))
}

// ask asks the store for a break, between two looks at the line.
func (k *breaker) ask(ctx context.Context, who Principal, q breakRequest) (state string, whose driver.Holder, err error) {
	b := q.hub
	l, err := b.Store.Line(ctx, q.name)
	if err != nil {
		return "", whose, lookProblem(err, reader)
	}
	whose, ok := q.in(l)
	if !ok {
		if k.done.has(q) {
			return "broken", whose, nil
		}
		return "", whose, changedProblem(b, l, who, "no claim %s with token %d stands in that line: nothing was changed", q.id, q.fence)
	}
	err = b.Store.Break(ctx, q.name, q.id, q.fence, q.now)
	if err != nil && !errors.Is(err, driver.ErrRefused) {
		p := storeProblem(err)
		q.record(who, whose, p.kind())
		return "", whose, p
	}
	if err == nil {
		k.done.add(q)
	}
	after, lookErr := b.Store.Line(ctx, q.name)
	if err != nil {
		if lookErr != nil {
			after = l
		}
		return "", whose, changedProblem(b, after, who, "%v", err)
	}
	state = "broken"
	if lookErr != nil && whose.Held && !q.now {
		state = "marked"
	}
	if lookErr == nil {
		if c, ok := q.in(after); ok && c.Broken {
			state = "marked"
		}
	}
	q.record(who, whose, state)
	return state, whose, nil
}

// record adds the break to the history of the name.
func (q breakRequest) record(who Principal, whose driver.Holder, outcome string) {
	e := hub.EventOf(hub.Broke, whose, time.Now())
	e.By, e.Now, e.Reason, e.Result = who.Name, q.now, q.reason, outcome
	q.hub.History.Add(q.name, e)
}

// changedProblem says that the claim is not the one that was meant, with the line as it is.
func changedProblem(b *hub.Hub, l driver.Line, who Principal, format string, args ...any) *problem {
	p := problemOf("changed", format, args...)
	if who.mayRead(l.Name) {
		v := lineOf(b, l, time.Now())
		p.Line, p.page = &v, address("line", "store", b.Name, "name", l.Name)
	}
	return p
}

// mostBreaks is how many breaks are remembered.
const mostBreaks = 256

// recentBreaks are the last breaks that this server has done. A client that has lost the answer
// asks again, and then the claim may be gone.
type recentBreaks struct {
	mu   sync.Mutex
	done []breakRequest // the oldest first
}

func (a *recentBreaks) add(q breakRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.done) == mostBreaks {
		a.done = a.done[1:]
	}
	a.done = append(a.done, q.claim())
}

func (a *recentBreaks) has(q breakRequest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.done {
		if d == q.claim() {
			return true
		}
	}
	return false
}
