package servertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// between is the pause between two looks at servers that agree among themselves and tell nobody when they have.
const between = 10 * time.Millisecond

// poll calls look until it returns nil, or the context ends; then the error says what was waited for and what was missing
// at the last look.
func poll(ctx context.Context, what string, look func() error) error {
	ticker := time.NewTicker(between)
	defer ticker.Stop()
	for {
		err := look()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("servertest: %s: %w; at the last look: %w", what, context.Cause(ctx), err)
		}
	}
}

// shows returns an error unless the command's reply contains the text.
func (s *Server) shows(text string, command ...string) error {
	got, err := s.Do(command...)
	if err == nil && !strings.Contains(got, text) {
		err = fmt.Errorf("the server at %s does not answer %q to %q:\n%s", s.Addr(), text, command, got)
	}
	return err
}

// feeds returns an error until the replica gets whatever is written to the server. When the replica has its copy and both
// say that it is online, that is not yet so: the stream begins with its first acknowledgement, up to a second later, and
// what is written before goes down with the server.
func (s *Server) feeds(replica *Server) error {
	got, err := s.Do("INFO", "replication")
	if err != nil {
		return err
	}
	_, offset, _ := strings.Cut(got, fmt.Sprintf(",port=%d,state=online,offset=", replica.port))
	if offset == "" || strings.HasPrefix(offset, "0,") {
		return fmt.Errorf("the server at %s does not feed its replica at %s:\n%s", s.Addr(), replica.Addr(), got)
	}
	return replica.shows("master_link_status:up", "INFO", "replication")
}

// together calls f for 0 to n-1 at once and returns what went wrong.
func together(n int, f func(i int) error) error {
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- f(i) }()
	}
	var all error
	for range n {
		all = errors.Join(all, <-errs)
	}
	return all
}

// closeAll closes those servers that were started, all at once.
func closeAll(servers ...*Server) error {
	return together(len(servers), func(i int) error {
		if servers[i] == nil {
			return nil
		}
		return servers[i].Close()
	})
}
