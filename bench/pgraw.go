package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// rawPostgres is the floor of a lock in a row: an upsert that succeeds where
// nobody is in, and an update, each a durable commit. It knows no line, no
// lease and no renewal.
type rawPostgres struct {
	pool  *pgxpool.Pool
	drawn atomic.Int64
	by    string // begins what is written in a row that is taken
}

// openRawPostgres has the pool prepare its statements, as it does unless it
// is told otherwise.
func openRawPostgres(ctx context.Context, p place) (locker, error) { return openRaw(ctx, p, false) }

// openRawPooled prepares nothing, so that it works through a pooler that
// shares connections, as pglock does.
func openRawPooled(ctx context.Context, p place) (locker, error) { return openRaw(ctx, p, true) }

func openRaw(ctx context.Context, p place, pooled bool) (locker, error) {
	config, err := pgxpool.ParseConfig(p.Postgres)
	if err != nil {
		return nil, err
	}
	if pooled {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, "create table if not exists bare (name bytea primary key, fence bigint not null, owner text) with (fillfactor = 40)")
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("bench: make the table: %w", err)
	}
	return &rawPostgres{pool: pool, by: fmt.Sprintf("%020d:", p.Process)}, nil
}

func (r *rawPostgres) mutex(name string) mutex { return rawRow{r, []byte(name)} }

type rawRow struct {
	*rawPostgres
	name []byte
}

// lock asks again and again, without a pause, until it has the row.
func (r rawRow) lock(ctx context.Context) (func() error, error) {
	owner := r.by + strconv.FormatInt(r.drawn.Add(1), 10)
	for {
		var fence int64
		err := r.pool.QueryRow(ctx, "insert into bare as b values ($1, 1, $2) on conflict (name) do update set fence = b.fence + 1, owner = $2 "+
			"where b.owner is null returning fence", r.name, owner).Scan(&fence)
		if errors.Is(err, pgx.ErrNoRows) {
			continue
		}
		return func() error { return r.unlock(ctx, owner) }, err
	}
}

func (r rawRow) unlock(ctx context.Context, owner string) error {
	tag, err := r.pool.Exec(ctx, "update bare set owner = null where name = $1 and owner = $2", r.name, owner)
	if err == nil && tag.RowsAffected() != 1 {
		err = errors.New("bench: the raw row is somebody else's")
	}
	return err
}

func (r *rawPostgres) close() error {
	r.pool.Close()
	return nil
}
