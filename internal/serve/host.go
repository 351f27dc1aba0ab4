package serve

import (
	"net"
	"net/netip"
	"strings"
)

// reachable are the hosts in a request that mean this server: those that the options name, and the addresses that it listens on. Those of loopback
// do in any case. A page of another site that has bound its name to the address of this server sends its own name.
func reachable(hosts []string, listeners []net.Listener) (all []string) {
	all = append(all, hosts...)
	for _, l := range listeners {
		a, ok := l.Addr().(*net.TCPAddr)
		if !ok || a.IP.IsLoopback() {
			continue
		}
		if !a.IP.IsUnspecified() {
			all = append(all, a.IP.String())
			continue
		}
		own, err := net.InterfaceAddrs()
		if err != nil {
			continue // then hosts are all
		}
		for _, n := range own {
			if n, ok := n.(*net.IPNet); ok && !n.IP.IsLoopback() {
				all = append(all, n.IP.String())
			}
		}
	}
	return all
}

// isHost reports whether a request's Host is one of those, by its name and, where it is said, by its port.
func isHost(host string, hosts []string) bool {
	name, port := splitHost(host)
	if name == "localhost" {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.Unmap().IsLoopback() {
		return true
	}
	if name == "" {
		return false
	}
	for _, h := range hosts {
		if n, p := splitHost(h); n == name && (p == "" || p == port) {
			return true
		}
	}
	return false
}

// splitHost returns the name of a host, in small letters and without brackets, and its port. What is no host has no name.
func splitHost(host string) (name, port string) {
	name = host
	if n, p, err := net.SplitHostPort(host); err == nil {
		name, port = n, p
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		name = strings.TrimSuffix(inner, "]")
	}
	if strings.Trim(port, "0123456789") != "" {
		return "", ""
	}
	return strings.TrimSuffix(strings.ToLower(name), "."), port
}
