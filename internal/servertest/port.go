package servertest

import (
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
