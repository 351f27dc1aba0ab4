package servertest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
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
	command: "postgres", ready: "database system is ready to accept connections", end: syscall.SIGINT, as: ordinary,
	again: "is still in use", // the backends of a killed server go a moment after it
	args: func(s *Server) ([]string, error) {
		if err := s.cluster(); err != nil {
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
	return nil, fmt.Errorf("servertest: PostgreSQL refuses to run as root, and there is no user postgres or nobody")
}

// find returns the path of a program. Debian keeps those of PostgreSQL out of everybody's way.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(all) > 0 {
		return all[len(all)-1], nil
	}
	return "", err
}

// template is a fresh cluster of databases: what initdb makes, kept in memory so that no folder outlives the process.
var template = sync.OnceValues(func() (files map[string][]byte, err error) {
	as, err := ordinary()
	if err != nil {
		return nil, err
	}
	path, err := find("initdb")
	if err != nil {
		return nil, fmt.Errorf("servertest: initdb is needed to run this: install it (on Debian: apt-get install postgresql-15): %w", err)
	}
	dir, err := os.MkdirTemp("", "servertest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := as.own(dir); err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "-D", dir, "-U", "postgres", "-E", "UTF8", "--no-locale", "--auth", "trust", "--no-sync", "--wal-segsize=1")
	cmd.SysProcAttr = attributes(as)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("servertest: initdb: %w\n%s", err, out)
	}
	files = map[string][]byte{}
	return files, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || e.IsDir() {
			files[name] = nil
			return err
		}
		b, err := os.ReadFile(path)
		files[name] = append([]byte{}, b...)
		return err
	})
})

// cluster fills the server's folder at the first start.
func (s *Server) cluster() error {
	if _, err := os.Stat(filepath.Join(s.dir, "PG_VERSION")); err == nil {
		return nil
	}
	files, err := template()
	if err != nil {
		return err
	}
	as, err := ordinary()
	if err != nil {
		return err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names) // folders before what is in them
	for _, name := range names {
		path := filepath.Join(s.dir, name)
		if content := files[name]; content == nil {
			err = os.MkdirAll(path, 0o700)
		} else {
			err = os.WriteFile(path, content, 0o600)
		}
		if err == nil {
			err = as.own(path)
		}
		if err != nil {
			return fmt.Errorf("servertest: a folder for PostgreSQL: %w", err)
		}
	}
	return nil
}

// own gives a file to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}
