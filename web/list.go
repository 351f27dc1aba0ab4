package web

import (
	"bytes"
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

// onPage is how many names a page has.
const onPage = 200

// selection is a part of a list, for somebody.
type selection struct {
	prefix, after string
	limit         int
	waiting       bool // by waiting time, not by name
	who           Principal
}

// part is that part.
type part struct {
	lines                []driver.Line
	first                int // of lines, among all that the prefix has
	names, held, waiting int // of all that the prefix has
	more                 bool
}

// of takes the part out of a list.
func (s selection) of(all []driver.Line) (p part) {
	i, _ := slices.BinarySearchFunc(all, s.prefix, func(l driver.Line, prefix string) int { return strings.Compare(l.Name, prefix) })
	for _, l := range all[i:] {
		if !strings.HasPrefix(l.Name, s.prefix) {
			break
		}
		if !s.who.mayRead(l.Name) {
			continue
		}
		p.names++
		for _, c := range l.Claims {
			if !c.Held {
				p.waiting++
			}
		}
		if slices.ContainsFunc(l.Claims, func(c driver.Holder) bool { return c.Held }) {
			p.held++
		}
		switch {
		case s.after != "" && l.Name <= s.after:
			p.first++
		case len(p.lines) < s.limit:
			p.lines = append(p.lines, l)
		default:
			p.more = true
		}
	}
	return p
}

// row is a line as the list has it.
type row struct {
	Key, Shown, Href     string
	Print                string // differs where the row does
	Class, State, Holder string
	Since, Until         *moment
	Token                string
	Passes, Wait         string
}

// row is a line as the list has it at some time.
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

func (m *moment) ms() int64 {
	if m == nil {
		return 0
	}
	return m.MS
}

// drawing is a part of a list with its rows as HTML. Of one list each part is drawn once, for all who look at it.
type drawing struct {
	part
	rows template.HTML
	json []byte // the lines, where programs ask
	sum  uint64 // differs where something else is shown
}

// drawList returns a drawing of a list.
func drawList(b *hub.Hub, s *hub.Snapshot, sel selection) (*drawing, error) {
	key := fmt.Sprintf("%q %q %d %q", sel.prefix, sel.after, sel.limit, sel.who.Read)
	return hub.Once(&s.Made, key, func() (*drawing, error) {
		d := &drawing{part: sel.of(s.Lines)}
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

// htmlOf is what a template makes.
func htmlOf(name string, v any) (template.HTML, error) {
	var html bytes.Buffer
	err := made().templates.ExecuteTemplate(&html, name, v)
	return template.HTML(html.String()), err //nolint:gosec // made by a template
}

// listFrame is what the pages have in common that are made of the list.
type listFrame struct {
	frame
	Lists, Read, Reading bool
	Now                  int64
	At                   *moment
	Failure              *failureView
	Partial              string
	Rows                 template.HTML
}

// newListFrame returns the frame of the page at a path, whose part that changes is the page's stream.
func (h *Handler) newListFrame(r *http.Request, who Principal, b *hub.Hub, title, path string, stream ...string) listFrame {
	f := h.frame(r, &who, title+" in "+b.Name)
	f.within(h, b, path)
	f.Live = address("live", append([]string{"store", b.Name}, stream...)...)
	return listFrame{frame: f}
}

// fill shows how the store stands, and the rows that draw makes of a list, which it returns, if there is one. The number differs where
// something else is shown.
func (v *listFrame) fill(who Principal, snap *hub.Snapshot, failure *hub.Failure, draw func() (*drawing, error)) (d *drawing, sum uint64, err error) {
	now := time.Now()
	v.Now, v.Lists = now.UnixMilli(), !failure.Unsupported()
	v.Failure = listFailure(failure, who)
	if failure != nil {
		sum = uint64(failure.Since.UnixNano())
	}
	v.Read = snap != nil && v.Lists
	v.Reading = snap == nil && failure == nil
	v.Soon = v.Reading
	if !v.Read {
		return nil, sum, nil
	}
	v.At = ago(snap.At, now)
	if snap.Partial != nil {
		v.Partial = who.told(snap.Partial)
	}
	if d, err = draw(); err != nil {
		return nil, 0, err
	}
	v.Rows = d.rows
	return d, sum ^ d.sum, nil
}

// listView is the page of names.
type listView struct {
	listFrame
	Prefix, Shown, After string
	Names, Held, Wait    string
	First, Last          string
	StartHref, NextHref  string
}

// listSelection reads what of the list is asked for.
func (h *Handler) listSelection(p params, who Principal) (sel selection, err error) {
	sel = selection{limit: onPage, who: who}
	if sel.prefix, err = p.start("prefix"); err == nil {
		sel.after, err = p.start("after")
	}
	return sel, err
}

// listPage is the page of names.
func (h *Handler) listPage(w http.ResponseWriter, r *http.Request, who Principal) error {
	b, p, err := h.aboutStore(r, "prefix", "after")
	if err != nil {
		return err
	}
	sel, err := h.listSelection(p, who)
	if err != nil {
		return err
	}
	snap, failure := b.List.Soon(r.Context())
	v := &listView{listFrame: h.newListFrame(r, who, b, "Names", "./", "page", "list", "prefix", sel.prefix, "after", sel.after)}
	if _, err := v.fill(b, sel, snap, failure); err != nil {
		return err
	}
	return h.page(w, r, http.StatusOK, "list", v)
}

// fill shows a list. It returns a number that differs where something else is shown.
func (v *listView) fill(b *hub.Hub, sel selection, snap *hub.Snapshot, failure *hub.Failure) (sum uint64, err error) {
	v.Prefix, v.Shown, v.After = sel.prefix, printable.Text(sel.prefix), sel.after
	d, sum, err := v.listFrame.fill(sel.who, snap, failure, func() (*drawing, error) { return drawList(b, snap, sel) })
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

// listFailure is what is wrong with a list.
func listFailure(f *hub.Failure, who Principal) *failureView {
	v := failureViewOf(f, who)
	switch {
	case v == nil:
	case f.Unsupported():
		v.What = "This store does not list its names"
	default:
		v.What = "The list could not be read"
	}
	return v
}
