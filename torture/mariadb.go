//go:build linux || darwin

package torture

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

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
		return atMariaDB(s, "nobody", func(db *sql.DB) error { return h.takeAll(ctx, db) })
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

// takeAll takes all connections that the server has left but the one for a superuser, for half to three times the TTL.
func (h *havoc) takeAll(ctx context.Context, db *sql.DB) error {
	var mu sync.Mutex
	var all []*sql.Conn
	var dialling sync.WaitGroup
	for range 8 {
		dialling.Go(func() {
			for ctx.Err() == nil {
				c, err := db.Conn(ctx)
				if err != nil {
					return
				}
				mu.Lock()
				all = append(all, c)
				mu.Unlock()
			}
		})
	}
	dialling.Wait()
	h.note("has no connection left: others have taken %d", len(all))
	pause(h.some(0.5, 3), ctx.Done())
	var errs []error
	for _, c := range all {
		errs = append(errs, c.Close())
	}
	h.note("has connections again")
	return errors.Join(errs...)
}
