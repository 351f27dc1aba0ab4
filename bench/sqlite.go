package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqlitePoll is how long a waiter sleeps between two tries.
const sqlitePoll = time.Millisecond

// sqliteLocks locks as applications do that have SQLite at hand: a row per
// lock with a unique name, inserted to lock, deleted to unlock, tried again
// every millisecond.
type sqliteLocks struct {
	db         *sql.DB
	insert     *sql.Stmt
	remove     *sql.Stmt
	statements atomic.Int64
}

func openSQLite(ctx context.Context, p place) (locker, error) {
	path := filepath.Join(p.Dir, "locks.db")
	db, err := sql.Open("sqlite", "file:"+path+
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one writer at a time is all SQLite has; a second connection would only meet SQLITE_BUSY
	s := &sqliteLocks{db: db}
	create := func() error {
		_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS lock (name TEXT PRIMARY KEY, owner INTEGER NOT NULL)`)
		return err
	}
	if err := untilNotBusy(ctx, create); err != nil {
		db.Close()
		return nil, fmt.Errorf("sqlite: create the table: %w", err)
	}
	s.insert, err = db.PrepareContext(ctx, `INSERT OR IGNORE INTO lock (name, owner) VALUES (?, ?)`)
	if err == nil {
		s.remove, err = db.PrepareContext(ctx, `DELETE FROM lock WHERE name = ?`)
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("sqlite: prepare: %w", err)
	}
	return s, nil
}

func (s *sqliteLocks) mutex(name string) mutex { return sqliteLock{s, name} }

// sqliteLock is one row.
type sqliteLock struct {
	*sqliteLocks
	name string
}

func (s sqliteLock) lock(ctx context.Context) (func() error, error) {
	for {
		taken, err := s.try(ctx)
		if err != nil {
			return nil, fmt.Errorf("sqlite: lock: %w", err)
		}
		if taken {
			return func() error { return s.unlock(context.WithoutCancel(ctx)) }, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(sqlitePoll):
		}
	}
}

func (s sqliteLock) try(ctx context.Context) (taken bool, err error) {
	err = untilNotBusy(ctx, func() error {
		s.statements.Add(1)
		res, err := s.insert.ExecContext(ctx, s.name, 1)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		taken = n == 1
		return err
	})
	return taken, err
}

func (s sqliteLock) unlock(ctx context.Context) error {
	return untilNotBusy(ctx, func() error {
		s.statements.Add(1)
		_, err := s.remove.ExecContext(ctx, s.name)
		return err
	})
}

// untilNotBusy repeats op while SQLite refuses it only because somebody else
// writes: in WAL mode that can happen at once, whatever the busy timeout.
func untilNotBusy(ctx context.Context, op func() error) error {
	for {
		err := op()
		var e *sqlite.Error
		if !errors.As(err, &e) || e.Code()&0xff != sqlite3.SQLITE_BUSY {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(sqlitePoll):
		}
	}
}

func (s *sqliteLocks) calls() (operations, renewals int64) { return s.statements.Load(), 0 }

func (s *sqliteLocks) close() error { return s.db.Close() }
