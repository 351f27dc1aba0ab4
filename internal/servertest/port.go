package servertest

import (
	"fmt"

	"github.com/interlock-go/interlock/internal/servertest/internal/ports"
)

// Nobody returns an address at which nobody listens until the test ends.
func Nobody(t TB) (addr string) {
	t.Helper()
	var reserved ports.Reserved
	port, err := reserved.Add()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reserved.Release)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// FreePort returns a port of the loopback interface on which nothing listens. It is not reserved: a
// server that finds it taken asks again.
func FreePort() (int, error) { return ports.Free() }
