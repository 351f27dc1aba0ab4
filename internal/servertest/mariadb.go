package servertest

import (
	"context"
	"slices"
	"strconv"

	"github.com/interlock-go/interlock/internal/servertest/internal/process"
)

// StartMariaDB starts one MariaDB and returns when it accepts connections. Its superuser is root,
// without a password, and it has an empty database named test. The arguments have the form
// "--sql-mode=ANSI".
//
// It does not call fsync unless told to: a process that is killed loses nothing by that, only a
// machine would.
func StartMariaDB(ctx context.Context, o Options) (*Server, error) {
	return start(ctx, mariadb, o)
}

// MariaDB starts one MariaDB for the test and closes it at the test's end. The arguments have the
// form "--sql-mode=ANSI".
func MariaDB(t TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return StartMariaDB(ctx, Options{Args: args}) })
}

var mariadb = program{
	command: "mariadbd", ready: "ready for connections", as: process.Unprivileged,
	args: func(s *Server) ([]string, error) {
		if err := fill(s.dir, mariadbFiles, "ibdata1"); err != nil {
			return nil, err
		}
		return slices.Concat(small, []string{
			"--datadir=" + s.dir, "--tmpdir=" + s.dir, "--port=" + strconv.Itoa(s.port), "--bind-address=127.0.0.1", "--socket=", "--pid-file=" + s.dir + "/pid",
			"--max-connections=400", "--character-set-server=utf8mb4", "--innodb-buffer-pool-size=16M", "--innodb-buffer-pool-dump-at-shutdown=0",
			"--aria-pagecache-buffer-size=1M", "--key-buffer-size=1M",
		}, s.o.Args), nil
	},
	url: func(s *Server) string { return "mysql://root@" + s.Addr() + "/test" },
}

// small is what keeps the files small and quick to write, and the machine's own settings out.
var small = []string{
	"--no-defaults", "--skip-name-resolve", "--innodb-flush-method=nosync", "--innodb-data-file-path=ibdata1:5M:autoextend", "--innodb-autoextend-increment=1",
	"--innodb-log-file-size=4M", "--innodb-temp-data-file-path=ibtmp1:1M:autoextend",
}

// mariadbFiles is a fresh folder of a server. A folder in it is a database.
var mariadbFiles = template("mariadb-install-db", "mariadb-server-core", func(dir string) []string {
	return slices.Concat(small, []string{"--datadir=" + dir, "--tmpdir=" + dir, "--auth-root-authentication-method=normal", "--skip-test-db"})
}, "test")
