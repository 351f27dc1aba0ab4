package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// wish is a break as somebody asks for it.
type wish struct {
	store, name, id string
	fence           uint64
	now             bool
	reason          string
}

// acts are the last breaks that this server has done. Somebody whose answer was lost asks again, and then the claim may be gone.
type acts struct {
	mu   sync.Mutex
	done []wish
}

const mostActs = 256

func (a *acts) add(w wish) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.done) == mostActs {
		a.done = a.done[1:]
	}
	a.done = append(a.done, w.claim())
}

func (a *acts) has(w wish) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.done {
		if d == w.claim() {
			return true
		}
	}
	return false
}

// claim is which claim is meant.
func (w wish) claim() wish { return wish{store: w.store, name: w.name, id: w.id, fence: w.fence} }

// breakLimit bounds a break. Whoever asked for it may go meanwhile: it is done all the same, and its outcome is in the log.
const breakLimit = 15 * time.Second

// breaks breaks a claim, if it still is the one that is meant. It returns marked if its owner has not let go yet, else broken.
// Whatever comes of it is in the log before it is answered.
func (h *Handler) breaks(r *http.Request, who Principal, w wish) (state string, err error) {
	if !h.life.Begin() {
		return "", problemOf("not-sent", "the server is closing")
	}
	defer h.life.Done()
	b := h.hub(w.store)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), breakLimit)
	defer cancel()
	var whose driver.Holder
	switch {
	case !who.mayBreak(w.name):
		err = problemOf("forbidden", "%s may not break that name", who.called())
	default:
		state, whose, err = h.breakClaim(ctx, b, who, w)
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
		slog.String("by", who.Name), slog.String("from", r.RemoteAddr), slog.String("store", w.store), slog.String("name", printable.Text(w.name)),
		slog.String("id", printable.Text(w.id)), slog.Uint64("fence", w.fence), slog.Bool("now", w.now), slog.String("reason", printable.Text(w.reason)),
		slog.String("owner", ownerWords(whose)), slog.String("outcome", outcome),
	}
	if err != nil {
		attrs = append(attrs, slog.String("err", printable.Text(err.Error())))
	}
	h.log.LogAttrs(ctx, slog.LevelInfo, "interlock web: break", attrs...)
	return state, err
}

// refused notes a break that somebody asks for who may break nothing. What he asks for is not read.
func (h *Handler) refused(r *http.Request, who Principal, err *problem) {
	h.log.LogAttrs(r.Context(), slog.LevelInfo, "interlock web: break",
		slog.String("by", who.Name), slog.String("from", r.RemoteAddr), slog.String("outcome", err.kind()), slog.Any("err", err))
}

// breakClaim asks the store for a break, between two looks at the line.
func (h *Handler) breakClaim(ctx context.Context, b *hub.Hub, who Principal, w wish) (state string, whose driver.Holder, err error) {
	l, err := b.Store.Line(ctx, w.name)
	if err != nil {
		return "", whose, lookProblem(err, reader)
	}
	whose, stands := w.in(l)
	if !stands {
		if h.acts.has(w) {
			return "broken", whose, nil
		}
		return "", whose, changedProblem(b, l, who, "no claim %s with token %d stands in that line: nothing was changed", w.id, w.fence)
	}
	err = b.Store.Break(ctx, w.name, w.id, w.fence, w.now)
	if err != nil && !errors.Is(err, driver.ErrRefused) {
		p := storeProblem(err)
		recordBreak(b, w, who, whose, p.kind())
		return "", whose, p
	}
	if err == nil {
		h.acts.add(w)
	}
	after, lookErr := b.Store.Line(ctx, w.name)
	if err != nil {
		if lookErr != nil {
			after = l
		}
		return "", whose, changedProblem(b, after, who, "%v", err)
	}
	state = "broken"
	if lookErr != nil && whose.Held && !w.now {
		state = "marked"
	}
	if lookErr == nil {
		if c, stands := w.in(after); stands && c.Broken {
			state = "marked"
		}
	}
	recordBreak(b, w, who, whose, state)
	return state, whose, nil
}

// in returns the claim that is meant.
func (w wish) in(l driver.Line) (h driver.Holder, stands bool) {
	for _, h := range l.Claims {
		if h.PublicID == w.id && h.Fence == w.fence {
			return h, true
		}
	}
	return driver.Holder{}, false
}

// record notes a break in the timeline.
func recordBreak(b *hub.Hub, w wish, who Principal, whose driver.Holder, outcome string) {
	e := hub.EventOf(hub.Broke, whose, time.Now())
	e.By, e.Now, e.Reason, e.Result = who.Name, w.now, w.reason, outcome
	b.History.Add(w.name, e)
}

// changed says that the claim is not what was meant, with the line as it is.
func changedProblem(b *hub.Hub, l driver.Line, who Principal, format string, args ...any) *problem {
	p := problemOf("changed", format, args...)
	if who.mayRead(l.Name) {
		v := lineOf(b, l, time.Now())
		p.Line, p.page = &v, address("line", "store", b.Name, "name", l.Name)
	}
	return p
}

// lookProblem is a look that failed, after which nothing was changed, as somebody is told.
func lookProblem(err error, who Principal) *problem {
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return problemOf("unsupported", "%s", who.told(err))
	case errors.Is(err, driver.ErrRefused):
		return problemOf("refused", "%s", who.told(err))
	}
	return problemOf("not-sent", "the store does not say how it stands: %s", who.told(err))
}
