package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// pgPush is the floor of a handover on PostgreSQL that is durable and wakes
// one process: processes in a ring give the lock to the next one by one update
// and one NOTIFY, in one statement. Nobody asks for the lock, because everybody
// knows who is next.
type pgPush struct {
	*wire
	ear   *pgx.Conn
	deaf  context.CancelFunc
	turns chan string // tokens, and what says that the run is over
	me    int
	next  int
}

func openPGPush(ctx context.Context, p place) (locker, error) {
	w, err := openWire(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	r := &pgPush{wire: w, turns: make(chan string, 2), me: p.Process, next: p.Process%p.Processes + 1}
	if err := w.create(ctx, "push (turn int not null, fence bigint not null) with (fillfactor = 40)"); err != nil {
		return nil, err
	}
	if r.ear, err = pgx.Connect(ctx, p.Postgres); err != nil {
		return nil, err
	}
	if _, err := r.ear.Exec(ctx, fmt.Sprintf("listen push%d", r.me)); err != nil {
		return nil, err
	}
	hearing, deaf := context.WithCancel(context.WithoutCancel(ctx))
	r.deaf = deaf
	go func() {
		for {
			n, err := r.ear.WaitForNotification(hearing)
			if err != nil {
				return
			}
			r.turns <- n.Payload
		}
	}()
	if r.me == 1 {
		r.turns <- "0"
		_, err = w.Exec(ctx, "insert into push values (1, 0)")
	}
	return r, err
}

func (r *pgPush) mutex(string) mutex { return r }

func (r *pgPush) lock(ctx context.Context) (func() error, error) {
	if turn := <-r.turns; turn == pushOver {
		return nil, errOver
	}
	return func() error { return r.unlock(ctx) }, nil
}

func (r *pgPush) unlock(ctx context.Context) error {
	tag, err := r.Exec(ctx, fmt.Sprintf("with handed as (update push set turn = %d, fence = fence + 32 where turn = %d returning fence) "+
		"select pg_notify('push%[1]d', fence::text) from handed", r.next, r.me))
	if err == nil && tag.RowsAffected() != 1 {
		err = errors.New("bench: handed over what somebody else holds")
	}
	return err
}

// close tells the next one that nobody will hand over any more.
func (r *pgPush) close() error {
	_, err := r.Exec(context.Background(), fmt.Sprintf("notify push%d, '%s'", r.next, pushOver))
	r.deaf()
	return errors.Join(err, r.wire.close())
}
