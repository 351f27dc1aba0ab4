package servertest

import (
	"context"
	"slices"
	"strconv"
)

// Start starts one Redis and returns when it accepts connections. Where the port is its own choice
// and somebody else takes it first, Start chooses again. The context bounds the start only.
func Start(ctx context.Context, o Options) (*Server, error) { return start(ctx, redis, o) }

// Redis starts one server for the test and closes it at the test's end. The arguments have the form
// "--appendonly", "yes".
func Redis(t TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return Start(ctx, Options{Args: args}) })
}

var redis = program{
	command: "redis-server", ready: "Ready to accept connections", tls: true,
	args: func(s *Server) ([]string, error) {
		args := slices.Concat([]string{
			"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.dir, "--daemonize", "no",
			"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction",
			"--enable-debug-command", "yes",
			// A replica gets its copy at once instead of after five seconds and a first sign of
			// life after one instead of ten, and one that is stuck holds up no shutdown for ten.
			"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", "--shutdown-timeout", "1",
		}, s.o.Args)
		if !s.o.TLS {
			return args, nil
		}
		return append(args,
			"--port", "0", "--tls-port", strconv.Itoa(s.port), "--tls-auth-clients", "no",
			"--tls-cert-file", s.CertFile(), "--tls-key-file", s.keyFile(), "--tls-ca-cert-file", s.CertFile(),
		), s.certify()
	},
	url: func(s *Server) string {
		if s.o.TLS {
			return "rediss://" + s.Addr()
		}
		return "redis://" + s.Addr()
	},
}

// redisWith is a Redis that is called with other arguments.
func redisWith(args func(s *Server) ([]string, error)) program {
	p := redis
	p.args = args
	return p
}
