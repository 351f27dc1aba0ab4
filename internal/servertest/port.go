package servertest

import (
	"fmt"
	"net"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// Nobody returns an address at which nobody listens until the test ends.
func Nobody(t TB) (addr string) {
	t.Helper()
	s := &Server{}
	port, err := s.freePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.release)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

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
	const attempts = 5 // each is lost only to a process that looks at this port just now
	for range attempts {
		var l net.Listener
		if l, err = wire.Loopback(); err != nil {
			return 0, err
		}
		port = l.Addr().(*net.TCPAddr).Port
		err = s.keep(port)
		_ = l.Close() // only now: until it was marked another could have taken it
		if err == nil {
			return port, nil
		}
	}
	return 0, err
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
