package servertest

import (
	"fmt"
	"net"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// FreePort returns a port of the loopback interface on which nothing listens. It is not reserved: a server that finds it
// taken asks again.
func FreePort() (int, error) {
	l, err := wire.Loopback()
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// freePort is FreePort for the server, which keeps it until it is closed: also while nothing listens there, as before its restart.
func (s *Server) freePort() (port int, err error) {
	const attempts = 5 // each is lost only to a process that takes the port between our look and this
	for range attempts {
		if port, err = FreePort(); err != nil {
			return 0, err
		}
		if err = s.keep(port); err == nil {
			break
		}
	}
	return port, err
}

// keep marks a port as wire.Loopback says.
func (s *Server) keep(port int) error {
	mark, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("servertest: port %d is kept by another test: %w", port, err)
	}
	s.marks = append(s.marks, mark)
	return nil
}

// release lets others have the ports.
func (s *Server) release() {
	for _, mark := range s.marks {
		_ = mark.Close()
	}
	s.marks = nil
}
