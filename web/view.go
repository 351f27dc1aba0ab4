package web

import (
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// What programs are given.
const (
	mostLines  = 1000 // in one answer
	mostClaims = 50   // of a line in a list; /v1/line has all
)

// line is a line as programs read it, like that of the command's --json. Tokens are strings, since
// they may exceed what a JavaScript number carries.
type line struct {
	Name   string  `json:"name"`
	Key    string  `json:"key"`   // where the store keeps it
	Fence  string  `json:"fence"` // the highest token so far
	Claims []claim `json:"claims"`
}

// claim is a claim as programs read it. It has no secret.
type claim struct {
	ID      string       `json:"id"`
	State   string       `json:"state"` // holds, waits, broken
	Kind    string       `json:"kind"`
	Weight  int          `json:"weight"`
	Limit   int          `json:"limit"`
	Owner   driver.Owner `json:"owner"`
	Note    string       `json:"note,omitempty"`
	Since   *time.Time   `json:"since,omitempty"` // by the store's clock
	Until   *time.Time   `json:"until,omitempty"`
	Age     *int64       `json:"age_ms,omitempty"`  // how long it has held or waited
	Left    *int64       `json:"left_ms,omitempty"` // until it goes unless it is renewed
	Fence   string       `json:"fence"`
	Passes  int          `json:"passes"`
	Foreign bool         `json:"foreign,omitempty"`
}

// lineOf returns a line as programs read it at a time.
func lineOf(b *hub.Hub, l driver.Line, now time.Time) line {
	v := line{Name: l.Name, Key: b.Store.Key(l.Name), Fence: token(l.Fence), Claims: []claim{}}
	for _, h := range l.Claims {
		v.Claims = append(v.Claims, claim{
			ID: h.PublicID, State: stateOf(h), Kind: h.Kind.String(), Weight: h.Weight, Limit: h.Limit, Owner: h.Owner, Note: h.Note,
			Since: known(h.Since), Until: known(h.Until), Age: span(h.Since, now), Left: span(now, h.Until), Fence: token(h.Fence),
			Passes: h.Passes, Foreign: h.Foreign,
		})
	}
	return v
}

// listedLine is a line in a list.
type listedLine struct {
	line
	More    int   `json:"more_claims,omitempty"` // beyond those that are here
	Waiting int   `json:"waiting"`               // claims
	Waits   int64 `json:"waiting_ms"`            // how long they have waited, in all
	Waited  int64 `json:"waited_ms"`             // of those whose wait this server saw end, in all
}

// listedOf returns a line in a list. waited is of those whose wait has ended.
func listedOf(b *hub.Hub, l driver.Line, now time.Time, waited time.Duration) listedLine {
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
	v.line = lineOf(b, l, now)
	return v
}

// stateOf returns the state of a claim.
func stateOf(h driver.Holder) string {
	switch {
	case h.Broken:
		return "broken"
	case h.Held:
		return "holds"
	}
	return "waits"
}

// token returns a token as text.
func token(f uint64) string { return strconv.FormatUint(f, 10) }

// known returns a time, nil for the zero time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// span returns the milliseconds from one time to another, at least 0; nil if one is not known.
func span(from, to time.Time) *int64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	ms := max(to.Sub(from), 0).Milliseconds()
	return &ms
}
