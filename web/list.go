package web

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// row is a line as the page of names has it.
type row struct {
	Key, Shown, Href     string
	Print                string // differs where the row does, for the script of the page
	Class, State, Holder string
	Since, Until         *moment
	Token                string
	Passes, Wait         string
}

// rowOf returns a line as the page of names has it at a time.
func rowOf(b *hub.Hub, l driver.Line, now time.Time) row {
	r := row{
		Key: strconv.QuoteToASCII(l.Name), Shown: printable.Text(l.Name), Href: address("line", "store", b.Name, "name", l.Name),
		State: lineWords(l.Claims), Token: "–", Passes: "–", Wait: "0",
	}
	r.Class = map[string]string{"waits": "waits", "broken": "broken"}[r.State]
	if r.Class == "" {
		r.Class = "held"
	}
	var holders []string
	wait := 0
	for _, h := range l.Claims {
		if !h.Held {
			wait++
			continue
		}
		if len(holders) == 0 {
			r.Since, r.Until, r.Passes = ago(h.Since, now), ahead(h.Until, now), strconv.Itoa(h.Passes)
			if h.Fence != 0 {
				r.Token = token(h.Fence)
			}
		}
		words := ownerWords(h)
		if h.Note != "" {
			words += " “" + printable.Text(h.Note) + "”"
		}
		holders = append(holders, words)
	}
	if wait > 0 {
		r.Wait = numberWords(wait)
	}
	const most = 3
	r.Holder = strings.Join(holders[:min(len(holders), most)], ", ")
	if more := len(holders) - most; more > 0 {
		r.Holder += fmt.Sprintf(" and %s more", numberWords(more))
	}
	sum := fnv.New64a()
	fmt.Fprint(sum, r.State, "\x00", r.Holder, "\x00", r.Since.ms(), r.Until.ms(), r.Token, r.Passes, r.Wait)
	r.Print = strconv.FormatUint(sum.Sum64(), 36)
	return r
}

// renderList returns a part of a list. It is made once for all viewers.
func renderList(b *hub.Hub, s *hub.Snapshot, sel selection) (*rendered, error) {
	key := fmt.Sprintf("%q %q %d %q", sel.prefix, sel.after, sel.limit, sel.who.Read)
	return hub.Once(&s.Made, key, func() (*rendered, error) {
		d := &rendered{part: sel.of(s.Lines)}
		rows := make([]row, len(d.lines))
		sum := fnv.New64a()
		for i, l := range d.lines {
			rows[i] = rowOf(b, l, s.At)
			fmt.Fprint(sum, l.Name, "\x00", rows[i].Print, "\x00")
		}
		fmt.Fprint(sum, d.names, d.held, d.waiting, d.more, s.Partial)
		d.sum = sum.Sum64()
		var err error
		d.rows, err = htmlOf("rows", rows)
		return d, err
	})
}

// listView is the page of names.
type listView struct {
	listFrame
	Prefix, Shown, After string
	Names, Held, Wait    string
	First, Last          string
	StartHref, NextHref  string
}

// listPage answers by the page of names.
func listPage(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	b, p, err := s.aboutStore(r, "prefix", "after")
	if err != nil {
		return err
	}
	sel, err := selectionOf(p, who)
	if err != nil {
		return err
	}
	snap, failure := b.List.Soon(r.Context())
	v := &listView{listFrame: listFrameOf(s, r, who, b, "Names", "./", "page", "list", "prefix", sel.prefix, "after", sel.after)}
	if _, err := v.fill(b, sel, snap, failure); err != nil {
		return err
	}
	return s.page(w, http.StatusOK, "list", v)
}

// fill shows a list. The sum differs where something else is shown.
func (v *listView) fill(b *hub.Hub, sel selection, snap *hub.Snapshot, failure *hub.Failure) (sum uint64, err error) {
	v.Prefix, v.Shown, v.After = sel.prefix, printable.Text(sel.prefix), sel.after
	d, sum, err := v.listFrame.fill(sel.who, snap, failure, func() (*rendered, error) { return renderList(b, snap, sel) })
	if d == nil {
		return sum, err
	}
	v.Names, v.Held, v.Wait = numberWords(d.names), numberWords(d.held), numberWords(d.waiting)
	if len(d.lines) > 0 {
		v.First, v.Last = numberWords(d.first+1), numberWords(d.first+len(d.lines))
	}
	if sel.after != "" {
		v.StartHref = address("./", "store", b.Name, "prefix", sel.prefix)
	}
	if d.more {
		v.NextHref = address("./", "store", b.Name, "prefix", sel.prefix, "after", d.lines[len(d.lines)-1].Name)
	}
	return sum, nil
}
