package wire

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Loopback listens on a free port of 127.0.0.1 below those that the kernel gives to outgoing
// connections. A port from their range could be taken by any client while its server is down; a
// client that dials it may even reach itself. Nor is it one that another test marks as its own, by
// a socket for datagrams on the same port, while nothing listens there.
func Loopback() (net.Listener, error) {
	l, mark, err := reserve()
	if err != nil {
		return nil, err
	}
	_ = mark.Close()
	return l, nil
}

// reserve is Loopback with the port marked, before and after the listener is closed.
func reserve() (l net.Listener, mark net.PacketConn, err error) {
	const first, last, attempts = 10_000, 32_767, 100
	var errs []error
	for range attempts {
		l, mark, err := listen(fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first+1)))
		if err == nil {
			return l, mark, nil
		}
		errs = append(errs, err)
	}
	return nil, nil, fmt.Errorf("wire: found no free port in %d attempts: %w", attempts, errors.Join(errs[:3]...))
}

// listen listens where nobody does, and nobody has marked the port.
func listen(addr string) (l net.Listener, mark net.PacketConn, err error) {
	if mark, err = net.ListenPacket("udp4", addr); err != nil {
		return nil, nil, err
	}
	if l, err = net.Listen("tcp", addr); err != nil {
		_ = mark.Close()
		return nil, nil, err
	}
	return l, mark, nil
}
