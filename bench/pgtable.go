package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

// pgPoll is how long those sleep between two tries who wait in no line of the
// server.
const pgPoll = 20 * time.Millisecond

// tableTTL is how long a row keeps others out that is neither renewed nor
// deleted.
const tableTTL = 10 * time.Second

// tableLocks lock as applications do by hand: a row with a unique name and
// an end, inserted to lock or taken when it is over, deleted to unlock, tried
// again after a while.
type tableLocks struct {
	*wire
	poll  time.Duration
	ttl   time.Duration
	drawn atomic.Int64
	by    string // begins what is written in a row that is taken
}

func openTable(ctx context.Context, p place) (locker, error) { return openTableLocks(ctx, p, pgPoll) }

// openEagerTable tries again at once.
func openEagerTable(ctx context.Context, p place) (locker, error) { return openTableLocks(ctx, p, 0) }

func openTableLocks(ctx context.Context, p place, poll time.Duration) (*tableLocks, error) {
	w, err := openWire(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	if err := w.create(ctx, "by_hand (name text primary key, owner text not null, until timestamptz not null)"); err != nil {
		w.Close()
		return nil, err
	}
	t := &tableLocks{wire: w, poll: poll, ttl: tableTTL, by: fmt.Sprintf("%d:", p.Process)}
	if p.TTL > 0 {
		t.ttl = p.TTL
	}
	return t, nil
}

// tableEnds is when the lease of a name ends, in seconds since 1970.
const tableEnds = "select extract(epoch from until)::float8 from by_hand where name = $1"

func (t *tableLocks) mutex(name string) mutex { return tableLock{t, name} }

type tableLock struct {
	*tableLocks
	name string
}

func (t tableLock) lock(ctx context.Context) (func() error, error) {
	owner, err := t.take(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return t.unlock(ctx, owner) }, nil
}

// take answers what it wrote in the row.
func (t tableLock) take(ctx context.Context) (owner string, err error) {
	owner = t.by + strconv.FormatInt(t.drawn.Add(1), 10)
	for {
		tag, err := t.Exec(ctx, "insert into by_hand as h values ($1, $2, clock_timestamp() + $3::interval) "+
			"on conflict (name) do update set owner = excluded.owner, until = excluded.until where h.until < clock_timestamp()", t.name, owner, t.ttl)
		if err != nil || tag.RowsAffected() == 1 {
			return owner, err
		}
		time.Sleep(t.poll)
	}
}

func (t tableLock) unlock(ctx context.Context, owner string) error {
	return one(t.Exec(ctx, "delete from by_hand where name = $1 and owner = $2", t.name, owner))
}

// one wants a statement to have met one row.
func one(tag interface{ RowsAffected() int64 }, err error) error {
	if err == nil && tag.RowsAffected() != 1 {
		err = errors.New("bench: the row is somebody else's")
	}
	return err
}

// tableKeepers renew each of their leases by a goroutine and a statement.
type tableKeepers struct {
	keepers
	*tableLocks
}

func openTableKeepers(ctx context.Context, p place) (locker, error) {
	t, err := openTableLocks(ctx, p, pgPoll)
	if err != nil {
		return nil, err
	}
	return &tableKeepers{keepers{period: renewalPeriod(p.TTL)}, t}, nil
}

func (k *tableKeepers) mutex(name string) mutex { return tableKeeper{k, tableLock{k.tableLocks, name}} }

func (k *tableKeepers) close() error { return k.tableLocks.close() }

type tableKeeper struct {
	*tableKeepers
	row tableLock
}

func (k tableKeeper) lock(ctx context.Context) (func() error, error) {
	owner, err := k.row.take(ctx)
	if err != nil {
		return nil, err
	}
	k.taken.Add(1)
	held, cancel := context.WithCancel(ctx)
	go k.keep(held, cancel, func(ctx context.Context) error {
		return one(k.Exec(ctx, "update by_hand set until = clock_timestamp() + $3::interval where name = $1 and owner = $2", k.row.name, owner, k.ttl))
	})
	return func() error {
		cancel()
		return k.row.unlock(ctx, owner)
	}, nil
}
