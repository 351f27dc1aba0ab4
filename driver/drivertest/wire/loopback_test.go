package wire

import (
	"net"
	"testing"
)

// A port that a test has marked as its own, by a socket for datagrams, is nobody else's while nothing listens there.
func TestAMarkedPortIsNotFree(t *testing.T) {
	l, err := Loopback()
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	mark, err := net.ListenPacket("udp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer mark.Close()
	_ = l.Close()
	if l, err := listen(addr); err == nil {
		_ = l.Close()
		t.Errorf("%s is marked, and was taken for a free one", addr)
	}
}
