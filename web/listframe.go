package web

import (
	"bytes"
	"html/template"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/web/internal/hub"
)

// rendered is a part of a list with its rows as HTML. Of one list each part is rendered once, for
// all who look at it.
type rendered struct {
	part
	rows template.HTML
	json []byte // the lines, where programs ask
	sum  uint64 // differs where something else is shown
}

// htmlOf returns what a template makes of v.
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

// listFrameOf returns the frame of the page at a path. The parameters are those of the page's
// stream.
func listFrameOf(s *site, r *http.Request, who Principal, b *hub.Hub, title, path string, stream ...string) listFrame {
	f := s.frame(r, &who, title+" in "+b.Name)
	f.within(s.hubs, b, path)
	f.Live = address("live", append([]string{"store", b.Name}, stream...)...)
	return listFrame{frame: f}
}

// fill shows how the store is, and the rows that render makes of a list, which it returns, if there
// is one. The sum differs where something else is shown.
func (v *listFrame) fill(
	who Principal, snap *hub.Snapshot, failure *hub.Failure, render func() (*rendered, error),
) (d *rendered, sum uint64, err error) {
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
		v.Partial = who.reason(snap.Partial)
	}
	if d, err = render(); err != nil {
		return nil, 0, err
	}
	v.Rows = d.rows
	return d, sum ^ d.sum, nil
}
