package web

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// contended returns the names with the longest wait, the longest first: of the claims that wait now
// and of those whose wait was seen to end. It fills p with the same names, and counts all.
func contended(b *hub.Hub, s *hub.Snapshot, sel selection, p *part) []listedLine {
	ended := b.History.Waits()
	all := selection{prefix: sel.prefix, limit: len(s.Lines), who: sel.who}.of(s.Lines)
	*p = part{names: all.names, held: all.held, waiting: all.waiting}
	type ranked struct {
		line driver.Line
		wait time.Duration
	}
	var names []ranked
	rank := func(l driver.Line) {
		wait, waits := ended[l.Name], false
		for _, h := range l.Claims {
			if !h.Held {
				waits = true
				if !h.Since.IsZero() {
					wait += max(s.At.Sub(h.Since), 0)
				}
			}
		}
		if waits || wait > 0 {
			names = append(names, ranked{l, wait})
		}
	}
	stands := map[string]bool{}
	for _, l := range all.lines {
		stands[l.Name] = true
		rank(l)
	}
	for name := range ended {
		if !stands[name] && strings.HasPrefix(name, sel.prefix) && sel.who.mayRead(name) {
			rank(driver.Line{Name: name})
		}
	}
	slices.SortFunc(names, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.wait, a.wait), cmp.Compare(len(b.line.Claims), len(a.line.Claims)), strings.Compare(a.line.Name, b.line.Name))
	})
	var lines []listedLine
	for _, n := range names[:min(len(names), sel.limit)] {
		p.lines = append(p.lines, n.line)
		lines = append(lines, listedOf(b, n.line, s.At, ended[n.line.Name]))
	}
	p.more = len(names) > sel.limit
	return lines
}

// onContention is how many names the page has.
const onContention = 100

// contentionView is the page of names by waiting time.
type contentionView struct {
	listFrame
	Since *moment
	Any   bool
}

// contendedRow is a name on that page.
type contendedRow struct {
	Key, Shown, Href, Print       string
	Holder                        string
	Wait, Longest, Waiting, Ended string
}

// contentionPage is the page of names by waiting time.
func contentionPage(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	b, _, err := s.aboutStore(r)
	if err != nil {
		return err
	}
	snap, failure := b.List.Soon(r.Context())
	v := &contentionView{listFrame: listFrameOf(s, r, who, b, "Contention", "contention", "page", "contention")}
	if _, err := v.fill(b, who, snap, failure); err != nil {
		return err
	}
	return s.page(w, http.StatusOK, "contention", v)
}

// fill shows the names. The sum differs where something else is shown.
func (v *contentionView) fill(b *hub.Hub, who Principal, snap *hub.Snapshot, failure *hub.Failure) (sum uint64, err error) {
	v.Here = cmp.Or(v.Here, address("contention", "store", b.Name))
	v.Since = clockTime(b.History.Since)
	d, sum, err := v.listFrame.fill(who, snap, failure, func() (*rendered, error) { return renderContention(b, snap, who) })
	v.Any = d != nil && len(d.lines) > 0
	return sum, err
}

// renderContention returns the rows of a list. They are made once for all viewers.
func renderContention(b *hub.Hub, s *hub.Snapshot, who Principal) (*rendered, error) {
	return hub.Once(&s.Made, fmt.Sprintf("contention %q", who.Read), func() (*rendered, error) {
		d := &rendered{}
		var rows []contendedRow
		sum := fnv.New64a()
		for i, l := range contended(b, s, selection{limit: onContention, who: who}, &d.part) {
			full := d.part.lines[i]
			longest := time.Duration(0)
			for _, h := range full.Claims {
				if !h.Held && !h.Since.IsZero() {
					longest = max(longest, s.At.Sub(h.Since))
				}
			}
			r := contendedRow{
				Key: strconv.QuoteToASCII(l.Name), Shown: printable.Text(l.Name), Href: address("line", "store", b.Name, "name", l.Name), Holder: rowOf(b, full, s.At).Holder,
				Wait: numberWords(l.Waiting), Longest: spanWords(longest), Waiting: spanWords(time.Duration(l.Waits) * time.Millisecond),
				Ended: spanWords(time.Duration(l.Waited) * time.Millisecond),
			}
			fmt.Fprint(sum, r)
			r.Print = fmt.Sprintf("%x", sum.Sum64())
			rows = append(rows, r)
		}
		d.sum = sum.Sum64()
		var err error
		d.rows, err = htmlOf("contention-rows", rows)
		return d, err
	})
}
