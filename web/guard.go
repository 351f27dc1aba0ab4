package web

import "net/http"

// maxBody is how many bytes a body may have. Only a break has one.
const maxBody = 16 << 10

// policy lets a page load what this handler serves, and run no script that is in the page itself. A
// script may make elements of text only by the policy named interlock, which the page's own script
// uses for what its stream brings.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types interlock"

// protect sets the header fields that every answer has.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Interlock-Version", "1")
}
