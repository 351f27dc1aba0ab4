package mysqlwire

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// stream is what is below a client that speaks in the clear.
type stream struct {
	net.Conn
	first []byte // of an answer, read ahead of the client
	sent  bool   // the client's next query was sent
	late  bool   // a deadline has passed while the client read
}

// longest is how long the rest of an answer may take.
const longest = 3 * time.Second

// Read has the client read a whole answer, whoever is to be interrupted: it would give up the connection.
func (s *stream) Read(to []byte) (n int, err error) {
	if len(s.first) > 0 {
		n = copy(to, s.first)
		s.first = s.first[n:]
		return n, nil
	}
	var end time.Time
	for {
		n, err = s.Conn.Read(to)
		switch {
		case n > 0 || !errors.Is(err, os.ErrDeadlineExceeded):
			return n, err
		case end.IsZero():
			end = time.Now().Add(longest)
		case time.Now().After(end):
			return n, err
		}
		s.late = true
		_ = s.SetReadDeadline(end)
	}
}

// Write implements net.Conn.
func (s *stream) Write(b []byte) (int, error) {
	if s.sent {
		s.sent = false
		return len(b), nil
	}
	return s.Conn.Write(b)
}

// send sends a command to the server past the client, in one packet: its length in three bytes, the number 0, what it is.
func (s *stream) send(command byte, text string) error {
	n := len(text) + 1
	_, err := s.Conn.Write(append([]byte{byte(n), byte(n >> 8), byte(n >> 16), 0, command}, text...)) //nolint:gosec // byte by byte
	return err
}

// await reads the first bytes of an answer. A deadline interrupts it, now or while the client read what came before.
func (s *stream) await() error {
	if s.late {
		s.late = false
		return os.ErrDeadlineExceeded
	}
	buffer := make([]byte, 512)
	n, err := s.Conn.Read(buffer)
	if s.first = buffer[:n]; n > 0 {
		return nil
	}
	return err
}

// below is the key of a context for where the stream is to be put.
type below struct{}

// Dial is to be a client's DialFunc, whose connections then are fit for [Connect]: not by TLS.
func Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	nc, err := d.DialContext(ctx, network, addr)
	to, wanted := ctx.Value(below{}).(**stream)
	if err != nil || !wanted {
		return nc, err
	}
	*to = &stream{Conn: nc}
	return *to, nil
}
