package redisconn

import (
	"context"
	"time"
)

// grace is how much later than its deadline a client may return by itself, with a better reason.
const grace = 10 * time.Millisecond

// aside makes a call of the client in a goroutine and returns when it does, or when ctx or its
// deadline ends, if that is first: the client ignores contexts while it connects and says HELLO. If
// the call succeeds after that, late is called with the result, unless late is nil.
func aside[T any](ctx context.Context, call func() (T, error), late func(T)) (T, error) {
	type result struct {
		t   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		t, err := call()
		done <- result{t, err}
	}()
	var out <-chan time.Time // not every context with a deadline ends then: see package sessions
	if at, ends := ctx.Deadline(); ends {
		timer := time.NewTimer(time.Until(at) + grace)
		defer timer.Stop()
		out = timer.C
	}
	err := context.DeadlineExceeded
	select {
	case r := <-done:
		return r.t, r.err
	case <-out:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if late != nil {
		go func() {
			if r := <-done; r.err == nil {
				late(r.t)
			}
		}()
	}
	var none T
	return none, err
}

// asideAll is aside for commands. A command that was not sent by the end of ctx never is: rueidis
// checks the context again when it has the connection.
func asideAll(ctx context.Context, cmds []Command, send func() []Reply) []Reply {
	replies, err := aside(ctx, func() ([]Reply, error) { return send(), nil }, nil)
	if err != nil {
		return failed(cmds, err)
	}
	return replies
}

// failed returns the same error as the answer to each command.
func failed(cmds []Command, err error) []Reply {
	replies := make([]Reply, len(cmds))
	for i := range replies {
		replies[i].Err = err
	}
	return replies
}
