package main

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/pglock"
)

// pgInterlock is Interlock over a pool, as users have one.
type pgInterlock struct {
	interlocked
	*wire
	store *metered
}

func openPGRows(ctx context.Context, p place) (locker, error) { return openPG(ctx, p, "rows", nil) }

func openPGRowsStrict(ctx context.Context, p place) (locker, error) {
	return openPG(ctx, p, "rows", strictly())
}

func openPGSession(ctx context.Context, p place) (locker, error) {
	return openPG(ctx, p, "session", nil)
}

func openPGSessionStrict(ctx context.Context, p place) (locker, error) {
	return openPG(ctx, p, "session", strictly())
}

func openPG(ctx context.Context, p place, technique string, lock func() []interlock.LockOption) (locker, error) {
	w, err := openWire(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	i, err := overPool(ctx, w, p, technique, lock)
	if err != nil {
		w.Close()
		return nil, err
	}
	return i, nil
}

func overPool(ctx context.Context, w *wire, p place, technique string, lock func() []interlock.LockOption) (*pgInterlock, error) {
	if err := pglock.Migrate(ctx, w.Pool, nil); err != nil {
		return nil, err
	}
	d, err := pglock.New(ctx, w.Pool, &pglock.Options{Technique: technique})
	if err != nil {
		return nil, err
	}
	m := &metered{Driver: d}
	client, err := interlock.New(m, &interlock.Options{TTL: p.TTL})
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return &pgInterlock{interlocked{client, lock}, w, m}, nil
}

// pgEnds is when the lease of a name's first holder ends, in seconds since
// 1970.
const pgEnds = "select s.until / 1e6::float8 from interlock.lock l join interlock.session s on s.id = (l.line[1]).session " +
	"where l.name = convert_to($1, 'UTF8')"

// mutex has its tokens checked.
func (i *pgInterlock) mutex(name string) mutex {
	return tokenedMutex{i.interlocked.mutex(name).(interlockedMutex)}
}

func (i *pgInterlock) calls() (operations, renewals int64) {
	return i.store.operations.Load(), i.store.renewals.Load()
}

func (i *pgInterlock) close() error {
	err := errors.Join(i.client.Close(), i.store.Driver.Close(context.Background()))
	i.Close()
	return err
}
