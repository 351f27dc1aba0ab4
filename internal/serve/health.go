package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// health answers /healthz, whether the process answers, and /readyz, whether every store does and
// the server will go on. Both are for everybody, by any Host, and say no more than that.
func (s *server) health(w http.ResponseWriter, r *http.Request, which string) {
	protect(w.Header())
	if !only(w, r, http.MethodGet) {
		return
	}
	type answer struct {
		Status string            `json:"status"`
		Stores map[string]string `json:"stores,omitempty"`
	}
	a, status := answer{Status: "ok"}, http.StatusOK
	if which == "/readyz" {
		a.Stores = map[string]string{}
		for i, up := range s.up(r.Context()) {
			a.Stores[s.stores[i].name] = "up"
			if !up {
				a.Stores[s.stores[i].name] = "down"
				a.Status, status = "not ready", http.StatusServiceUnavailable
			}
		}
		if s.draining.Load() {
			a.Status, status = "draining", http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a) // the client may have gone
}

// up asks all stores whether they answer.
func (s *server) up(ctx context.Context) []bool {
	up := make([]bool, len(s.stores))
	var all sync.WaitGroup
	for i, st := range s.stores {
		all.Go(func() { up[i] = st.ready(ctx) })
	}
	all.Wait()
	return up
}

// scrapeTime is how long a scrape waits for a list that is being read; after that it gets the one
// before, with its age.
const scrapeTime = 3 * time.Second

// metrics answers /metrics.
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	if !only(w, r, http.MethodGet) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), scrapeTime)
	defer cancel()
	lists := make([]listing, len(s.stores))
	var all sync.WaitGroup
	for i, st := range s.stores {
		all.Go(func() { lists[i] = st.listed(ctx) })
	}
	up := s.up(ctx)
	all.Wait()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if r.Method == http.MethodHead {
		return
	}
	_ = s.meters.write(w, s.stores, up, lists) // the client may have gone
}
