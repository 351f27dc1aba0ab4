package shedlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/database"
	"github.com/interlock-go/interlock/internal/lazyregexp"
)

// Examine implements driver.Examiner.
func (d *Driver) Examine(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	t := d.table
	server := database.MariaDB
	if t.postgres {
		server = database.Postgres
	}
	found, err := server(ctx, database.Store{Exam: e, Ask: t.texts, Timeout: t.options.Timeout, Leads: true})
	if err == nil && found[0].Level < driver.LevelBad { // of a server that is written to
		var own []driver.Finding
		own, err = t.examine(ctx)
		found = append(found, own...)
	}
	if err != nil && unknown(err) { // to ask changes nothing
		err = fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	return found, err
}

// texts makes a query, whose null is "".
func (t *table) texts(ctx context.Context, query string) (all [][]string, err error) {
	err = t.ask(ctx, func(ctx context.Context) error {
		all = nil
		rows, err := t.db.QueryContext(ctx, query, t.simple...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		for rows.Next() {
			fields, to, texts := make([][]byte, len(columns)), make([]any, len(columns)), make([]string, len(columns))
			for i := range fields {
				to[i] = &fields[i]
			}
			if err := rows.Scan(to...); err != nil {
				return err
			}
			for i, f := range fields {
				texts[i] = string(f)
			}
			all = append(all, texts)
		}
		return rows.Err()
	})
	return all, err
}

var (
	denied = lazyregexp.New(`^42501| 114[23]$`)

	// Statements that change nothing, and are refused to who may not do the like.
	tries = []string{
		"explain select 1 from :table",
		"explain insert into :table (name, lock_until, locked_at, locked_by) select 'doctor', :now, :now, '' from (select 1 as one) one where 1 = 0",
		"explain update :table set locked_by = '' where 1 = 0",
	}
)

// examine looks at the table as whoever opens the store does, and at what the user may do with it.
func (t *table) examine(ctx context.Context) ([]driver.Finding, error) {
	f := driver.Finding{Title: "table", Seen: t.options.Table + " is as ShedLock has it"}
	anew := &table{db: t.db, options: t.options, simple: t.simple}
	switch err := anew.inspect(ctx); {
	case errors.Is(err, driver.ErrRefused):
		f.Level, f.Seen = driver.LevelBad, err.Error()
		f.Why = "a table that is otherwise gives a lock to two, or to nobody; who opens the store is refused"
		f.Mend = "ALTER TABLE, as it says, or make the table anew by the statement in docs/backends/shedlock.md"
	case err != nil:
		return nil, err
	}
	rights := driver.Finding{Title: "rights", Seen: "this user may SELECT, INSERT and UPDATE"}
	var lacks []string
	for _, try := range tries {
		_, err := t.texts(ctx, t.sql(try))
		switch {
		case denied.MatchString(code(err)):
			verb, _, _ := strings.Cut(strings.TrimPrefix(try, "explain "), " ")
			lacks = append(lacks, strings.ToUpper(verb))
		case err != nil && f.Level < driver.LevelBad:
			return []driver.Finding{f}, err
		}
	}
	if lacks != nil {
		rights.Level, rights.Seen = driver.LevelBad, "this user lacks "+strings.Join(lacks, ", ")+" of "+t.options.Table
		rights.Why = "what takes it is refused: locks cannot be had, renewed or given back"
		rights.Mend = fmt.Sprintf("GRANT SELECT, INSERT, UPDATE ON %s TO the user", t.options.Table)
	}
	return []driver.Finding{f, rights}, nil
}
