package wire

import (
	"net"
	"testing"
)

// A port that a test has marked as its own, by a socket for datagrams, is nobody else's while
// nothing listens there.
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
	if l, other, err := listen(addr); err == nil {
		_, _ = l.Close(), other.Close()
		t.Errorf("%s is marked, and was taken for a free one", addr)
	}
}

// The port of a wire is its own until it is closed, also while it refuses connections.
func TestARefusingWireKeepsItsPort(t *testing.T) {
	w := New(t, "127.0.0.1:1")
	w.Refuse()
	if l, mark, err := listen(w.Addr()); err == nil {
		_, _ = l.Close(), mark.Close()
		t.Errorf("%s is a wire's, and was taken for a free one", w.Addr())
	}
	if err := w.Accept(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	l, mark, err := listen(w.Addr())
	if err != nil {
		t.Fatalf("the port of a wire that is closed: %v", err)
	}
	_, _ = l.Close(), mark.Close()
}
