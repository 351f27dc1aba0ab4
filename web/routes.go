package web

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/internal/hosts"
)

// right is what a route asks of whoever calls it.
type right uint8

const (
	none right = iota // nothing: it shows nothing of a store
	read              // to read some name, or the one that is asked for
	breaks
)

// route is one method of one path. Its function returns a *problem for what is wrong with the request; it has answered nothing then.
type route struct {
	right right
	page  bool // for people: a problem is answered by a page
	serve func(h *Handler, w http.ResponseWriter, r *http.Request, who Principal) error
}

// table returns the routes by path and method. A path is compared as it was sent: names of locks stand in the query, never in a path,
// where browsers, proxies and muxes rewrite dots and slashes.
func (h *Handler) table() map[string]map[string]*route {
	t := map[string]map[string]*route{
		"/":                {"GET": {read, true, (*Handler).listPage}},
		"/line":            {"GET": {read, true, (*Handler).linePage}},
		"/contention":      {"GET": {read, true, (*Handler).contentionPage}},
		"/stores":          {"GET": {read, true, (*Handler).storesPage}},
		"/break":           {"GET": {breaks, true, (*Handler).breakPage}, "POST": {breaks, true, (*Handler).breakForm}},
		"/live":            {"GET": {read, false, (*Handler).live}},
		"/v1/stores":       {"GET": {read, false, (*Handler).apiStores}},
		"/v1/lines":        {"GET": {read, false, (*Handler).apiLines}},
		"/v1/line":         {"GET": {read, false, (*Handler).apiLine}},
		"/v1/history":      {"GET": {read, false, (*Handler).apiHistory}},
		"/v1/watch":        {"GET": {read, false, (*Handler).apiWatch}},
		"/v1/break":        {"POST": {breaks, false, (*Handler).apiBreak}},
		"/v1/openapi.json": {"GET": {none, false, (*Handler).openAPI}},
	}
	for path, a := range made().assets {
		t[path] = map[string]*route{"GET": {none, false, a.serve}}
	}
	return t
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	var to *route
	var err error
	if !hosts.Known(r.Host, h.opts.Hosts) {
		err = problemOf("wrong-host", "a request for host %.100q: the server has to be told that it is called so", r.Host)
	} else if path := r.URL.EscapedPath(); path == "" || path == h.opts.Prefix {
		w.Header().Set("Location", h.opts.Prefix+"/") // what links are relative to
		w.WriteHeader(http.StatusMovedPermanently)
	} else if to, err = h.routed(r); err == nil {
		err = h.admitted(w, r, to)
	}
	if err != nil {
		h.answerProblem(w, r, to != nil && to.page || to == nil && wantsPage(r), err)
	}
}

// routed returns the route of a request.
func (h *Handler) routed(r *http.Request) (*route, error) {
	path := r.URL.EscapedPath()
	below, stands := strings.CutPrefix(path, h.opts.Prefix)
	methods := h.routes[below]
	if !stands || below == "" || methods == nil {
		methods = h.routes[path] // a proxy has taken the prefix away
	}
	if methods == nil {
		return nil, problemOf("not-found", "nothing is at %.200q", path)
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if to := methods[method]; to != nil {
		return to, nil
	}
	p := problemOf("method", "%.50q cannot be done there", r.Method)
	for _, m := range slices.Sorted(maps.Keys(methods)) {
		p.allow += ", " + m
		if m == http.MethodGet {
			p.allow += ", HEAD"
		}
	}
	p.allow = strings.TrimPrefix(p.allow, ", ")
	return nil, p
}

// admitted serves a request that may be served.
func (h *Handler) admitted(w http.ResponseWriter, r *http.Request, to *route) error {
	if err := h.cross.Check(r); err != nil {
		return problemOf("cross-origin", "%v", err)
	}
	if h.life.Context().Err() != nil {
		return problemOf("not-sent", "the server is closing")
	}
	var who Principal
	if to.right != none {
		var err error
		if who, err = h.authorized(r); err != nil {
			return err
		}
		if to.right == read && len(who.Read) == 0 || to.right == breaks && len(who.Break) == 0 {
			p := problemOf("forbidden", "%s may not do that with any name", who.called())
			if to.right == breaks && r.Method == http.MethodPost {
				h.refused(r, who, p)
			}
			return p
		}
	}
	return to.serve(h, w, limited(w, r), who)
}

// authorized returns who makes a request.
func (h *Handler) authorized(r *http.Request) (Principal, error) {
	if h.opts.Authorize == nil {
		return Principal{Read: []string{""}}, nil
	}
	who, err := h.opts.Authorize(r)
	switch {
	case err == nil:
		return who, nil
	case errors.Is(err, ErrUnauthenticated):
		return who, problemOf("unauthenticated", "want one that is not over")
	case errors.Is(err, ErrForbidden):
		return who, problemOf("forbidden", "%s is not allowed here", who.called())
	}
	return who, fmt.Errorf("web: Options.Authorize: %w", err)
}

// called is a principal as problems name it.
func (p Principal) called() string {
	if p.Name == "" {
		return "whoever asks"
	}
	return p.Name
}

// reader may read every name. What concerns one name that somebody may read is told as to him.
var reader = Principal{Read: []string{""}}

// told is an error of a store as it may be told: there may be names in it, which are for those who may read all.
func (p Principal) told(err error) string {
	if p.mayRead("") {
		return errorWords(err)
	}
	return "the reason may be read by those who may read every name"
}

// mayRead and mayBreak report whether the principal may do that with a name.
func (p Principal) mayRead(name string) bool  { return begins(name, p.Read) }
func (p Principal) mayBreak(name string) bool { return begins(name, p.Break) }

func begins(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// wantsPage reports whether a browser asks for something to show.
func wantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.Contains(r.URL.Path, "/v1/")
}
