package web

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// right is what a route asks of who calls it.
type right uint8

const (
	none right = iota // nothing: it shows nothing of a store
	read              // to read some name, or the one that is asked for
	breaks
)

// route is one method of one path.
type route struct {
	right right
	page  bool // for people: a problem is answered by a page
	serve endpoint
}

// endpoint serves a request. It returns a *problem for what is wrong with the request; then it has
// answered nothing.
type endpoint func(s *site, w http.ResponseWriter, r *http.Request, who Principal) error

// routes are all there are, by path and method. A path is compared as it was sent: names of locks
// stand in the query, never in a path, where browsers, proxies and muxes rewrite dots and slashes.
type routes map[string]map[string]*route

func newRoutes() routes {
	t := routes{
		"/":                {"GET": {read, true, listPage}},
		"/line":            {"GET": {read, true, linePage}},
		"/contention":      {"GET": {read, true, contentionPage}},
		"/stores":          {"GET": {read, true, storesPage}},
		"/break":           {"GET": {breaks, true, breakPage}, "POST": {breaks, true, breakForm}},
		"/live":            {"GET": {read, false, live}},
		"/v1/stores":       {"GET": {read, false, apiStores}},
		"/v1/lines":        {"GET": {read, false, apiLines}},
		"/v1/line":         {"GET": {read, false, apiLine}},
		"/v1/history":      {"GET": {read, false, apiHistory}},
		"/v1/watch":        {"GET": {read, false, apiWatch}},
		"/v1/break":        {"POST": {breaks, false, apiBreak}},
		"/v1/openapi.json": {"GET": {none, false, fixed(serveOpenAPI)}},
	}
	for path, a := range made().assets {
		t[path] = map[string]*route{"GET": {none, false, fixed(a.serve)}}
	}
	return t
}

// fixed returns the endpoint of what is the same for everybody.
func fixed(serve func(http.ResponseWriter)) endpoint {
	return func(_ *site, w http.ResponseWriter, _ *http.Request, _ Principal) error {
		serve(w)
		return nil
	}
}

// find returns the route of a request, or a problem.
func (t routes) find(r *http.Request, prefix string) (*route, error) {
	path := r.URL.EscapedPath()
	below, stands := strings.CutPrefix(path, prefix)
	methods := t[below]
	if !stands || below == "" || methods == nil {
		methods = t[path] // a proxy has taken the prefix away
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
