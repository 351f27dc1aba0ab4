package serve

import "net"

// reachable returns the hosts in a request that mean this server: those that the options name, and
// the addresses that it listens on. Those of loopback do in any case. A page of another site that
// has bound its name to the address of this server sends its own name.
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
