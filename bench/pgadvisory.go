package main

import (
	"context"
	"errors"
	"hash/fnv"

	"github.com/jackc/pgx/v5/pgxpool"
)

// advisoryLocks are advisory locks by hand: who wants one waits for it on a
// connection of its own, in the server's line, and keeps that connection as
// long as it holds. It knows no tokens, no lease and no loss. It is the floor
// of whatever locks like this, and what people use.
type advisoryLocks struct{ *wire }

func openAdvisory(ctx context.Context, p place) (locker, error) {
	w, err := openWire(ctx, p, func(c *pgxpool.Config) { c.MaxConns = maxBackends })
	return advisoryLocks{w}, err
}

func (a advisoryLocks) mutex(name string) mutex {
	h := fnv.New64a()
	h.Write([]byte(name))
	return advisoryLock{a, int64(h.Sum64())}
}

type advisoryLock struct {
	advisoryLocks
	key int64
}

func (a advisoryLock) lock(ctx context.Context) (func() error, error) {
	conn, err := a.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", a.key); err != nil {
		conn.Release()
		return nil, err
	}
	return func() error {
		defer conn.Release()
		var held bool
		err := conn.QueryRow(ctx, "select pg_advisory_unlock($1)", a.key).Scan(&held)
		if err == nil && !held {
			err = errors.New("bench: the advisory lock was not held")
		}
		return err
	}, nil
}
