package main

import (
	"context"
	"database/sql"
	"errors"
	"hash/fnv"
	"math"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3/lock"
)

// gooseLocks are the locks in a table with which goose keeps migrations
// apart, tried again every pgPoll where its own default is 5 s. A lease is
// of whole seconds, and renewed by a goroutine of its own.
type gooseLocks struct {
	*wire
	db  *sql.DB
	ttl time.Duration
}

// gooseTTL is the library's default.
const gooseTTL = 30 * time.Second

func openGoose(ctx context.Context, p place) (locker, error) {
	w, err := openWire(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	g := &gooseLocks{w, stdlib.OpenDBFromPool(w.Pool), gooseTTL}
	if p.TTL > 0 {
		g.ttl = p.TTL
	}
	return g, nil
}

// gooseKey is the number that goose knows a lock by.
func gooseKey(name string) int64 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int64(h.Sum32()) + 1
}

// gooseEnds is when the lease of a key ends, in seconds since 1970.
const gooseEnds = "select extract(epoch from lease_expires_at)::float8 from goose_lock where lock_id = $1"

func (g *gooseLocks) mutex(name string) mutex { return gooseLock{g, gooseKey(name)} }

type gooseLock struct {
	*gooseLocks
	key int64
}

// lock makes a new lock.Locker each time: one lets in one goroutine at a time.
func (g gooseLock) lock(ctx context.Context) (func() error, error) {
	l, err := lock.NewPostgresTableLocker(
		lock.WithTableLockID(g.key), lock.WithTableLeaseDuration(g.ttl), lock.WithTableHeartbeatInterval(renewalPeriod(g.ttl)),
		lock.WithTableLockTimeout(pgPoll, math.MaxInt64))
	if err != nil {
		return nil, err
	}
	if err := l.Lock(ctx, g.db); err != nil {
		return nil, err
	}
	return func() error { return l.Unlock(ctx, g.db) }, nil
}

func (g *gooseLocks) close() error { return errors.Join(g.db.Close(), g.wire.close()) }
