package hub

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What is kept is bounded: of a name, and of all; the names that changed least recently go first.
func TestHistoryIsBounded(t *testing.T) {
	y := newHistory(1000)
	for i := range 100 {
		for j := range 100 {
			y.Add(fmt.Sprint("name", i), Event{What: Granted, ID: fmt.Sprint(j)})
		}
	}
	if y.kept > 1000 || y.kept < 1000-ofOneName || len(y.records) != y.recent.Len() {
		t.Errorf("%d events are kept, of %d names in a list of %d: want a thousand at most", y.kept, len(y.records), y.recent.Len())
	}
	if events, _ := y.Of("name99"); len(events) != ofOneName || events[ofOneName-1].ID != "99" {
		t.Errorf("of the last name %d events are kept: want its last %d", len(events), ofOneName)
	}
	if events, _ := y.Of("name0"); events != nil {
		t.Errorf("of the first name %d events are kept: want none", len(events))
	}
}

// Two looks at a line tell what happened between them.
func TestBetween(t *testing.T) {
	now := time.Now()
	holds := func(id string) driver.Holder { return driver.Holder{PublicID: id, Held: true, Since: now} }
	waits := func(id string) driver.Holder {
		return driver.Holder{PublicID: id, Since: now.Add(-2 * time.Second)}
	}
	marks := func(id string) driver.Holder { return driver.Holder{PublicID: id, Held: true, Broken: true} }
	over := func(id string) driver.Holder {
		return driver.Holder{PublicID: id, Held: true, Until: now.Add(-time.Second)}
	}
	many := func(n int) (claims []driver.Holder) {
		for i := range n {
			claims = append(claims, waits(fmt.Sprint(i)))
		}
		return claims
	}
	for _, c := range []struct {
		before, after []driver.Holder
		want          string
	}{
		{nil, nil, ""},
		{nil, []driver.Holder{holds("a")}, "granted a"},
		{nil, []driver.Holder{holds("a"), waits("b")}, "waits b, granted a"},
		{[]driver.Holder{holds("a"), waits("b")}, []driver.Holder{holds("b")}, "gone a, granted b 2000"},
		{[]driver.Holder{holds("a"), waits("b")}, []driver.Holder{marks("a"), waits("b")}, "marked a"},
		{[]driver.Holder{marks("a")}, []driver.Holder{marks("a")}, ""},
		{[]driver.Holder{over("a"), waits("b")}, nil, "gone a over, left b 2000"},
		{many(100), many(99), "left 99 2000"},
		{many(99), many(100), "waits 99"},
	} {
		var got []string
		for _, e := range between(c.before, c.after, now) {
			words := e.What + " " + e.ID
			if e.Over {
				words += " over"
			}
			if e.Waited != nil {
				words += fmt.Sprint(" ", *e.Waited)
			}
			got = append(got, words)
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("between %d and %d claims: %q, want %q", len(c.before), len(c.after), s, c.want)
		}
	}
}
