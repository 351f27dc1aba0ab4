package memcache

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// The answer to a request whose caller is back is read in the time of that request, whatever deadline stands there from the one before.
func TestAnAnswerIsReadInItsOwnTime(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	go func() {
		_, _ = io.CopyN(io.Discard, theirs, int64(len("mn\r\n")))
		_, _ = io.WriteString(theirs, "MN\r\n")
	}()
	last := make(chan struct{})
	close(last)
	c := &connection{Conn: ours, r: bufio.NewReader(ours), last: last}
	_ = c.SetReadDeadline(time.Unix(1, 0))
	if r, err := c.send(Nothing(), time.Minute).read(); err != nil || r.Status != Alive {
		t.Errorf("read %+v, %v; want the answer", r, err)
	}
}
