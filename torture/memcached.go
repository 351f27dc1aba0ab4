//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// raiseMemcached starts one, which writes down nothing of what it is asked.
func raiseMemcached(ctx context.Context) (*servertest.Server, error) {
	s, err := servertest.StartMemcached(ctx, servertest.Options{})
	if err == nil {
		err = tellMemcached(s, "verbosity 0")
	}
	return s, err
}

// tellMemcached sends a command that is answered by OK.
func tellMemcached(s *servertest.Server, command string) error {
	conn, err := net.DialTimeout("tcp", s.Addr(), 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	answer := make([]byte, len("OK\r\n"))
	_, err = conn.Write([]byte(command + "\r\n"))
	if err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	if err == nil && string(answer) != "OK\r\n" {
		err = fmt.Errorf("torture: memcached answers %q to %s", answer, command)
	}
	return err
}

// harmMemcached does one thing to it.
func (h *havoc) harmMemcached(ctx context.Context, kind string) error {
	switch kind {
	case FaultPause:
		return h.pause(ctx, h.servers.memcached)
	case FaultEvict:
		defer h.note("drops every key")
		return tellMemcached(h.servers.memcached, "flush_all")
	}
	return errors.New("torture: no fault " + kind + " of a memcached")
}
