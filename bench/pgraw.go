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
	*wire
	drawn atomic.Int64
	by    string // begins what is written in a row that is taken
}

// openRawPostgres has the pool prepare its statements, as it does unless it
// is told otherwise.
func openRawPostgres(ctx context.Context, p place) (locker, error) { return openRaw(ctx, p, nil) }

// openRawPooled prepares nothing, so that it works through a pooler that
// shares connections, as pglock does.
func openRawPooled(ctx context.Context, p place) (locker, error) {
	return openRaw(ctx, p, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol })
}

func openRaw(ctx context.Context, p place, change func(*pgxpool.Config)) (locker, error) {
	w, err := openWire(ctx, p, change)
	if err != nil {
		return nil, err
	}
	if err := w.create(ctx, "bare (name bytea primary key, fence bigint not null, owner text) with (fillfactor = 40)"); err != nil {
		w.Close()
		return nil, err
	}
	return &rawPostgres{wire: w, by: fmt.Sprintf("%020d:", p.Process)}, nil
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
		err := r.QueryRow(ctx, "insert into bare as b values ($1, 1, $2) on conflict (name) do update set fence = b.fence + 1, owner = $2 "+
			"where b.owner is null returning fence", r.name, owner).Scan(&fence)
		if errors.Is(err, pgx.ErrNoRows) {
			continue
		}
		return func() error { return r.unlock(ctx, owner) }, err
	}
}

func (r rawRow) unlock(ctx context.Context, owner string) error {
	tag, err := r.Exec(ctx, "update bare set owner = null where name = $1 and owner = $2", r.name, owner)
	if err == nil && tag.RowsAffected() != 1 {
		err = errors.New("bench: the raw row is somebody else's")
	}
	return err
}
