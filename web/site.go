package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/interlock-go/interlock/internal/printable"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// site is what endpoints serve requests from: the stores, and how a page is written. It does not
// change.
type site struct {
	prefix  string
	hubs    []*hub.Hub             // in the order of the stores; there is at least one
	exists  func(path string) bool // whether there is a route at a path
	streams *streams
	breaker *breaker
	log     *slog.Logger
}

// store returns the store that is named by the parameters; the first one where none is named, if
// that is allowed or there is no other.
func (s *site) store(p params, optional bool) (*hub.Hub, error) {
	name, given := p["store"]
	if !given && (optional || len(s.hubs) == 1) {
		return s.hubs[0], nil
	}
	for _, b := range s.hubs {
		if b.Name == name {
			return b, nil
		}
	}
	return nil, problemOf("no-store", "store %.100q: want one of those that /v1/stores lists", name)
}

// aboutStore reads the parameters of a page about a store: which one, and those that are known
// beside it.
func (s *site) aboutStore(r *http.Request, known ...string) (*hub.Hub, params, error) {
	p, err := paramsOf(r, false, append(known, "store")...)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.store(p, true)
	return b, p, err
}

// frame returns the frame of a page that is shown to who, nil where that is not known.
func (s *site) frame(r *http.Request, who *Principal, title string) frame {
	f := frame{Title: title, Base: s.prefix + "/", Here: s.here(r), Icon: made().icon, Styles: made().styles, Script: made().script}
	if who != nil {
		f.Who, f.Breaks = printable.Text(who.Name), len(who.Break) > 0
	}
	return f
}

// here returns the address of a page, relative to the base: as it was asked for, letter by letter,
// or a link to a part of it would load it anew.
func (s *site) here(r *http.Request) string {
	path := r.URL.EscapedPath()
	if s.prefix != "" && len(path) >= len(s.prefix) && path[:len(s.prefix)] == s.prefix {
		path = path[len(s.prefix):]
	}
	if len(path) > 0 && path[0] == '/' {
		path = path[1:]
	}
	if !s.exists("/" + path) {
		path = "" // to what is not there, nothing leads back
	}
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	return "./" + path
}

// page answers by a page. It has answered nothing if it fails.
func (s *site) page(w http.ResponseWriter, status int, name string, data any) error {
	var b bytes.Buffer
	if err := made().templates.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client may have gone
	return nil
}

// answerProblem answers by err, which is a problem or a failure of this server: as a page where a
// browser asked for one.
func (s *site) answerProblem(w http.ResponseWriter, r *http.Request, asPage bool, err error) {
	var p *problem
	if !errors.As(err, &p) {
		s.log.Error("interlock web: request failed", "path", r.URL.Path, "err", err)
		p = problemOf("internal", "the log of the server says why")
	}
	header := w.Header()
	if p.allow != "" {
		header.Set("Allow", p.allow)
	}
	switch p.Status {
	case http.StatusUnauthorized:
		if header.Get("WWW-Authenticate") == "" {
			header.Set("WWW-Authenticate", "Bearer")
		}
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		header.Set("Retry-After", "2")
	}
	if asPage {
		if perr := s.page(w, p.Status, "problem", &problemView{frame: s.frame(r, nil, p.Title), Problem: p, LineHref: p.page}); perr == nil {
			return
		}
	}
	header.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
