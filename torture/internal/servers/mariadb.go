//go:build linux || darwin

package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/mysqllock"
)

// mariadb is one MariaDB with the tables of mysqllock.
type mariadb struct {
	usual
	server   *servertest.Server
	query    string // what the store's URL has besides
	shedlock bool   // the locks are in ShedLock's table
}

// startMariaDB starts one that writes down what it commits before it says so. Its clock is the
// machine's: one that is set apart from the kernel's ends its own waits at once, and the server by
// that.
func startMariaDB(ctx context.Context, name, query string) (kind, error) {
	s, err := servertest.StartMariaDB(ctx, servertest.Options{Args: []string{"--innodb-flush-method=fsync"}})
	if err != nil {
		return nil, err
	}
	m := &mariadb{server: s, query: query, shedlock: name == ShedMariaDB}
	err = m.as("root", func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "create user nobody")
		if err = errors.Join(err, mysqllock.Migrate(ctx, db, nil)); err != nil || !m.shedlock {
			return err
		}
		_, err = db.ExecContext(ctx, shedlockTable)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return m, nil
}

func (m *mariadb) url() string {
	u := m.server.URL()
	if m.query != "" {
		u += "?" + m.query
	}
	if m.shedlock {
		u = "shedlock+" + u
	}
	return u
}

func (m *mariadb) nodes() []*servertest.Server { return []*servertest.Server{m.server} }
func (m *mariadb) proxied() []string           { return addrs(m.nodes()) }
func (m *mariadb) tells() bool                 { return !ofConnections(m.query) }
func (m *mariadb) close() error                { return m.server.Close() }

// spare is the rest of a second for locks that live with connections, which the server ends by
// whole seconds.
func (m *mariadb) spare(ttl time.Duration) time.Duration {
	if !ofConnections(m.query) {
		return 0
	}
	return (ttl + time.Second - 1).Truncate(time.Second) - ttl + 100*time.Millisecond
}

// entries leaves out sessions whose time is over, as in a PostgreSQL.
func (m *mariadb) entries(ctx context.Context) (n int, err error) {
	err = m.as("root", func(db *sql.DB) error {
		var tables sql.NullString
		err := db.QueryRowContext(ctx, "select group_concat(concat('`', table_schema, '`.`', table_name, '`')) from information_schema.tables "+
			"where table_schema not in ('mysql', 'sys', 'information_schema', 'performance_schema') and table_type = 'BASE TABLE'").Scan(&tables)
		if err != nil || !tables.Valid {
			return err
		}
		for table := range strings.SplitSeq(tables.String, ",") {
			var rows int
			if err := db.QueryRowContext(ctx, "select count(*) from "+table).Scan(&rows); err != nil {
				return err
			}
			n += rows
		}
		if m.shedlock {
			return nil
		}
		var over int
		err = db.QueryRowContext(ctx, "select count(*) from interlock_session where valid_until < timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))").Scan(&over)
		n -= over
		return err
	})
	return n, err
}

// as calls do with a pool of connections of a user.
func (m *mariadb) as(user string, do func(*sql.DB) error) error {
	c, _, err := mysqllock.ParseURL(strings.Replace(m.server.URL(), "root@", user+"@", 1))
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

func (m *mariadb) harm(ctx context.Context, i *Injector, fault string) error {
	switch fault {
	case FaultPause:
		return i.pause(ctx, m.server)
	case FaultRestart:
		return i.restart(ctx, m.server)
	case FaultTerminate:
		i.note("ends half of its connections")
		return m.as("root", func(db *sql.DB) error { return killHalf(ctx, db) })
	case FaultExhaust:
		return m.as("nobody", func(db *sql.DB) error {
			return i.takeAll(ctx, func() (closeConn func() error, err error) {
				c, err := db.Conn(ctx)
				if err != nil {
					return nil, err
				}
				return c.Close, nil
			})
		})
	}
	return fmt.Errorf("torture: no fault %q of a MariaDB", fault)
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
