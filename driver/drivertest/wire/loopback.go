package wire

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Loopback listens on a free port of 127.0.0.1 below those that the kernel gives to outgoing connections. A port from
// their range could be taken by any client while its server is down; a client that dials it may even reach itself. Nor is it one that another
// test marks as its own, by a socket for datagrams on the same port, while nothing listens there.
func Loopback() (net.Listener, error) {
	const first, last, attempts = 10_000, 32_767, 100
	var errs []error
	for range attempts {
		l, err := listen(fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first+1)))
		if err == nil {
			return l, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("wire: found no free port in %d attempts: %w", attempts, errors.Join(errs[:3]...))
}

// listen listens where nobody does, and nobody has marked the port.
func listen(addr string) (net.Listener, error) {
	mark, err := net.ListenPacket("udp4", addr)
	if err != nil {
		return nil, err
	}
	defer mark.Close()
	return net.Listen("tcp", addr)
}
