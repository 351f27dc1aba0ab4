package mysqllock

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// pool returns one of connections to the database test of the superuser, with settings of the
// session.
func pool(t *testing.T, s *servertest.Server, settings map[string]string) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName, c.Logger, c.Params = "root", "tcp", s.Addr(), "test", &mysql.NopLogger{}, settings
	c.ClientFoundRows = settings["autocommit"] != ""
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// migrated starts a server that has the tables.
func migrated(t *testing.T, args ...string) *servertest.Server {
	t.Helper()
	s := servertest.MariaDB(t, args...)
	c, err := pool(t, s, nil).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements("interlock_") {
		if _, err := c.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%v\n%s", err, statement)
		}
	}
	return s
}

func execute(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// asks makes a statement and returns the fields of every row of its answers.
func asks(ctx context.Context, db *sql.DB, statement string) (all [][]string, err error) {
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for more := true; more; more = rows.NextResultSet() {
		columns, err := rows.Columns()
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			fields, to := make([]string, len(columns)), make([]any, len(columns))
			for i := range fields {
				to[i] = &fields[i]
			}
			if err := rows.Scan(to...); err != nil {
				return nil, err
			}
			all = append(all, fields)
		}
	}
	return all, rows.Err()
}

// client is a session as the driver will have it, without what the driver does for its callers:
// every method is one statement.
type client struct {
	t     *testing.T
	db    *sql.DB
	id    string
	known map[string]*known
}

// known is a claim that was in line when it was last asked about.
type known struct {
	driver.Claim
	state int
}

func opens(t *testing.T, db *sql.DB) *client {
	t.Helper()
	s := &client{t: t, db: db, id: driver.NewID(), known: map[string]*known{}}
	s.must(fmt.Sprintf("call interlock_open('%s', %d, x'%x')", s.id, time.Hour.Microseconds(), "owner"))
	return s
}

// must makes a statement and returns the words of its answer.
func (s *client) must(statement string) []string {
	s.t.Helper()
	rows, err := asks(s.t.Context(), s.db, statement)
	if err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
	if len(rows) == 0 {
		return nil
	}
	return strings.SplitN(rows[0][0], " ", 10)
}

// answer is what turn answers.
type answer struct {
	driver.Grant
	state int
	was   bool
}

func (s *client) turn(name string, old, c *driver.Claim) (a answer) {
	s.t.Helper()
	var joins driver.Claim
	oldID, newID, again := "null", "null", 0
	if old != nil {
		oldID = "'" + old.ID + "'"
		delete(s.known, old.ID)
	}
	if c != nil {
		joins, newID = *c, "'"+c.ID+"'"
		if s.known[c.ID] != nil {
			again = 1
		}
	}
	queue := 0
	if joins.Queue {
		queue = 1
	}
	f := s.must(fmt.Sprintf("call interlock_turn(x'%x', '%s', %s, %s, %d, %d, %d, %d, %d, %d, x'%x', %d, 30, repeat('.', 22), null)", name, s.id, oldID, newID, again, queue,
		joins.Kind, joins.Weight, joins.Limit, joins.Passes, joins.Note, time.Now().Add(time.Hour).UnixMicro()))
	a.state, a.was = number(f[0]), f[1] == "t"
	a.Held = a.state == 2
	if a.Held {
		a.Fence = uint64(number(f[2]))
	}
	if c != nil && (a.state == 1 || a.state == 2) {
		s.known[c.ID] = &known{*c, a.state}
	}
	return a
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// renew returns false of a session that is over, and else the claims that are lost.
func (s *client) renew() (lost map[string]bool, alive bool) {
	s.t.Helper()
	var ids []string
	var claims strings.Builder
	for id, k := range s.known {
		ids = append(ids, id)
		fmt.Fprintf(&claims, "%s %d %x\n", id, k.state, k.Name)
	}
	rows, err := asks(s.t.Context(), s.db, fmt.Sprintf("call interlock_renew('%s', x'%x', 30)", s.id, claims.String()))
	if err != nil {
		s.t.Fatalf("renew: %v", err)
	}
	lines := strings.Split(rows[0][0], "\n")
	lost = map[string]bool{}
	for _, l := range lines[1:] {
		f := strings.Fields(l)
		k := s.known[ids[number(f[0])-1]]
		if st := number(f[1]); st >= 3 {
			lost[k.ID] = true
		} else {
			k.state = st
		}
	}
	return lost, lines[0] != "6"
}

// close ends the session in every line.
func (s *client) close() {
	s.t.Helper()
	s.must(fmt.Sprintf("call interlock_finish('%s', null)", s.id))
}

// shown returns the line of a name as people see it.
func shown(t *testing.T, db *sql.DB, name string) (l driver.Line) {
	t.Helper()
	rows, err := asks(t.Context(), db, fmt.Sprintf("call interlock_show(x'%x', 1)", name))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 || rows[0][0] != name {
		return l
	}
	valid := map[string]bool{}
	for _, f := range rows[1:] {
		valid[f[0]] = true
	}
	l.Fence = uint64(number(rows[0][1]))
	for c := range strings.Lines(rows[0][2]) {
		f := strings.Fields(c)
		if valid[f[1]] {
			fence, _ := strconv.ParseUint(f[7], 10, 64)
			l.Claims = append(l.Claims, driver.Holder{PublicID: driver.PublicID(f[0]), Kind: driver.Kind(number(f[3])), Held: f[2] != "1", Broken: f[2] == "3", Fence: fence})
		}
	}
	return l
}
