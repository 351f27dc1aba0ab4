// Package ports finds ports of the loopback interface for servers, and reserves them.
package ports

import (
	"fmt"
	"net"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// Free returns a port of the loopback interface on which nothing listens. It is not reserved: a
// server that finds it taken asks again.
func Free() (int, error) {
	l, err := wire.Loopback()
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Reserved are ports that no other test gets, also while nothing listens there, as before a
// server's restart. The zero value has none. It is not for concurrent use.
type Reserved struct {
	marks []net.PacketConn
}

// Add returns a free port and reserves it.
func (r *Reserved) Add() (port int, err error) {
	const attempts = 5 // each is lost only to a process that looks at this port just now
	for range attempts {
		var l net.Listener
		if l, err = wire.Loopback(); err != nil {
			return 0, err
		}
		port = l.Addr().(*net.TCPAddr).Port
		err = r.Keep(port)
		_ = l.Close() // only now: until it was marked another could have taken it
		if err == nil {
			return port, nil
		}
	}
	return 0, err
}

// Keep reserves the port, in the way that wire.Loopback heeds.
func (r *Reserved) Keep(port int) error {
	mark, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("servertest: port %d is kept by another test: %w", port, err)
	}
	r.marks = append(r.marks, mark)
	return nil
}

// Release gives all ports back.
func (r *Reserved) Release() {
	for _, mark := range r.marks {
		_ = mark.Close()
	}
	r.marks = nil
}
