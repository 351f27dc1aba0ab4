package servertest

import (
	"context"
	"slices"
	"strconv"
)

// StartMemcached starts one memcached and returns when it accepts connections. The arguments have
// the form "-m", "4".
func StartMemcached(ctx context.Context, o Options) (*Server, error) {
	return start(ctx, memcached, o)
}

// Memcached starts one memcached for the test and closes it at the test's end. The arguments have
// the form "-m", "4".
func Memcached(t TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return StartMemcached(ctx, Options{Args: args}) })
}

// memcached keeps nothing: its Restart begins with nothing. It says that it listens only where it
// says much, in one line for each socket.
var memcached = program{
	command: "memcached", ready: "server listening",
	args: func(s *Server) ([]string, error) {
		return slices.Concat([]string{"-l", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "0", "-u", "nobody", "-vv"}, s.o.Args), nil
	},
	url: func(s *Server) string { return "memcached://" + s.Addr() },
}
