package web

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// onLine is how many claims of a line a page has, unless all are wanted; linePatience how long it waits for the store.
const (
	onLine       = 100
	linePatience = time.Second
)

// linePage is the page of a name.
func (h *Handler) linePage(w http.ResponseWriter, r *http.Request, who Principal) error {
	b, p, err := h.aboutStore(r, "name", "all")
	if err != nil {
		return err
	}
	name, err := p.name("name")
	if err != nil {
		return err
	}
	if !who.mayRead(name) {
		return problemOf("forbidden", "%s may not read that name", who.called())
	}
	all, err := p.oneOf("all", "0", "1")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), linePatience)
	defer cancel()
	s := b.Names.Current(ctx, name)
	v := &linePageView{
		frame: h.frame(r, &who, printable.Text(name)), Shown: printable.Text(name), Key: printable.Text(b.Store.Key(name)), NamesHref: address("./", "store", b.Name),
	}
	v.within(h, b, "line")
	v.Live = address("live", "store", b.Name, "page", "line", "name", name, "all", p["all"])
	v.Soon = s.Line == nil && s.Failure != nil && !s.Failure.Unsupported()
	html, err := drawLine(b, name, s, who.mayBreak(name), all == "1")
	if err != nil {
		return err
	}
	v.Drawn = template.HTML(html) //nolint:gosec // made by a template
	return h.page(w, r, http.StatusOK, "line", v)
}

// linePageView is the page of a name.
type linePageView struct {
	frame
	Shown, Key, NamesHref string
	Drawn                 template.HTML
}

// lineView is what changes of it.
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

// eventView is an event as a page has it.
type eventView struct {
	Key, Class, Words string
	At                *moment
}

// drawLine returns what changes of the page of a name. Of one observation it is made once, for all who look.
func drawLine(b *hub.Hub, name string, s hub.State, breaks, all bool) ([]byte, error) {
	if s.Line == nil || s.Failure != nil {
		return lineHTML(b, name, s, breaks, all)
	}
	return hub.Once(&s.Line.Made, fmt.Sprint(breaks, all), func() ([]byte, error) { return lineHTML(b, name, s, breaks, all) })
}

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
	v.Sums = sumWords(events, waited)
	for _, e := range slices.Backward(events) {
		v.Events = append(v.Events, eventView{
			fmt.Sprintf("%d.%s.%s", e.At.UnixNano(), e.What, e.ID), map[string]string{hub.Marked: "broken", hub.Broke: "broken"}[e.What], eventWords(e), clockTime(e.At),
		})
	}
	var html bytes.Buffer
	err := made().templates.ExecuteTemplate(&html, "line-live", v)
	return html.Bytes(), err
}

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

// stateWords is a line in one sentence.
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

// sumWords is a timeline in one sentence.
func sumWords(events []hub.Event, waited time.Duration) string {
	grants := 0
	for _, e := range events {
		if e.What == hub.Granted {
			grants++
		}
	}
	if len(events) == 0 {
		return "Nothing yet: only what happens while somebody looks is seen."
	}
	return fmt.Sprintf("The last %d events, %d of them grants; %s of waiting have ended.", len(events), grants, spanWords(waited))
}

// eventWords returns an event in one sentence.
func eventWords(e hub.Event) string {
	who := ownerWords(driver.Holder{Owner: e.Owner})
	after := ""
	if e.Waited != nil {
		after = " after " + spanWords(time.Duration(*e.Waited)*time.Millisecond) + " of waiting"
	}
	var words string
	switch e.What {
	case hub.Waited:
		words = who + " waits"
	case hub.Granted:
		words = who + " got it" + after
		if e.Fence != "0" {
			words += ", with the token " + e.Fence
		}
	case hub.Marked:
		words = "it was taken away from " + who
	case hub.Gone:
		words = who + " has it no more"
		if e.Over {
			words += ": its time was over"
		}
	case hub.Left:
		words = who + " waits no more" + after
	case hub.Broke:
		words = cmp.Or(printable.Text(e.By), "somebody") + " broke the claim of " + who
		if e.Now {
			words += " at once"
		}
		if e.Reason != "" {
			words += " (" + printable.Text(e.Reason) + ")"
		}
		words += ": " + e.Result
	}
	return strings.TrimSpace(words) + " · " + e.ID
}
