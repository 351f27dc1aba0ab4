package mysqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/mysqllock"
)

// front is a name by which clients reach one server or, after a failover, another one.
type front struct {
	to    atomic.Pointer[servertest.Server]
	dials atomic.Int64
}

// pool is one of connections that are dialled by the name, as a user whom read_only binds, which
// root is not.
func (f *front) pool(t *testing.T) *sql.DB {
	t.Helper()
	c, _, err := mysqllock.ParseURL(strings.Replace(f.to.Load().URL(), "root@", "app@", 1))
	if err != nil {
		t.Fatal(err)
	}
	c.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
		f.dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, f.to.Load().Addr())
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (f *front) user(t *testing.T) driver.Session {
	t.Helper()
	d, err := mysqllock.New(t.Context(), f.pool(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := session(t, d, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A primary is lost, and a replica that lacks its last commits takes its place: who held a lock is
// told that it is gone, and tokens grow.
func TestS18_AReplicaIsPromoted(t *testing.T) {
	t.Parallel()
	primary := migrated(t, "--log-bin=log", "--server-id=1", "--binlog-format=ROW")
	replica := servertest.MariaDB(t, "--log-bin=log", "--server-id=2", "--read-only=1")
	execute(t, primary, "create user app", "grant all on test.* to app")
	execute(t, replica, fmt.Sprintf("change master to master_host = '127.0.0.1', master_port = %d, master_user = 'root', master_use_gtid = slave_pos", primary.Port()), "start slave")
	var f front
	f.to.Store(primary)
	a, lasts := f.user(t), f.user(t)
	for _, c := range []driver.Claim{mutex("failover"), mutex("lasts")} {
		asks(t, a, c, true)
		leaves(t, a, c, true)
	}
	kept := mutex("lasts")
	asks(t, lasts, kept, true)
	if n := ask[int](t, replica, fmt.Sprintf("select master_gtid_wait('%s', 30)", ask[string](t, primary, "select @@gtid_binlog_pos"))); n != 0 {
		t.Fatal("the replica does not follow")
	}
	execute(t, replica, "stop slave")
	mine := mutex("failover")
	last := asks(t, a, mine, true).Fence
	f.to.Store(replica)
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		before := f.dials.Load()
		if _, err := a.Renew(t.Context()); !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "want its primary") {
			t.Errorf("Renew at the replica: %v; want that it is read-only", err)
		}
		if f.dials.Load() == before {
			t.Error("a request to a server that was read-only did not dial anew")
		}
	}
	execute(t, replica, "reset slave all", "set global read_only = 0")
	if r, err := a.Renew(t.Context()); err != nil || len(r.Lost) != 1 || r.Lost[0].ID != mine.ID {
		t.Errorf("after the failover the holder hears %+v, %v; want that his claim is lost", r, err)
	}
	if r, err := lasts.Renew(t.Context()); err != nil || len(r.Lost) != 0 {
		t.Errorf("who held before hears %+v, %v; want that he still does", r, err)
	}
	b, next := f.user(t), mutex("failover")
	if g := asks(t, b, next, true); g.Fence < last+driver.Stride {
		t.Errorf("token %d after %d, which the lost primary gave", g.Fence, last)
	}
	leaves(t, b, next, true)
	leaves(t, lasts, kept, true)
}

// A server that has become read-only, be it by its setting or for good, is left: the next request
// dials anew.
func TestReadOnlyServerIsLeft(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	execute(t, s, "create user app", "grant all on test.* to app")
	var f front
	f.to.Store(s)
	a, mine := f.user(t), mutex("left")
	asks(t, a, mine, true)
	create := created(t, s, "show create procedure interlock_renew")
	for errno, breaks := range map[int][2]string{
		1290: {"set global read_only = 1", "set global read_only = 0"},
		1836: {
			"create or replace procedure interlock_renew(a varbinary(22), b longblob, c int) signal sqlstate 'HY000' set mysql_errno = 1836, message_text = 'Running in read-only mode'",
			strings.Replace(create, "CREATE", "CREATE OR REPLACE", 1),
		},
	} {
		execute(t, s, breaks[0])
		for range 2 {
			before := f.dials.Load()
			var e *mysql.MySQLError
			if _, err := a.Renew(t.Context()); !errors.Is(err, driver.ErrNotSent) || !errors.As(err, &e) || int(e.Number) != errno || !strings.Contains(err.Error(), "want its primary") {
				t.Errorf("%d: %v; want that the server is read-only", errno, err)
			}
			if r, err := a.Renew(t.Context()); err == nil {
				t.Errorf("%d: renewed: %+v", errno, r)
			}
			if n := f.dials.Load() - before; n == 0 {
				t.Errorf("%d: a connection to a server that was read-only is used again", errno)
			}
		}
		execute(t, s, breaks[1])
		if r, err := a.Renew(t.Context()); err != nil || len(r.Lost) != 0 {
			t.Errorf("%d is over: %+v, %v", errno, r, err)
		}
	}
	leaves(t, a, mine, true)
}

// created returns the statement that SHOW CREATE PROCEDURE answers.
func created(t *testing.T, s *servertest.Server, query string) (text string) {
	t.Helper()
	var skip sql.NullString
	if err := pool(t, s.URL()).QueryRowContext(t.Context(), query).Scan(&skip, &skip, &text, &skip, &skip, &skip); err != nil {
		t.Fatal(err)
	}
	return text
}

// Servers on which locks would not exclude, or not be kept, are refused with the reason where their
// settings show it.
func TestS15_ServersThatAreRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		kind error
		says string
	}{
		"--wsrep-on=ON":        {driver.ErrRefused, "wsrep_on is ON: the server is a node of a Galera cluster"},
		"--innodb-read-only=1": {driver.ErrNotSent, "the server is read-only: want its primary"},
		"--read-only=1":        {driver.ErrNotSent, "the server is read-only: want its primary"},
	} {
		s := servertest.MariaDB(t, args)
		if _, err := enter(t, s.URL(), time.Minute); !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v; want %s", args, err, want.says)
		}
	}
}
