package web

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/hosts"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// Handler shows stores. It is safe for concurrent use.
//
// It decides which requests are served; a route serves them by what it needs of the site. What is
// asked of the stores is the business of package hub.
type Handler struct {
	opts   Options
	site   *site
	routes routes
	cross  *http.CrossOriginProtection
	life   *hub.Life // what goes on without a request
}

// New returns a handler that shows stores and, where [Options].Authorize allows it, breaks claims.
// Nothing is asked of the stores before somebody looks. A nil Options means the defaults.
func New(stores []Store, o *Options) (*Handler, error) {
	h := &Handler{cross: http.NewCrossOriginProtection(), routes: newRoutes()}
	if o != nil {
		h.opts = *o
	}
	if err := h.opts.complete(); err != nil {
		return nil, err
	}
	if err := check(stores); err != nil {
		return nil, err
	}
	h.life = hub.NewLife()
	h.site = &site{
		prefix: h.opts.Prefix, log: h.opts.Logger,
		exists:  func(path string) bool { return h.routes[path] != nil },
		streams: &streams{limit: newLimiter(h.opts.Streams), life: h.life, log: h.opts.Logger, authorize: h.opts.principal},
		breaker: &breaker{life: h.life, log: h.opts.Logger},
	}
	for _, s := range stores {
		h.site.hubs = append(h.site.hubs, hub.New(hub.Config{
			Name: s.Name, URL: driver.Redact(s.URL), Driver: s.Driver,
			History: h.opts.History / len(stores), Life: h.life, Log: h.opts.Logger,
		}))
	}
	return h, nil
}

// check says what is wrong with the stores.
func check(stores []Store) error {
	seen := map[string]bool{}
	for _, s := range stores {
		if err := s.check(); err != nil {
			return err
		}
		if seen[s.Name] {
			return fmt.Errorf("web: two stores are called %q: want a name for each", s.Name)
		}
		seen[s.Name] = true
	}
	if len(stores) == 0 {
		return errors.New("web: no store: want one at least")
	}
	return nil
}

// Close ends the streams and whatever is asked of the stores, and waits for that; a request that
// comes later is answered by 503. The stores' drivers stay open. It returns nil.
func (h *Handler) Close() error {
	h.life.Close()
	return nil
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
	} else if to, err = h.routes.find(r, h.opts.Prefix); err == nil {
		err = h.serve(w, r, to)
	}
	if err != nil {
		h.site.answerProblem(w, r, to != nil && to.page || to == nil && wantsPage(r), err)
	}
}

// serve serves a request that has a route, if it may be served.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, to *route) error {
	if err := h.cross.Check(r); err != nil {
		return problemOf("cross-origin", "%v", err)
	}
	if h.life.Context().Err() != nil {
		return problemOf("not-sent", "the server is closing")
	}
	var who Principal
	if to.right != none {
		var err error
		if who, err = h.opts.principal(r); err != nil {
			return err
		}
		if to.right == read && len(who.Read) == 0 || to.right == breaks && len(who.Break) == 0 {
			p := problemOf("forbidden", "%s may not do that with any name", who.label())
			if to.right == breaks && r.Method == http.MethodPost {
				h.site.breaker.refused(r, who, p)
			}
			return p
		}
	}
	return to.serve(h.site, w, limited(w, r), who)
}

// wantsPage reports whether a browser asks for something to show.
func wantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.Contains(r.URL.Path, "/v1/")
}
