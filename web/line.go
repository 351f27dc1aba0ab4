package web

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
	"github.com/interlock-go/interlock/web/internal/hub"
)

const (
	onLine       = 100         // claims of a line that a page has, unless it is asked for all
	linePatience = time.Second // how long a page waits for the store
)

// linePage answers by the page of a name.
func linePage(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	b, p, err := s.aboutStore(r, "name", "all")
	if err != nil {
		return err
	}
	name, err := p.name("name")
	if err != nil {
		return err
	}
	if !who.mayRead(name) {
		return problemOf("forbidden", "%s may not read that name", who.label())
	}
	all, err := p.oneOf("all", "0", "1")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), linePatience)
	defer cancel()
	now := b.Names.Current(ctx, name)
	v := &linePageView{
		frame: s.frame(r, &who, printable.Text(name)), Shown: printable.Text(name), Key: printable.Text(b.Store.Key(name)), NamesHref: address("./", "store", b.Name),
	}
	v.within(s.hubs, b, "line")
	v.Live = address("live", "store", b.Name, "page", "line", "name", name, "all", p["all"])
	v.Soon = now.Line == nil && now.Failure != nil && !now.Failure.Unsupported()
	html, err := renderLine(b, name, now, who.mayBreak(name), all == "1")
	if err != nil {
		return err
	}
	v.Rendered = template.HTML(html) //nolint:gosec // made by a template
	return s.page(w, http.StatusOK, "line", v)
}

// linePageView is the page of a name.
type linePageView struct {
	frame
	Shown, Key, NamesHref string
	Rendered              template.HTML
}

// lineView is the part of that page that changes.
type lineView struct {
	Read, Polled, Breaks bool
	Failure              *failureView
	State                string
	Now                  int64
	At, Since            *moment
	Here                 string
	Claims               []claimView
	More, AllHref        string
	Sums                 string
	Events               []eventView
}

// claimView is a claim as a page has it.
type claimView struct {
	ID, Print             string
	Owner, Note           string
	Place                 string
	Class, State, Kind    string
	Since, Until          *moment
	Token, Passes         string
	BreakHref, BreakWords string
}

// renderLine returns the part of the page of a name that changes, as HTML. Of one observation it is
// made once for all viewers.
func renderLine(b *hub.Hub, name string, s hub.State, breaks, all bool) ([]byte, error) {
	if s.Line == nil || s.Failure != nil {
		return lineHTML(b, name, s, breaks, all)
	}
	return hub.Once(&s.Line.Made, fmt.Sprint(breaks, all), func() ([]byte, error) { return lineHTML(b, name, s, breaks, all) })
}

// lineHTML is renderLine without a memo.
func lineHTML(b *hub.Hub, name string, s hub.State, breaks, all bool) ([]byte, error) {
	now := time.Now()
	v := &lineView{
		Breaks: breaks, Failure: failureViewOf(s.Failure, reader), Now: now.UnixMilli(), Since: clockTime(b.History.Since),
		Here: address("line", "store", b.Name, "name", name), AllHref: address("line", "store", b.Name, "name", name, "all", "1"),
	}
	v.Polled = !b.Store.Watches() && !s.Failure.Unsupported()
	if s.Line != nil {
		claims := s.Line.Claims
		v.Read, v.State, v.At = true, stateWords(claims, now), ago(s.Line.At, now)
		if more := len(claims) - onLine; more > 0 && !all {
			claims, v.More = claims[:onLine], numberWords(more)
		}
		for i, h := range claims {
			v.Claims = append(v.Claims, claimViewOf(b, name, i, h, now))
		}
	}
	events, waited := b.History.Of(name)
	v.Sums, v.Events = sumWords(events, waited), timelineOf(events)
	var html bytes.Buffer
	err := made().templates.ExecuteTemplate(&html, "line-live", v)
	return html.Bytes(), err
}

// claimViewOf returns claim number i of a line as a page has it.
func claimViewOf(b *hub.Hub, name string, i int, h driver.Holder, now time.Time) claimView {
	v := claimView{
		ID: h.PublicID, Owner: ownerWords(h), Note: printable.Text(h.Note), Place: strconv.Itoa(i + 1), State: stateOf(h), Kind: kindWords(h),
		Since: ago(h.Since, now), Until: ahead(h.Until, now), Token: "–", Passes: strconv.Itoa(h.Passes),
		BreakHref:  address("break", "store", b.Name, "name", name, "id", h.PublicID, "fence", token(h.Fence)),
		BreakWords: "Break…",
	}
	v.Class = map[string]string{"holds": "held", "waits": "waits", "broken": "broken"}[v.State]
	if h.Fence != 0 {
		v.Token = token(h.Fence)
	}
	if !h.Held {
		v.BreakWords = "Remove…"
	}
	sum := fnv.New64a()
	fmt.Fprint(sum, v.Owner, "\x00", v.Note, "\x00", v.Place, v.State, v.Kind, v.Since.ms(), v.Until.ms(), v.Token, v.Passes)
	v.Print = strconv.FormatUint(sum.Sum64(), 36)
	return v
}

// stateWords returns the state of a line as a sentence.
func stateWords(claims []driver.Holder, now time.Time) string {
	var holders []string
	wait := 0
	var first driver.Holder
	for _, h := range claims {
		switch {
		case !h.Held:
			wait++
		default:
			if len(holders) == 0 {
				first = h
			}
			holders = append(holders, ownerWords(h))
		}
	}
	words := "Nobody holds it"
	switch {
	case len(holders) == 1 && first.Broken:
		words = "Taken away from " + holders[0] + ", who has not let go yet"
	case len(holders) == 1:
		words = "Held by " + holders[0]
	case len(holders) > 1:
		words = "Held by " + numberWords(len(holders))
	}
	switch wait {
	case 0:
		return words + "; nobody waits"
	case 1:
		return words + "; one waits"
	}
	return words + "; " + numberWords(wait) + " wait"
}
