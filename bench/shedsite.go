package main

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the client pgx

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/shedlock" // its schemes
)

// bareShed is the floor of a lock in ShedLock's table: what ShedLock itself
// says, each a durable commit, with its values as the client sends them.
type bareShed struct {
	*sql.DB
	insert, take, release string
	mode                  []any // how pgx sends it; none = prepared
}

const shedColumns = "(name varchar(64) primary key, lock_until timestamp(3) not null, locked_at timestamp(3) not null, locked_by varchar(255) not null)"

func openShed(ctx context.Context, db *sql.DB, err error) (*sql.DB, error) {
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(maxBackends)
	if _, err := db.ExecContext(ctx, "create table if not exists shedlock "+shedColumns); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func openShedPostgres(ctx context.Context, p place) (*sql.DB, error) {
	db, err := sql.Open("pgx", p.Postgres)
	return openShed(ctx, db, err)
}

func openShedMariaDB(ctx context.Context, p place) (*sql.DB, error) {
	db, err := openMaria(p)
	return openShed(ctx, db, err)
}

func openBareShedPostgres(ctx context.Context, p place) (locker, error) {
	db, err := openShedPostgres(ctx, p)
	return &bareShed{
		DB: db,
		insert: "insert into shedlock (name, lock_until, locked_at, locked_by) values ($1, timezone('utc', current_timestamp) + interval '15 seconds', timezone('utc', current_timestamp), $2) " +
			"on conflict (name) do nothing",
		take: "update shedlock set lock_until = timezone('utc', current_timestamp) + interval '15 seconds', locked_at = timezone('utc', current_timestamp), locked_by = $2 " +
			"where name = $1 and lock_until <= timezone('utc', current_timestamp)",
		release: "update shedlock set lock_until = timezone('utc', current_timestamp) where name = $1 and locked_by = $2",
	}, err
}

// openBareShedPooled prepares nothing, so that it works through a pooler, as
// Interlock does.
func openBareShedPooled(ctx context.Context, p place) (locker, error) {
	l, err := openBareShedPostgres(ctx, p)
	if err == nil {
		l.(*bareShed).mode = []any{pgx.QueryExecModeSimpleProtocol}
	}
	return l, err
}

func openBareShedMariaDB(ctx context.Context, p place) (locker, error) {
	db, err := openShedMariaDB(ctx, p)
	return bareShedMariaDB{&bareShed{
		DB:      db,
		insert:  "insert ignore into shedlock (name, lock_until, locked_at, locked_by) values (?, timestampadd(second, 15, utc_timestamp(3)), utc_timestamp(3), ?)",
		take:    "update shedlock set lock_until = timestampadd(second, 15, utc_timestamp(3)), locked_at = utc_timestamp(3), locked_by = ? where name = ? and lock_until <= utc_timestamp(3)",
		release: "update shedlock set lock_until = utc_timestamp(3) where name = ? and locked_by = ?",
	}}, err
}

func (b *bareShed) mutex(name string) mutex { return bareShedLock{b, name, []any{name, shedHost}} }

func (b *bareShed) close() error { return b.Close() }

// bareShedMariaDB has its values by their place.
type bareShedMariaDB struct{ *bareShed }

func (b bareShedMariaDB) mutex(name string) mutex {
	return bareShedLock{b.bareShed, name, []any{shedHost, name}}
}

const shedHost = "host-1"

type bareShedLock struct {
	*bareShed
	name  string
	taken []any
}

// lock asks again and again, without a pause, until it has the row.
func (l bareShedLock) lock(ctx context.Context) (func() error, error) {
	unlock := func() error { return one(l.affected(ctx, l.release, l.name, shedHost)) }
	for {
		n, err := l.affected(ctx, l.take, l.taken...)
		if err == nil && n == 0 {
			n, err = l.affected(ctx, l.insert, l.name, shedHost)
		}
		if err != nil || n > 0 {
			return unlock, err
		}
	}
}

// affected is how many rows a statement has changed.
type affected int64

// RowsAffected is what one asks for.
func (n affected) RowsAffected() int64 { return int64(n) }

func (b *bareShed) affected(ctx context.Context, statement string, args ...any) (affected, error) {
	r, err := b.ExecContext(ctx, statement, slices.Concat(b.mode, args)...)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return affected(n), err
}

func openOursShedPostgres(ctx context.Context, p place) (locker, error) {
	db, err := openShedPostgres(ctx, p)
	return openOursShed(ctx, db, err, p.Postgres)
}

func openOursShedMariaDB(ctx context.Context, p place) (locker, error) {
	db, err := openShedMariaDB(ctx, p)
	return openOursShed(ctx, db, err, p.MariaDB)
}

// openOursShed is Interlock by URL, once there is a table.
func openOursShed(ctx context.Context, db *sql.DB, err error, url string) (locker, error) {
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		return nil, err
	}
	client, err := interlock.Open(ctx, "shedlock+"+url, nil)
	return &interlocked{client: client}, err
}
