package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// problemPage explains each kind of problem; package web has the same kinds.
const problemPage = "https://github.com/interlock-go/interlock/blob/main/docs/web.md#"

// problem answers by a problem document, RFC 9457.
func problem(w http.ResponseWriter, status int, kind, title, format string, args ...any) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct { // the client may have gone
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{problemPage + kind, title, status, fmt.Sprintf(format, args...)})
}

// protect sets the header fields that every answer of this package has.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; img-src 'self'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // or the form of the login comes without its origin
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Interlock-Version", "1") // as package web does: programs are answered by both
}

// only reports whether a request has one of these methods, and answers it by 405 if not. GET
// includes HEAD.
func only(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	allow := ""
	for _, m := range methods {
		if r.Method == m || m == http.MethodGet && r.Method == http.MethodHead {
			return true
		}
		if allow != "" {
			allow += ", "
		}
		allow += m
		if m == http.MethodGet {
			allow += ", HEAD"
		}
	}
	w.Header().Set("Allow", allow)
	problem(w, http.StatusMethodNotAllowed, "method", "Another method is wanted", "want %s", allow)
	return false
}
