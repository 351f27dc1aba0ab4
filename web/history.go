package web

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

// history is what this server saw of the names of a store: of each its last events. There are so many in all at most; the names of which
// nothing was heard for longest are forgotten first.
//
// Two tell of a name: whoever follows it, change by change, and the list, by what is different from the one before. The list says nothing of
// a name that is followed, nor does one whose reading began before that ended. When that begins both may have seen the same: what of a claim
// was noted is not noted again.
type history struct {
	since time.Time
	limit int

	mu      sync.Mutex
	kept    int
	records map[string]*list.Element // of *record
	recent  list.List                // the names, that of which something was heard last in front
	listed  []driver.Line            // the last complete list
	at      time.Time                // of listed
	follows map[string]time.Time     // names that are followed; the end of that where it is over
}

// record is what is kept of one name.
type record struct {
	name   string
	events []event       // the oldest first
	waited time.Duration // in all, by those whose wait has ended
}

func newHistory(limit int) *history {
	return &history{since: time.Now(), limit: limit, records: map[string]*list.Element{}, follows: map[string]time.Time{}}
}

// note keeps events of a name.
func (y *history) note(name string, events ...event) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.add(name, events)
}

func (y *history) add(name string, events []event) {
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
		if e.What != broke && !later(e.What, r.last(e.ID)) {
			continue
		}
		if e.Waited != nil {
			r.waited += time.Duration(*e.Waited) * time.Millisecond
		}
		r.events = append(r.events, e)
	}
	if over := len(r.events) - ofOneName; over > 0 {
		r.events = append([]event(nil), r.events[over:]...)
	}
	y.kept += len(r.events) - before
	for y.kept > y.limit {
		oldest := y.recent.Back()
		r := y.recent.Remove(oldest).(*record)
		delete(y.records, r.name)
		y.kept -= len(r.events)
	}
}

// later reports whether a claim can come from one state to the other. What is gone may come again: another program's claims may have one id.
func later(what, last string) bool {
	rank := map[string]int{waited: 1, granted: 2, marked: 3, gone: 4, left: 4}
	return rank[what] > rank[last] || rank[last] == 4 && rank[what] < 4
}

// last returns what was noted last of a claim, but for breaks, which are somebody's wish.
func (r *record) last(id string) string {
	for i := len(r.events) - 1; i >= 0; i-- {
		if e := r.events[i]; e.ID == id && e.What != broke {
			return e.What
		}
	}
	return ""
}

// of returns what is kept of a name, the oldest first, and how long there was waited for it in all.
func (y *history) of(name string) ([]event, time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	at := y.records[name]
	if at == nil {
		return nil, 0
	}
	r := at.Value.(*record)
	return append([]event(nil), r.events...), r.waited
}

// waits returns how long there was waited for each name by those whose wait was seen to end.
func (y *history) waits() map[string]time.Duration {
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

// list takes in a list. The first one only says how things stood.
func (y *history) list(s *snapshot) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if s.partial != nil {
		return // who is not in it may stand there all the same
	}
	before, first := y.listed, y.at.IsZero()
	y.listed, y.at = s.lines, s.at
	if first {
		return
	}
	for i, j := 0, 0; i < len(before) || j < len(s.lines); { // both are in order of name
		switch {
		case j == len(s.lines) || i < len(before) && before[i].Name < s.lines[j].Name:
			y.changed(before[i].Name, before[i].Claims, nil, s.at)
			i++
		case i == len(before) || s.lines[j].Name < before[i].Name:
			y.changed(s.lines[j].Name, nil, s.lines[j].Claims, s.at)
			j++
		default:
			y.changed(s.lines[j].Name, before[i].Claims, s.lines[j].Claims, s.at)
			i++
			j++
		}
	}
}

func (y *history) changed(name string, before, after []driver.Holder, at time.Time) {
	end, followed := y.follows[name]
	switch {
	case followed && (end.IsZero() || end.After(at)):
		return
	case followed:
		delete(y.follows, name)
	}
	y.add(name, between(before, after, at))
}

// mostEnds is how many names are kept that were followed since the last list. Of one that is forgotten something may be noted twice.
const mostEnds = 10_000

// follow says whether a name is followed.
func (y *history) follow(name string, on bool) {
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

// before returns who stood in the line of a name by the last list, if there is one.
func (y *history) before(name string) (claims []driver.Holder, known bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if i, ok := slices.BinarySearchFunc(y.listed, name, func(l driver.Line, name string) int { return strings.Compare(l.Name, name) }); ok {
		claims = y.listed[i].Claims
	}
	return claims, !y.at.IsZero()
}
