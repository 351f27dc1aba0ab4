package servertest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// StartPostgres starts one PostgreSQL and returns when it accepts connections. Its superuser is postgres, without a password.
// The arguments have the form "-c", "fsync=on".
//
// It does not call fsync unless told to: a process that is killed loses nothing by that, only a machine would.
func StartPostgres(ctx context.Context, o Options) (*Server, error) {
	if o.TLS {
		return nil, fmt.Errorf("servertest: only a single Redis speaks TLS: leave Options.TLS unset")
	}
	return start(ctx, postgres, o)
}

var postgres = program{
	command: "postgres", ready: "database system is ready to accept connections", end: syscall.SIGINT, quit: syscall.SIGQUIT, as: ordinary,
	again: "is still in use", // the backends of a killed server go a moment after it
	args: func(s *Server) ([]string, error) {
		if err := s.fill(postgresFiles, "PG_VERSION"); err != nil {
			return nil, err
		}
		return slices.Concat([]string{
			"-D", s.dir, "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
			"-c", "shared_buffers=16MB", "-c", "max_connections=400", "-c", "fsync=off", "-c", "autovacuum=off", "-c", "max_wal_senders=0", "-c", "wal_level=minimal",
		}, s.o.Args), nil
	},
	url: func(s *Server) string { return "postgres://postgres@" + s.Addr() + "/postgres?sslmode=disable" },
}

// account is who a server runs as.
type account struct{ uid, gid int }

// ordinary is who a server runs as that refuses to run as root: the user that its package brings. It is nil where this
// process is not root's.
func ordinary() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nobody else
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			continue
		}
		gid, err := strconv.Atoi(u.Gid)
		if err == nil {
			return &account{uid, gid}, nil
		}
	}
	return nil, fmt.Errorf("servertest: databases refuse to run as root, and there is no user postgres or nobody")
}

// find returns the path of a program. Debian keeps those of PostgreSQL out of everybody's way, and servers where only root looks.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/lib/postgresql/*/bin/", "/usr/sbin/"} {
		if all, _ := filepath.Glob(dir + name); len(all) > 0 {
			return all[len(all)-1], nil
		}
	}
	return "", err
}

// postgresFiles is a fresh cluster of databases, without the maps of free and of visible pages: a quarter of all files, which the server makes
// anew when it wants them.
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

// own gives a file to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}
