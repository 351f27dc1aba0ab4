package hub

import (
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What happened to a claim, as far as two looks at its line tell.
const (
	Waited  = "waits"   // it came into the line and waits
	Granted = "granted" // it holds
	Marked  = "marked"  // it was broken, and its owner has not let go yet
	Gone    = "gone"    // it held, and is no longer there: released, or its time was over
	Left    = "left"    // it waited, and is no longer there
	Broke   = "break"   // somebody broke it through this server
)

// Event is what this server saw of a name, and when it saw it.
type Event struct {
	At     time.Time    `json:"at"`
	What   string       `json:"what"`
	ID     string       `json:"id"`
	Kind   string       `json:"kind"`
	Owner  driver.Owner `json:"owner"`
	Note   string       `json:"note,omitempty"`
	Fence  string       `json:"fence"`
	Waited *int64       `json:"waited_ms,omitempty"` // of granted and left, where the wait was seen
	Over   bool         `json:"over,omitempty"`      // of gone: its time was over
	By     string       `json:"by,omitempty"`        // of break
	Now    bool         `json:"now,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Result string       `json:"outcome,omitempty"`
}

// EventOf returns an event of a claim.
func EventOf(what string, h driver.Holder, at time.Time) Event {
	return Event{
		At: at, What: what, ID: h.PublicID, Kind: h.Kind.String(), Owner: h.Owner, Note: h.Note,
		Fence: strconv.FormatUint(h.Fence, 10),
	}
}

// between returns what happened between two looks at a line, in an order in which it can have
// happened. What came and went meanwhile is not in it.
func between(before, after []driver.Holder, at time.Time) []Event {
	if len(before) == 0 && len(after) == 0 {
		return nil
	}
	find := func(claims []driver.Holder, id string) *driver.Holder {
		for i := range claims {
			if claims[i].PublicID == id {
				return &claims[i]
			}
		}
		return nil
	}
	if len(before)*len(after) > 1<<10 { // a long line
		find = findIndexed(before, after)
	}
	var marks, goes, comes, grants []Event
	for _, h := range before {
		now := find(after, h.PublicID)
		switch {
		case now == nil && h.Held:
			e := EventOf(Gone, h, at)
			e.Over = !h.Until.IsZero() && h.Until.Before(at)
			goes = append(goes, e)
		case now == nil:
			e := EventOf(Left, h, at)
			e.waits(h.Since, at)
			goes = append(goes, e)
		case !h.Broken && now.Broken:
			marks = append(marks, EventOf(Marked, *now, at))
		}
	}
	for _, h := range after {
		was := find(before, h.PublicID)
		switch {
		case h.Held && (was == nil || !was.Held):
			e := EventOf(Granted, h, at)
			if was != nil {
				e.waits(was.Since, h.Since)
			}
			grants = append(grants, e)
		case !h.Held && was == nil:
			comes = append(comes, EventOf(Waited, h, at))
		}
	}
	return append(append(append(marks, goes...), comes...), grants...)
}

// waits says how long the claim waited, if both ends are known.
func (e *Event) waits(from, to time.Time) {
	if from.IsZero() || to.IsZero() {
		return
	}
	ms := max(to.Sub(from), 0).Milliseconds()
	e.Waited = &ms
}

// findIndexed finds claims of two lines by tables.
func findIndexed(lines ...[]driver.Holder) func([]driver.Holder, string) *driver.Holder {
	tables := map[*driver.Holder]map[string]*driver.Holder{}
	for _, claims := range lines {
		t := make(map[string]*driver.Holder, len(claims))
		for i := range claims {
			t[claims[i].PublicID] = &claims[i]
		}
		tables[&claims[0]] = t
	}
	return func(claims []driver.Holder, id string) *driver.Holder { return tables[&claims[0]][id] }
}
