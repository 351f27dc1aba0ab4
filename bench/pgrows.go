package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/pglock"
)

// Names of contenders on PostgreSQL that goals refer to.
const (
	rawRows   = "bare upsert + update"
	oursPGRow = "Interlock pglock, rows"
)

// pgServer is said of every row on PostgreSQL.
const pgServer = "one PostgreSQL on loopback with fsync, new for each run; a pool of pgx for each contender"

// pgRows are the rows of the store on PostgreSQL.
func pgRows() []row { return []row{pgFree()} }

func pgFree() row {
	on := &stage{adapters: []string{"raw rows", "raw rows, unprepared", "pglock"}}
	return row{
		name:  "pg-free",
		title: "PostgreSQL, free lock and unlock",
		options: fmt.Sprintf("one goroutine, nobody else; rounds of %d pairs in turn, all in one process and on one server; %s",
			roundPairs, pgServer),
		reps:    20,
		stage:   on,
		metrics: []metric{pairMedian, pairSlow, cpuEach},
		contenders: []contender{
			{rawRows, floor, stagedPair{on, "raw rows"}},
			{rawRows + ", not prepared", remark, stagedPair{on, "raw rows, unprepared"}},
			{oursPGRow, ours, stagedPair{on, "pglock"}},
		},
		goals: []goal{{oursPGRow, pairMedian, atMost, 1.5, 1.25, rawRows}},
	}
}

// pgInterlock is Interlock over a pool, as users have one.
type pgInterlock struct {
	interlocked
	driver driver.Driver
	pool   *pgxpool.Pool
}

func openPGLock(ctx context.Context, p place) (locker, error) {
	pool, err := pgxpool.New(ctx, p.Postgres)
	if err != nil {
		return nil, err
	}
	l, err := overPool(ctx, pool, p)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return l, nil
}

func overPool(ctx context.Context, pool *pgxpool.Pool, p place) (locker, error) {
	if err := pglock.Migrate(ctx, pool, nil); err != nil {
		return nil, err
	}
	d, err := pglock.New(ctx, pool, nil)
	if err != nil {
		return nil, err
	}
	client, err := interlock.New(d, &interlock.Options{TTL: p.TTL})
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return &pgInterlock{interlocked{client: client}, d, pool}, nil
}

func (i *pgInterlock) close() error {
	err := errors.Join(i.client.Close(), i.driver.Close(context.Background()))
	i.pool.Close()
	return err
}
