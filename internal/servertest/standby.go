package servertest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/interlock-go/interlock/internal/servertest/internal/process"
)

// Replicated are the arguments of a PostgreSQL that may have standbys.
var Replicated = []string{"-c", "wal_level=replica", "-c", "max_wal_senders=4"}

// StartStandby starts a standby of a PostgreSQL that was started with the arguments Replicated: a
// copy that follows it, asynchronously unless the primary is told otherwise, and answers what only
// reads. SELECT pg_promote() makes it a primary.
func StartStandby(ctx context.Context, primary *Server, o Options) (*Server, error) {
	o.Args = slices.Concat(primary.o.Args, o.Args) // it needs as many connections
	p := postgres
	p.ready = "database system is ready to accept" // read-only connections, or all
	p.args = func(s *Server) ([]string, error) {
		if err := s.copyOf(ctx, primary); err != nil {
			return nil, fmt.Errorf("servertest: a standby: %w", err)
		}
		return postgres.args(s)
	}
	return start(ctx, p, o)
}

// copyOf fills the server's folder at the first start.
func (s *Server) copyOf(ctx context.Context, primary *Server) error {
	if _, err := os.Stat(filepath.Join(s.dir, pgVersion)); err == nil {
		return nil
	}
	if err := process.Run(ctx, nil, "pg_basebackup", "postgresql", "-D", s.dir, "-R", "-X", "stream", "-c", "fast", "--no-sync",
		"-h", "127.0.0.1", "-p", strconv.Itoa(primary.port), "-U", "postgres"); err != nil {
		return err
	}
	as, err := process.Unprivileged()
	if err != nil {
		return err
	}
	return filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return as.Own(path)
	})
}

// Standby starts one for the test and closes it at the test's end.
func Standby(t TB, primary *Server, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return StartStandby(ctx, primary, Options{Args: args}) })
}
