package shedlock

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// row is a row of the table. Times are in µs since 1970.
type row struct {
	name, by       string
	at, until, now int64
}

// live reports whether the row is a lock that somebody holds.
func (r *row) live() bool { return r.until > r.now }

// clock is the database's, and when it was answered.
type clock struct {
	now int64
	at  time.Time
}

// inspect looks at the server and at the table.
func (d *Driver) inspect(ctx context.Context) error {
	schema, table, ok := strings.Cut(d.options.Table, ".")
	if schema = "'" + schema + "'"; !ok {
		table, schema = d.options.Table, d.dialect.schema
	}
	if d.dialect == &postgres { // which folds names
		table, schema = strings.ToLower(table), strings.ToLower(schema)
	}
	var found, digits int
	var problem string
	err := d.ask(sessions.Within(ctx, d.options.Timeout), func(ctx context.Context) error {
		return d.db.QueryRowContext(ctx, fmt.Sprintf("select count(*), coalesce(max(case when lower(column_name) = 'name' then character_maximum_length end), 0), "+
			"coalesce(max(%s), 0), coalesce(min(datetime_precision), 0), coalesce(max(%s), 0), coalesce(max(%s), '') from information_schema.columns "+
			"where table_name = '%s' and table_schema = %s and lower(column_name) in ('name', 'lock_until', 'locked_at', 'locked_by')",
			d.dialect.ascii, d.dialect.safe, d.dialect.problem, table, strings.ReplaceAll(schema, "%s", table)), d.simple...).
			Scan(&found, &d.longest, &d.ascii, &digits, &d.safe, &problem)
	})
	for d.unit = time.Second; digits > 0; digits-- {
		d.unit /= 10
	}
	switch {
	case err != nil:
		return err
	case problem != "":
		return fmt.Errorf("%w: table %s: %s", driver.ErrRefused, d.options.Table, problem)
	case found < 4:
		return fmt.Errorf("%w: %s", driver.ErrRefused, d.missing())
	}
	return nil
}

// text is a text in SQL, whatever is in it.
func (d *Driver) text(s string) string { return fmt.Sprintf(d.dialect.text, s) }

// later is a time in SQL, so long after another one.
func (d *Driver) later(than string, by time.Duration) string {
	return fmt.Sprintf(d.dialect.later, than, by.Microseconds())
}

const (
	epoch = "timestamp '1970-01-01 00:00:00'"
	none  = "1 = 0" // no row
)

// rows returns those that meet a condition, and takes in the database's clock.
func (d *Driver) rows(ctx context.Context, condition string) (all []row, err error) {
	us := func(of string) string { return fmt.Sprintf(d.dialect.micros, of) }
	err = d.ask(ctx, func(ctx context.Context) error {
		all = nil
		found, err := d.db.QueryContext(ctx, fmt.Sprintf("select %s, name, locked_by, %s, %s from (select 1 as one) one left join %s on %s",
			us(d.dialect.now), us("locked_at"), us("lock_until"), d.options.Table, condition), d.simple...)
		if err != nil {
			return err
		}
		defer func() { _ = found.Close() }()
		var r row
		for found.Next() {
			var name, by sql.NullString
			var at, until sql.NullInt64
			if err := found.Scan(&r.now, &name, &by, &at, &until); err != nil {
				return err
			}
			if r.name, r.by, r.at, r.until = name.String, by.String, at.Int64, until.Int64; name.Valid {
				all = append(all, r)
			}
		}
		if err := found.Err(); err != nil {
			return err
		}
		d.clock.Store(&clock{r.now, time.Now()})
		return nil
	})
	return all, err
}

// row is the condition of a name's row.
func (d *Driver) row(name string) string { return fmt.Sprintf(d.dialect.name, d.text(name)) }

// named is the condition of the row of a name, or of another one that the table takes for the same.
func (d *Driver) named(name string) string { return "name = " + d.text(name) }

// live is the condition of rows that somebody holds.
func (d *Driver) live() string { return "lock_until > " + d.dialect.now }

// take has a claim take its row, where that is free or has the claim already, and reports whether it has. With fresh it makes the row that
// is missing. Either is void from the end of ctx on, by the database's clock, so that nothing is taken late for nobody.
func (d *Driver) take(ctx context.Context, c *claim, by string, ttl time.Duration, fresh bool) (bool, error) {
	end, _ := ctx.Deadline()
	asked, now := d.clock.Load(), d.dialect.now
	timely := now + " <= " + d.later(epoch, time.Duration(asked.now)*time.Microsecond+end.Sub(asked.at))
	statement := fmt.Sprintf(d.dialect.update+" set locked_at = %s, lock_until = %s, locked_by = '%s' where %s and (lock_until <= %s or %s) and %s",
		d.options.Table, now, d.later(now, ttl), by, d.row(c.Name), now, d.among([]*claim{c}), timely)
	if fresh {
		statement = fmt.Sprintf(d.dialect.insert, d.options.Table, d.text(c.Name)+", "+d.later(now, ttl)+", "+now+", '"+by+"'", timely)
	}
	n, err := d.exec(ctx, statement)
	return n > 0, err
}

// move has all the claims that are held end at a time, and returns how many were changed.
func (d *Driver) move(ctx context.Context, until string, claims ...*claim) (int64, error) {
	return d.exec(ctx, fmt.Sprintf(d.dialect.update+" set lock_until = %s where %s and %s", d.options.Table, until, d.among(claims), d.live()))
}

// among is the condition of the rows that have one of these claims. It names the rows by the table's key.
func (d *Driver) among(claims []*claim) string {
	names, ids := make([]string, len(claims)), make([]string, len(claims))
	for i, c := range claims {
		names[i], ids[i] = d.text(c.Name), ours+c.ID
	}
	return fmt.Sprintf("name in (%s) and left(locked_by, %d) in ('%s')", strings.Join(names, ", "), marked, strings.Join(ids, "', '"))
}
