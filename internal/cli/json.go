package cli

import (
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// lineJSON is a line as programs read it. Tokens are strings: they may exceed what a JavaScript
// number carries.
type lineJSON struct {
	Name   string      `json:"name"`
	Key    string      `json:"key"` // where the store keeps it
	Fence  string      `json:"fence"`
	Claims []claimJSON `json:"claims"`
}

// seenJSON is a line as watch prints it.
type seenJSON struct {
	Time time.Time `json:"time"` // by the clock of this machine
	lineJSON
}

type claimJSON struct {
	ID      string       `json:"id"`
	State   string       `json:"state"` // holds, waits, broken
	Kind    string       `json:"kind"`
	Weight  int          `json:"weight"`
	Limit   int          `json:"limit"`
	Owner   driver.Owner `json:"owner"`
	Note    string       `json:"note,omitempty"`
	Since   *time.Time   `json:"since,omitempty"`
	Until   *time.Time   `json:"until,omitempty"`
	Fence   string       `json:"fence"`
	Passes  int          `json:"passes"`
	Foreign bool         `json:"foreign,omitempty"`
}

func asLineJSON(v *view, l driver.Line) lineJSON {
	j := lineJSON{Name: l.Name, Key: v.key(l.Name), Fence: strconv.FormatUint(l.Fence, 10), Claims: []claimJSON{}}
	for _, h := range l.Claims {
		j.Claims = append(j.Claims, claimJSON{
			ID: h.PublicID, State: state(h), Kind: h.Kind.String(), Weight: h.Weight, Limit: h.Limit, Owner: h.Owner, Note: h.Note,
			Since: known(h.Since), Until: known(h.Until), Fence: strconv.FormatUint(h.Fence, 10), Passes: h.Passes, Foreign: h.Foreign,
		})
	}
	return j
}

func asLinesJSON(v *view, lines []driver.Line) []lineJSON {
	all := []lineJSON{}
	for _, l := range lines {
		all = append(all, asLineJSON(v, l))
	}
	return all
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
