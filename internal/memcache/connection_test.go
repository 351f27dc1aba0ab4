package memcache

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// What nobody asked for is no answer to the next request.
func TestAnAnswerTooManyEndsAConnection(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	go func() {
		_, _ = io.CopyN(io.Discard, theirs, int64(len("mn\r\n")))
		_, _ = io.WriteString(theirs, "MN\r\nHD c7\r\n")
	}()
	c := connected(ours)
	if r, err := c.send(Nothing(), time.Minute).read(); err != nil || r.Status != Alive || c.alive() {
		t.Errorf("read %+v, %v; the connection goes on: %v", r, err, c.alive())
	}
}

func connected(n net.Conn) *connection {
	last := make(chan struct{})
	close(last)
	return &connection{Conn: n, r: bufio.NewReader(n), last: last}
}

// The answer to a request whose caller is back is read in the time of that request, whatever
// deadline stands there from the one before.
func TestAnAnswerIsReadInItsOwnTime(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	go func() {
		_, _ = io.CopyN(io.Discard, theirs, int64(len("mn\r\n")))
		_, _ = io.WriteString(theirs, "MN\r\n")
	}()
	c := connected(ours)
	_ = c.SetReadDeadline(time.Unix(1, 0))
	if r, err := c.send(Nothing(), time.Minute).read(); err != nil || r.Status != Alive {
		t.Errorf("read %+v, %v; want the answer", r, err)
	}
}
