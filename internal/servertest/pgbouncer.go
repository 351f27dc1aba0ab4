package servertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/interlock-go/interlock/internal/servertest/internal/process"
)

// StartPgBouncer starts a PgBouncer in front of a PostgreSQL, which gives a connection of the
// server to a client for one transaction and then to another. The arguments have the form
// "pool_mode=session". Whoever connects is the server's superuser.
func StartPgBouncer(ctx context.Context, to *Server, o Options) (*Server, error) {
	return start(ctx, program{
		command: "pgbouncer", ready: "process up", as: process.Unprivileged, end: syscall.SIGINT,
		args: func(s *Server) ([]string, error) {
			file := filepath.Join(s.dir, "pgbouncer.ini")
			settings := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
				"unix_socket_dir =\nauth_type = any\npool_mode = transaction\n%s\n", to.Port(), s.port, strings.Join(s.o.Args, "\n"))
			if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
				return nil, fmt.Errorf("servertest: a file for PgBouncer: %w", err)
			}
			as, err := process.Unprivileged()
			if err != nil {
				return nil, err
			}
			for _, path := range []string{s.dir, file} {
				if err := as.Own(path); err != nil {
					return nil, fmt.Errorf("servertest: a file for PgBouncer: %w", err)
				}
			}
			return []string{file}, nil
		},
		url: postgres.url,
	}, o)
}

// PgBouncer starts one for the test and closes it at the test's end.
func PgBouncer(t TB, to *Server, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return StartPgBouncer(ctx, to, Options{Args: args}) })
}
