package hub

import (
	"container/list"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// ofOneName is how many events of one name are kept.
const ofOneName = 64

// History is what this server saw of the names of a store: the last events of each. There is a
// limit to all of them; the names of which nothing was heard for longest are forgotten first.
//
// Two record events of a name: those who follow it, change by change, and the list, by what is
// different from the one before. The list records nothing of a name that is followed, nor does one
// whose reading began before that ended. When following begins both may have seen the same: what
// was recorded of a claim is not recorded a second time.
type History struct {
	Since time.Time // when this server began
	limit int       // events

	mu      sync.Mutex
	kept    int                      // events
	records map[string]*list.Element // of *record
	recent  list.List                // the names, that of which something was heard last in front
	listed  []driver.Line            // the last complete list
	at      time.Time                // of listed
	follows map[string]time.Time     // names that are followed; the end of that where it is over
}

// record is what is kept of one name.
type record struct {
	name   string
	events []Event       // the oldest first
	waited time.Duration // in all, by those whose wait has ended
}

func newHistory(limit int) *History {
	return &History{Since: time.Now(), limit: limit, records: map[string]*list.Element{}, follows: map[string]time.Time{}}
}

// Add records events of a name.
func (y *History) Add(name string, events ...Event) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.add(name, events)
}

// add is Add. Called under y.mu.
func (y *History) add(name string, events []Event) {
	if len(events) == 0 {
		return
	}
	at := y.records[name]
	if at == nil {
		at = y.recent.PushFront(&record{name: name})
		y.records[name] = at
	}
	y.recent.MoveToFront(at)
	r := at.Value.(*record)
	before := len(r.events)
	for _, e := range events {
		if e.What != Broke && !later(e.What, r.last(e.ID)) {
			continue
		}
		if e.Waited != nil {
			r.waited += time.Duration(*e.Waited) * time.Millisecond
		}
		r.events = append(r.events, e)
	}
	if over := len(r.events) - ofOneName; over > 0 {
		r.events = append([]Event(nil), r.events[over:]...)
	}
	y.kept += len(r.events) - before
	for y.kept > y.limit {
		oldest := y.recent.Back()
		r := y.recent.Remove(oldest).(*record)
		delete(y.records, r.name)
		y.kept -= len(r.events)
	}
}

// later reports whether a claim can come from one state to the other. What is gone may come again:
// another program's claims may have one id.
func later(what, last string) bool {
	rank := map[string]int{Waited: 1, Granted: 2, Marked: 3, Gone: 4, Left: 4}
	return rank[what] > rank[last] || rank[last] == 4 && rank[what] < 4
}

// last returns what was recorded last of a claim, but for breaks, which are what somebody asked
// for.
func (r *record) last(id string) string {
	for i := len(r.events) - 1; i >= 0; i-- {
		if e := r.events[i]; e.ID == id && e.What != Broke {
			return e.What
		}
	}
	return ""
}

// Of returns what is kept of a name, the oldest first, and how long there was waited for it in all.
func (y *History) Of(name string) ([]Event, time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	at := y.records[name]
	if at == nil {
		return nil, 0
	}
	r := at.Value.(*record)
	return append([]Event(nil), r.events...), r.waited
}

// Waits returns how long there was waited for each name by those whose wait was seen to end.
func (y *History) Waits() map[string]time.Duration {
	y.mu.Lock()
	defer y.mu.Unlock()
	all := map[string]time.Duration{}
	for name, at := range y.records {
		if r := at.Value.(*record); r.waited > 0 {
			all[name] = r.waited
		}
	}
	return all
}

// compare records what is different in a list from the one before. A list that is cut short is left
// out: what it lacks may be there.
func (y *History) compare(s *Snapshot) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if s.Partial != nil {
		return
	}
	before, first := y.listed, y.at.IsZero()
	y.listed, y.at = s.Lines, s.At
	if first {
		return
	}
	for i, j := 0, 0; i < len(before) || j < len(s.Lines); { // both are in order of name
		switch {
		case j == len(s.Lines) || i < len(before) && before[i].Name < s.Lines[j].Name:
			y.changed(before[i].Name, before[i].Claims, nil, s.At)
			i++
		case i == len(before) || s.Lines[j].Name < before[i].Name:
			y.changed(s.Lines[j].Name, nil, s.Lines[j].Claims, s.At)
			j++
		default:
			y.changed(s.Lines[j].Name, before[i].Claims, s.Lines[j].Claims, s.At)
			i++
			j++
		}
	}
}

// changed records how a name differs between two lists, unless it was followed. Called under y.mu.
func (y *History) changed(name string, before, after []driver.Holder, at time.Time) {
	end, followed := y.follows[name]
	switch {
	case followed && (end.IsZero() || end.After(at)):
		return
	case followed:
		delete(y.follows, name)
	}
	y.add(name, between(before, after, at))
}

// mostEnds is how many names are kept that were followed since the last list. Of one that is
// forgotten something may be recorded twice.
const mostEnds = 10_000

// follow records whether a name is followed.
func (y *History) follow(name string, on bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	switch {
	case on:
		y.follows[name] = time.Time{}
	case y.at.IsZero() || len(y.follows) > mostEnds:
		delete(y.follows, name)
	default:
		y.follows[name] = time.Now()
	}
}

// before returns the claims of a name in the last list, and whether there is one.
func (y *History) before(name string) (claims []driver.Holder, known bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if i, ok := slices.BinarySearchFunc(y.listed, name, func(l driver.Line, name string) int { return strings.Compare(l.Name, name) }); ok {
		claims = y.listed[i].Claims
	}
	return claims, !y.at.IsZero()
}
