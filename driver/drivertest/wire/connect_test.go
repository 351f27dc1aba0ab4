package wire

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// A client that was accepted in the moment of Refuse has not come through.
func TestRefuseIsForThoseJustAcceptedToo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := New(t, l.Addr().String())
	w.Refuse()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	w.connect(accepted.(*net.TCPConn))
	if _, err := io.ReadFull(client, make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client sees %v, want a reset", err)
	}
	if n := w.Count(); n != (Counts{}) {
		t.Errorf("counted %+v", n)
	}
}

// Close does not wait for a server that does not answer.
func TestCloseGivesUpDialling(t *testing.T) {
	w := New(t, silent(t))
	c, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for end := time.Now().Add(dialLimit / 2); w.Count().Open == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the connection is not accepted")
		}
	}
	start := time.Now()
	w.Close()
	if took := time.Since(start); took > dialLimit/2 {
		t.Errorf("Close took %v", took)
	}
}

// silent returns an address whose kernel drops what asks to connect: the line of those who wait to
// be accepted is full.
func silent(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}).String()
	for {
		c, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
}
