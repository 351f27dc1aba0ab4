package web

import (
	"bytes"
	"net/http"
	"net/url"
	"time"

	"github.com/interlock-go/interlock/internal/printable"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// frame is what is around every page.
type frame struct {
	Title                string
	Base                 string // what links are relative to
	Here                 string // this page, as it was asked for
	Live                 string // the page's stream, if it has one
	Soon                 bool   // it asks for itself again, where no script does
	Icon, Styles, Script string
	Tabs, Stores         []tab
	Store                *hub.Hub // that the page is about, nil if about all
	Who                  string
	Breaks               bool
}

// tab is a link in the head of a page.
type tab struct {
	Text, Href string
	Here       bool
}

// frame returns the frame of a page that is shown to who, nil where that is not known.
func (h *Handler) frame(r *http.Request, who *Principal, title string) frame {
	f := frame{Title: title, Base: h.opts.Prefix + "/", Here: h.here(r), Icon: made().icon, Styles: made().styles, Script: made().script}
	if who != nil {
		f.Who, f.Breaks = printable.Text(who.Name), len(who.Break) > 0
	}
	return f
}

// here is the address of a page, relative to the base: as it was asked for, letter by letter, or a link to a part of it would load it anew.
func (h *Handler) here(r *http.Request) string {
	path := r.URL.EscapedPath()
	if h.opts.Prefix != "" && len(path) >= len(h.opts.Prefix) && path[:len(h.opts.Prefix)] == h.opts.Prefix {
		path = path[len(h.opts.Prefix):]
	}
	if len(path) > 0 && path[0] == '/' {
		path = path[1:]
	}
	if h.routes["/"+path] == nil {
		path = "" // of what is not there, nothing leads back
	}
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	return "./" + path
}

// within puts a page into the frame of a store.
func (f *frame) within(h *Handler, b *hub.Hub, path string) {
	f.Store = b
	for _, other := range h.hubs {
		f.Stores = append(f.Stores, tab{other.Name, address(path, "store", other.Name), other == b})
	}
	f.tabs(b.Name, path)
}

// tabs are the pages that there are.
func (f *frame) tabs(store, path string) {
	f.Tabs = []tab{
		{"Names", address("./", "store", store), path == "./"},
		{"Contention", address("contention", "store", store), path == "contention"},
		{"Stores", "stores", path == "stores"},
	}
}

// address is the address of a page with parameters.
func address(path string, params ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		if params[i+1] != "" {
			v.Set(params[i], params[i+1])
		}
	}
	return path + "?" + v.Encode()
}

// page answers by a page. It has answered nothing if it fails.
func (h *Handler) page(w http.ResponseWriter, r *http.Request, status int, name string, data any) error {
	var b bytes.Buffer
	if err := made().templates.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // whoever asked may have gone
	return nil
}

// moment is a time as a page has it, and how long ago it was or is to come.
type moment struct {
	Machine string // for programs
	MS      int64  // since 1970
	Words   string
}

func ago(t, now time.Time) *moment   { return momentOf(t, now.Sub(t)) }
func ahead(t, now time.Time) *moment { return momentOf(t, t.Sub(now)) }
func clockTime(t time.Time) *moment {
	m := momentOf(t, 0)
	if m != nil {
		m.Words = t.UTC().Format("2006-01-02 15:04:05")
	}
	return m
}

func momentOf(t time.Time, d time.Duration) *moment {
	if t.IsZero() {
		return nil
	}
	return &moment{t.UTC().Format("2006-01-02T15:04:05.000Z"), t.UnixMilli(), spanWords(d)}
}

// failureView is what is wrong with a store.
type failureView struct {
	What, Why string
	Since     *moment
}

// failureViewOf returns a failure as a page has it for somebody.
func failureViewOf(f *hub.Failure, who Principal) *failureView {
	if f == nil {
		return nil
	}
	v := &failureView{What: "The store does not answer", Why: who.told(f.Err), Since: clockTime(f.Since)}
	if f.Unsupported() {
		v.What, v.Since = "The store cannot do that", nil
	}
	return v
}

// problemView is the page of a problem.
type problemView struct {
	frame
	Problem  *problem
	LineHref string
}
