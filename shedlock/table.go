package shedlock

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/lazyregexp"
	"github.com/interlock-go/interlock/internal/rowline"
)

// table is ShedLock's on a server. It implements rowline.Store: a row is a line in which one stands
// at most.
type table struct {
	db      *sql.DB
	options Options
	words   *strings.Replacer
	simple  []any

	postgres bool

	longest int           // name, in characters
	ascii   bool          // and those of ASCII alone
	unit    time.Duration // of the times in the table
	kept    int           // what is committed outlives a crash of the machine: 2, of the server alone: 1, of neither: 0

	specs sync.Map // driver.Spec, by the IDs of sessions that are open
}

// speak has SQL be that of a database.
func (t *table) speak(words []string) {
	t.words = strings.NewReplacer(append(words[:len(words):len(words)], ":table", t.options.Table)...)
}

// sql puts values into SQL, in which words are replaced before.
func (t *table) sql(format string, values ...any) string {
	return fmt.Sprintf(t.words.Replace(t.words.Replace(format)), values...)
}

// inspect looks at the server and at the table.
func (t *table) inspect(ctx context.Context) error {
	answer := func(statement string, to ...any) error {
		return t.ask(ctx, func(ctx context.Context) error { return t.db.QueryRowContext(ctx, statement, t.simple...).Scan(to...) })
	}
	var version string
	var problem []byte // null where '' is, too
	var found, digits int
	t.speak(mariadb)
	err := answer("select version()", &version)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(version, "PostgreSQL"):
		t.postgres = true
		t.speak(postgres)
	case strings.Trim(version[:1], "0123456789") != "":
		return refused("%s: want a PostgreSQL, a MariaDB or a MySQL", version)
	}
	err = answer(t.sql(inspect), &found, &t.longest, &t.ascii, &digits, &t.kept, &problem)
	for t.unit = time.Second; digits > 0; digits-- {
		t.unit /= 10
	}
	switch {
	case err != nil:
		return err
	case len(problem) > 0:
		return refused("table %s: %s", t.options.Table, problem)
	case found < 4:
		return refused("%s", t.sql(missing))
	}
	return nil
}

// exec makes a statement that writes, and returns how many rows it has changed: none where a row
// that it inserts is there.
func (t *table) exec(ctx context.Context, format string, values ...any) (n int64, err error) {
	err = t.ask(ctx, func(ctx context.Context) error {
		r, err := t.db.ExecContext(ctx, t.sql(format, values...), t.simple...)
		if err == nil {
			n, err = r.RowsAffected()
		}
		if doubled.MatchString(code(err)) {
			return nil
		}
		return err
	})
	return n, err
}

// rows returns those that meet a condition, and the database's clock.
func (t *table) rows(ctx context.Context, condition string) (all []row, now int64, err error) {
	err = t.ask(ctx, func(ctx context.Context) error {
		all = nil
		found, err := t.db.QueryContext(ctx, t.sql(look, condition), t.simple...)
		if err != nil {
			return err
		}
		defer func() { _ = found.Close() }()
		for found.Next() {
			var r row
			var name, by []byte // null where there is no row
			if err := found.Scan(&now, &name, &by, &r.at, &r.until); err != nil {
				return err
			}
			r.name, r.by, r.live = string(name), string(by), r.until > now
			if name != nil {
				all = append(all, r)
			}
		}
		return found.Err()
	})
	return all, now, err
}

// row is the condition of a name's row.
func (t *table) row(name string) string { return t.sql(":row", t.sql(":text", name)) }

// among is the condition of the rows that have one of these claims. It names the rows by the
// table's key.
func (t *table) among(claims ...rowline.Known) string {
	if len(claims) == 0 {
		return "1 = 0"
	}
	names, ids := make([]string, len(claims)), make([]string, len(claims))
	for i, c := range claims {
		names[i], ids[i] = t.sql(":text", c.Name), ours+c.ID
	}
	return fmt.Sprintf("name in (%s) and left(locked_by, %d) in ('%s')", strings.Join(names, ", "), marked, strings.Join(ids, "', '"))
}

// moment is a time in SQL.
func moment(us int64) string {
	return time.UnixMicro(us).UTC().Format("timestamp '2006-01-02 15:04:05.000000'")
}

// row is a row of the table. Times are in µs since 1970.
type row struct {
	name, by  string
	at, until int64
	live      bool // somebody holds it
}

// What stands in locked_by begins with a mark that no other claim has, and the ID of its session.
// What comes after that is for people.
const (
	ours     = "interlock:"
	idLength = 22
	marked   = len(ours) + idLength
	longest  = 255 // of ShedLock's column
)

var unprinted = lazyregexp.New(`[^ -~]`)

// lockedBy is what stands in locked_by: the mark, and user, host, process and name of the owner.
func lockedBy(id string, s driver.Spec) string {
	by := fmt.Sprintf("%s%s %s %s %d %s", ours, id, s.ID, strings.ReplaceAll(s.Owner.User+"@"+s.Owner.Host, " ", "_"), s.Owner.PID, s.Owner.Name)
	by = unprinted.ReplaceAllString(by, "_")
	return by[:min(len(by), longest)]
}

// id is that of a claim of ours, or "".
func (r *row) id() string {
	if len(r.by) < marked || !strings.HasPrefix(r.by, ours) {
		return ""
	}
	return r.by[len(ours):marked]
}

// holder is a row as people see it.
func (r *row) holder() *driver.Holder {
	h := &driver.Holder{Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: true, Since: time.UnixMicro(r.at), Until: time.UnixMicro(r.until)}
	if id := r.id(); id != "" {
		f := append(strings.SplitN(r.by, " ", 5), "", "", "", "")
		h.PublicID, h.Owner.Name = driver.PublicID(id), f[4]
		h.Owner.User, h.Owner.Host, _ = strings.Cut(f[2], "@")
		h.Owner.PID, _ = strconv.Atoi(f[3])
	} else {
		h.PublicID, h.Note, h.Foreign = driver.PublicID(r.by+" "+strconv.FormatInt(r.at, 10)), r.by, true
	}
	return h
}
