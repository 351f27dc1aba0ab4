package servertest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/interlock-go/interlock/internal/servertest/internal/process"
)

// StartPostgres starts one PostgreSQL and returns when it accepts connections. Its superuser is
// postgres, without a password. The arguments have the form "-c", "fsync=on".
//
// It does not call fsync unless told to: a process that is killed loses nothing by that, only a
// machine would.
func StartPostgres(ctx context.Context, o Options) (*Server, error) {
	return start(ctx, postgres, o)
}

// Postgres starts one PostgreSQL for the test and closes it at the test's end. The arguments have
// the form "-c", "fsync=on".
func Postgres(t TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return StartPostgres(ctx, Options{Args: args}) })
}

var postgres = program{
	command: "postgres", ready: "database system is ready to accept connections", end: syscall.SIGINT, quit: syscall.SIGQUIT, as: process.Unprivileged,
	again: "is still in use", // the backends of a killed server go a moment after it
	args: func(s *Server) ([]string, error) {
		if err := fill(s.dir, postgresFiles, pgVersion); err != nil {
			return nil, err
		}
		return slices.Concat([]string{
			"-D", s.dir, "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
			"-c", "shared_buffers=16MB", "-c", "max_connections=400", "-c", "fsync=off", "-c", "autovacuum=off", "-c", "max_wal_senders=0", "-c", "wal_level=minimal",
		}, s.o.Args), nil
	},
	url: func(s *Server) string { return "postgres://postgres@" + s.Addr() + "/postgres?sslmode=disable" },
}

// pgVersion is a file that every folder of a PostgreSQL has.
const pgVersion = "PG_VERSION"

// postgresFiles is a fresh cluster of databases, without the maps of free and of visible pages: a
// quarter of all files, which the server makes anew when it wants them.
var postgresFiles = sync.OnceValues(func() (map[string][]byte, error) {
	files, err := initdb()
	maps.DeleteFunc(files, func(name string, _ []byte) bool {
		return strings.HasSuffix(name, "_fsm") || strings.HasSuffix(name, "_vm")
	})
	return files, err
})

var initdb = template("initdb", "postgresql-15", func(dir string) []string {
	return []string{"-D", dir, "-U", "postgres", "-E", "UTF8", "--no-locale", "--auth", "trust", "--no-sync", "--wal-segsize=1"}
})
