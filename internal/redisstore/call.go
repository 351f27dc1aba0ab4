package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// limit is a context with a deadline and no timer: clients read the deadline, and a command needs nothing else.
type limit struct {
	context.Context //nolint:containedctx // it is one
	at              time.Time
}

// Deadline implements context.Context.
func (l limit) Deadline() (time.Time, bool) { return l.at, true }

// Within returns ctx with a deadline for one command. It costs no timer: ctx does not end then, the command does.
func Within(ctx context.Context, d time.Duration) context.Context {
	return limit{ctx, time.Now().Add(d)}
}

// Together runs scripts in one go. Where the client abandons a command with its order kept, they run right here; elsewhere
// apart from the caller: when ctx ends the caller goes, and they go on until their answers or the timeout.
func Together(ctx context.Context, run redisconn.Runner, timeout time.Duration, calls []redisconn.Call) ([]redisconn.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	if run.Conn.Abandons() {
		replies := run.RunAll(Within(ctx, timeout), calls)
		return replies, ctx.Err()
	}
	done := make(chan []redisconn.Reply, 1)
	go func() { done <- run.RunAll(Within(context.Background(), timeout), calls) }()
	select {
	case replies := <-done:
		return replies, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// CloseAll closes sessions, all at once.
func CloseAll[S interface {
	Close(ctx context.Context) error
}](ctx context.Context, sessions []S) error {
	errs := make(chan error, len(sessions))
	for _, s := range sessions {
		go func() { errs <- s.Close(ctx) }()
	}
	var err error
	for range sessions {
		err = errors.Join(err, <-errs)
	}
	return err
}
