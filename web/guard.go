package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// maxBody is the most bytes that a body may have: that of a break is the only one there is.
const maxBody = 16 << 10

// policy lets a page load what this handler serves, and run nothing that stands in it. Scripts may make elements of text only by the policy of
// that name, which the page's own script uses for what its stream brings.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types interlock"

// protect sets what every answer has, whatever it is.
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

// knownHost reports whether a request's Host is one by which this server is called. A page of another site that has bound its own name
// to the address of this server sends that name, and passes every check of origins: to the browser it is the server's own page.
func (h *Handler) knownHost(host string) bool {
	name, port := splitHost(host)
	if name == "localhost" {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.Unmap().IsLoopback() {
		return true
	}
	return name != "" && slices.ContainsFunc(h.opts.Hosts, func(allowed string) bool {
		n, p := splitHost(allowed)
		return n == name && (p == "" || p == port)
	})
}

// splitHost returns the host in small letters, an IPv6 address without brackets, and the port, if there is one. What is no host is "".
func splitHost(host string) (name, port string) {
	name = host
	if n, p, err := net.SplitHostPort(host); err == nil {
		name, port = n, p
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		if name, ok = strings.CutSuffix(inner, "]"); !ok {
			return "", ""
		}
	} else if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return "", ""
		}
	}
	return strings.TrimSuffix(strings.ToLower(name), "."), port
}
