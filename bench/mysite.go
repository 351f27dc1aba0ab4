package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/mysqllock"
)

// openMaria makes a pool of the run's MariaDB that sends each statement with
// its values in it, in one round trip.
func openMaria(p place) (*sql.DB, error) {
	c, _, err := mysqllock.ParseURL(p.MariaDB)
	if err != nil {
		return nil, err
	}
	c.InterpolateParams = true
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(maxBackends)
	return db, nil
}

// bareMaria is the floor of a lock in a row, as rawPostgres is: an upsert that
// succeeds where nobody is in, and an update, each a durable commit.
type bareMaria struct {
	*sql.DB
	drawn atomic.Int64
	by    string // begins what is written in a row that is taken
}

func openBareMaria(ctx context.Context, p place) (locker, error) {
	db, err := openMaria(p)
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, "create table if not exists bare (name varbinary(1024) primary key, fence bigint not null, owner varbinary(64)) engine = innodb"); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &bareMaria{DB: db, by: fmt.Sprintf("%020d:", p.Process)}, nil
}

func (b *bareMaria) mutex(name string) mutex { return bareRow{b, name} }

func (b *bareMaria) close() error { return b.Close() }

type bareRow struct {
	*bareMaria
	name string
}

// lock asks again and again, without a pause, until it has the row.
func (r bareRow) lock(ctx context.Context) (func() error, error) {
	owner := r.by + strconv.FormatInt(r.drawn.Add(1), 10)
	for {
		tag, err := r.ExecContext(ctx, "insert into bare (name, fence, owner) values (?, 1, ?) on duplicate key update "+
			"fence = if(owner is null, last_insert_id(fence + 1), fence), owner = coalesce(owner, values(owner))", r.name, owner)
		if err != nil {
			return nil, err
		}
		if n, err := tag.RowsAffected(); err != nil || n > 0 {
			return func() error { return r.unlock(ctx, owner) }, err
		}
	}
}

func (r bareRow) unlock(ctx context.Context, owner string) error {
	tag, err := r.ExecContext(ctx, "update bare set owner = null where name = ? and owner = ?", r.name, owner)
	if err != nil {
		return err
	}
	if n, err := tag.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, errors.New("bench: the bare row is somebody else's"))
	}
	return nil
}

// getLocks are MariaDB's own locks by hand: who wants one waits for it on a
// connection of its own, and keeps that as long as it holds. They know no
// line, no tokens, no lease and no loss.
type getLocks struct{ *sql.DB }

func openGetLock(_ context.Context, p place) (locker, error) {
	db, err := openMaria(p)
	return getLocks{db}, err
}

func (g getLocks) mutex(name string) mutex { return getLock{g, name} }

func (g getLocks) close() error { return g.Close() }

type getLock struct {
	getLocks
	name string
}

func (g getLock) lock(ctx context.Context) (func() error, error) {
	c, err := g.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := answers(ctx, c, "select get_lock(?, 3600)", g.name); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return func() error { return errors.Join(answers(ctx, c, "select release_lock(?)", g.name), c.Close()) }, nil
}

// answers wants 1.
func answers(ctx context.Context, c *sql.Conn, question, name string) error {
	var n sql.NullInt64
	err := c.QueryRowContext(ctx, question, name).Scan(&n)
	if err == nil && n.Int64 != 1 {
		err = fmt.Errorf("bench: %s: %v, want 1", question, n)
	}
	return err
}

// mariaInterlock is Interlock by URL, with its tokens checked.
type mariaInterlock struct{ *meteredInterlock }

func openMyRows(ctx context.Context, p place) (locker, error) { return openMy(ctx, p, "rows", nil) }

func openMyRowsStrict(ctx context.Context, p place) (locker, error) {
	return openMy(ctx, p, "rows", strictly())
}

func openMySession(ctx context.Context, p place) (locker, error) {
	return openMy(ctx, p, "session", nil)
}

func openMySessionStrict(ctx context.Context, p place) (locker, error) {
	return openMy(ctx, p, "session", strictly())
}

func openMy(ctx context.Context, p place, technique string, lock func() []interlock.LockOption) (locker, error) {
	db, err := openMaria(p)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(mysqllock.Migrate(ctx, db, nil), db.Close()); err != nil {
		return nil, err
	}
	d, err := driver.OpenURL(ctx, p.MariaDB+"?technique="+technique)
	if err != nil {
		return nil, err
	}
	m := &metered{Driver: d}
	client, err := interlock.New(m, &interlock.Options{TTL: p.TTL})
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return mariaInterlock{&meteredInterlock{interlocked{client, lock}, m}}, nil
}

func (i mariaInterlock) mutex(name string) mutex {
	return tokenedMutex{i.interlocked.mutex(name).(interlockedMutex)}
}
