package grammar

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/shedlock"
)

// recorder is a client of a database that keeps what it is asked, and answers as a table with one row would that somebody else holds.
type recorder struct {
	mu   sync.Mutex
	said []string
	free bool // nobody holds the row
	none bool // or there is none
}

func (r *recorder) Connect(context.Context) (sqldriver.Conn, error) { return conn{r}, nil }
func (r *recorder) Driver() sqldriver.Driver                        { return nil }

func (r *recorder) keep(statement string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, statement)
}

type conn struct{ *recorder }

func (conn) Prepare(string) (sqldriver.Stmt, error) { return nil, sqldriver.ErrSkip }
func (conn) Begin() (sqldriver.Tx, error)           { return nil, sqldriver.ErrSkip }
func (conn) Close() error                           { return nil }

func (c conn) ExecContext(_ context.Context, statement string, _ []sqldriver.NamedValue) (sqldriver.Result, error) {
	c.keep(statement)
	if c.free {
		return sqldriver.RowsAffected(1), nil
	}
	return sqldriver.RowsAffected(0), nil
}

func (c conn) QueryContext(_ context.Context, statement string, _ []sqldriver.NamedValue) (sqldriver.Rows, error) {
	c.keep(statement)
	if strings.Contains(statement, "version()") {
		return &rows{fields: []sqldriver.Value{"8.4.0"}}, nil
	}
	if strings.Contains(statement, "information_schema") {
		return &rows{fields: []sqldriver.Value{int64(4), int64(64), false, int64(3), int64(2), ""}}, nil
	}
	const now = int64(1_800_000_000_000_000)
	if c.none {
		return &rows{fields: []sqldriver.Value{now, nil, nil, int64(0), int64(0)}}, nil
	}
	return &rows{fields: []sqldriver.Value{now, "job", "host-1", now - 1e6, now + 60e6}}, nil
}

// rows are one.
type rows struct {
	fields []sqldriver.Value
	over   bool
}

func (r *rows) Columns() []string { return make([]string, len(r.fields)) }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(to []sqldriver.Value) error {
	if r.over {
		return io.EOF
	}
	r.over = true
	copy(to, r.fields)
	return nil
}

// Whatever shedlock asks a MySQL, both grammars read.
func TestShedLock(t *testing.T) {
	r := &recorder{free: true}
	db := sql.OpenDB(r)
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	d, err := shedlock.New(ctx, db, &shedlock.Options{Table: "shop.shedlock"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: time.Minute, Owner: driver.Owner{Name: "it's us"}})
	if err != nil {
		t.Fatal(err)
	}
	c := driver.Claim{Name: "it's a job \\ 'ä'", ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
	mine, err := s.Acquire(ctx, c)
	if err != nil || !mine.Held {
		t.Fatalf("held %v, %v", mine.Held, err)
	}
	if _, err := s.Renew(ctx); err != nil {
		t.Fatal(err)
	}
	r.free = false // the renewal finds nothing changed, the next one somebody else, or no row
	_, _ = s.Renew(ctx)
	for _, name := range []string{"job", "other", "new"} {
		c := c
		c.Name, c.ID = name, driver.NewID()
		r.none = name == "new"
		_, _ = s.Acquire(ctx, c)
	}
	r.none = false
	lines, err := d.Lines(ctx, "")
	if err != nil || len(lines) != 1 {
		t.Fatalf("%+v, %v", lines, err)
	}
	r.free = true
	if err := d.Break(ctx, "job", lines[0].Claims[0].PublicID, 0, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Release(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, statement := range r.said {
		kinds[statement[:6]]++
		for _, err := range refused(statement) {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if kinds["select"] < 5 || kinds["update"] < 5 || kinds["insert"] < 1 {
		t.Errorf("read %v: where are the others?", kinds)
	}
	t.Log(kinds)
}
