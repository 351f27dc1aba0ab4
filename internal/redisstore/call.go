package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

// Together runs scripts in one go. If the client can abandon a command without reordering, they run
// in the caller's goroutine. Otherwise they run in their own: Together returns when ctx ends, and
// they go on until their answers or the timeout.
func Together(ctx context.Context, run redisconn.Runner, timeout time.Duration, calls []redisconn.Call) ([]redisconn.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	if run.Conn.Abandons() {
		replies := run.RunAll(sessions.Within(ctx, timeout), calls)
		return replies, ctx.Err()
	}
	return apart(ctx, sessions.Within(context.Background(), timeout), run, calls)
}

// apart runs scripts in one go in a goroutine of their own, bounded by bound, and returns when ctx
// ends, if that is first.
func apart(ctx, bound context.Context, run redisconn.Runner, calls []redisconn.Call) ([]redisconn.Reply, error) {
	done := make(chan []redisconn.Reply, 1)
	go func() { done <- run.RunAll(bound, calls) }()
	select {
	case replies := <-done:
		return replies, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Ping sends PING, a second time if the connection had ended, which shows only when it is used. It
// returns when ctx ends, if that is first: some clients do not look at a context while they
// connect.
func Ping(ctx context.Context, conn redisconn.Conn) error {
	ping := redisconn.Command{Words: []string{"PING"}}
	done := make(chan error, 1)
	go func() {
		_, err := conn.Do(ctx, ping)
		if err != nil && ctx.Err() == nil && redisconn.Classify(err) == err { //nolint:errorlint // not an answer
			ping.Fresh = true
			_, err = conn.Do(ctx, ping)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return redisconn.Classify(err)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", driver.ErrNotSent, ctx.Err())
	}
}

// Close closes a connection. It returns when ctx ends, if that is first: a client that is
// connecting to a server which does not answer finishes that before.
func Close(ctx context.Context, conn redisconn.Conn) { within(ctx, conn.Close) }

// within calls end and returns when that has returned, or ctx ends.
func within(ctx context.Context, end func()) {
	ended := make(chan struct{})
	go func() {
		end()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// Each runs a script for each of many names, a hundred together, and passes each answer to
// answered. The first error ends it, unless the keys of one name are damaged: the errors of such
// names are returned after all others were answered.
func Each(
	ctx context.Context, run redisconn.Runner, timeout time.Duration, names []string,
	call func(name string) redisconn.Call, answered func(name string, value any) error,
) (refused error) {
	for some := range slices.Chunk(names, 100) {
		calls := make([]redisconn.Call, len(some))
		for i, name := range some {
			calls[i] = call(name)
		}
		replies, err := Together(ctx, run, timeout, calls)
		if err != nil {
			return errors.Join(refused, fmt.Errorf("look at %q: %w", some[0], err))
		}
		for i, reply := range replies {
			if err = reply.Err; err == nil {
				err = answered(some[i], reply.Value)
			}
			if err == nil {
				continue
			}
			if err = fmt.Errorf("look at %q: %w", some[i], err); !redisconn.Is(err, "CORRUPT") {
				return errors.Join(refused, err)
			}
			refused = errors.Join(refused, err)
		}
	}
	return refused
}

// releaseAll releases many claims together. That a connection had ended shows only when it is used,
// and a client may have several, so what has no certain answer is tried more than once. It returns
// when ctx ends, if that is first: a client that is connecting to a server which does not answer
// goes on with that.
func releaseAll[C any](
	ctx context.Context, run redisconn.Runner, timeout time.Duration, claims []C,
	call func(C) redisconn.Call, released func(c C, value any),
) (err error) {
	for try := 0; try < 5 && len(claims) > 0 && (try == 0 || ctx.Err() == nil); try++ {
		calls := make([]redisconn.Call, len(claims))
		for i, c := range claims {
			calls[i] = call(c)
		}
		replies, e := apart(ctx, sessions.Within(ctx, timeout), run, calls)
		if e != nil {
			return fmt.Errorf("release all claims: %w", e)
		}
		err = nil
		var again []C
		for i, reply := range replies {
			switch {
			case reply.Err == nil:
				released(claims[i], reply.Value)
				continue
			case err == nil: // one for all: a session may have a thousand claims
				err = fmt.Errorf("release %q: %w", calls[i].Keys[0], reply.Err)
			}
			again = append(again, claims[i])
		}
		if len(again) > 1 {
			err = fmt.Errorf("%w; and %d more failed", err, len(again)-1)
		}
		claims = again
	}
	return err
}
