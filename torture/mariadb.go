//go:build linux || darwin

package torture

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/mysqllock"
)

// raiseMariaDB starts one, with the tables of mysqllock, which writes down what it commits before it says so. Its clock is the machine's: one
// that is set apart from the kernel's ends its own waits at once, and the server by that.
func raiseMariaDB(ctx context.Context) (s *servertest.Server, err error) {
	s, err = servertest.StartMariaDB(ctx, servertest.Options{Args: []string{"--innodb-flush-method=fsync"}})
	if err != nil {
		return nil, err
	}
	err = atMariaDB(s, "root", func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "create user nobody")
		return errors.Join(err, mysqllock.Migrate(ctx, db, nil))
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// atMariaDB does something with a pool of connections of its own.
func atMariaDB(s *servertest.Server, user string, do func(*sql.DB) error) error {
	c, _, err := mysqllock.ParseURL(strings.Replace(s.URL(), "root@", user+"@", 1))
	if err != nil {
		return err
	}
	if user != "root" {
		c.DBName = "" // of which he has no rights
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	return do(db)
}

// harmMariaDB does one thing to it.
func (h *havoc) harmMariaDB(ctx context.Context, kind string) error {
	s := h.servers.mariadb
	switch kind {
	case FaultPause:
		return h.pause(ctx, s)
	case FaultRestart:
		return h.restart(ctx, s)
	case FaultTerminate:
		h.note("ends half of its connections")
		return atMariaDB(s, "root", func(db *sql.DB) error { return killHalf(ctx, db) })
	case FaultExhaust:
		return atMariaDB(s, "nobody", func(db *sql.DB) error {
			return h.takeAll(ctx, func() (end func() error, err error) {
				c, err := db.Conn(ctx)
				if err != nil {
					return nil, err
				}
				return c.Close, nil
			})
		})
	}
	return fmt.Errorf("torture: no fault %q of a MariaDB", kind)
}

// killHalf ends half of the connections, as an administrator does.
func killHalf(ctx context.Context, db *sql.DB) error {
	var ids sql.NullString
	err := db.QueryRowContext(ctx, "select group_concat(id) from information_schema.processlist where id <> connection_id() and user = 'root' and rand() < 0.5").Scan(&ids)
	if err != nil {
		return err
	}
	for id := range strings.SplitSeq(ids.String, ",") {
		if id != "" {
			_, _ = db.ExecContext(ctx, "kill "+id) // it may have ended by itself
		}
	}
	return nil
}
