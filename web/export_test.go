package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// Routes returns the method and the path of each route.
func (h *Handler) Routes() (all []string) {
	for path, methods := range h.routes {
		for method := range methods {
			all = append(all, method+" "+path)
		}
	}
	return all
}

// Observe calls f for each request that reaches a route, with the route's method and path.
func (h *Handler) Observe(f func(route string)) {
	for path, methods := range h.routes {
		for method, to := range methods {
			seen := *to
			serve := to.serve
			seen.serve = func(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
				f(method + " " + path)
				return serve(s, w, r, who)
			}
			methods[method] = &seen
		}
	}
}

// Kinds returns the kinds of problems.
func Kinds() (all []string) {
	for kind := range kinds {
		all = append(all, kind)
	}
	return all
}

// Undescribed returns where an answer is not as openapi.json describes those to GET requests of a
// path.
func Undescribed(path string, status int, text []byte) []string {
	var d described
	if err := json.Unmarshal(openAPIFile, &d); err != nil {
		return []string{err.Error()}
	}
	content, ok := d.Paths[path]["get"].Responses[strconv.Itoa(status)]
	if !ok {
		return []string{fmt.Sprintf("no answer %d to GET %s is described", status, path)}
	}
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		return []string{err.Error()}
	}
	return d.faults(path, content.Content["application/json"].Schema, got)
}
