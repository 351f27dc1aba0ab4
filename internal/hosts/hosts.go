// Package hosts says whether a request's Host names the server that it came to.
package hosts

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Known reports whether a request's Host is one by which the server is called: one of those allowed, by its name and, where that has one, by its
// port; a loopback address or localhost in any case. A page of another site that has bound its own name to the address of this server sends that
// name, and passes every check of origins: to the browser it is the server's own page.
func Known(host string, allowed []string) bool {
	name, port := Split(host)
	if name == "localhost" {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.Unmap().IsLoopback() {
		return true
	}
	return name != "" && slices.ContainsFunc(allowed, func(a string) bool {
		n, p := Split(a)
		return n == name && (p == "" || p == port)
	})
}

// Split returns the name of a host in small letters, an IPv6 address without brackets, and the port, if there is one. What is no host has no
// name.
func Split(host string) (name, port string) {
	name = host
	if n, p, err := net.SplitHostPort(host); err == nil {
		name, port = n, p
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		if name, ok = strings.CutSuffix(inner, "]"); !ok {
			return "", ""
		}
	}
	if strings.Trim(port, "0123456789") != "" {
		return "", ""
	}
	if _, err := netip.ParseAddr(name); err != nil && strings.ContainsAny(name, ":[]/@*?# ") {
		return "", ""
	}
	return strings.TrimSuffix(strings.ToLower(name), "."), port
}
