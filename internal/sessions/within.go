package sessions

import (
	"context"
	"time"
)

// limit is a context with a deadline and no timer, for clients that read the deadline.
type limit struct {
	context.Context //nolint:containedctx // it is one
	at              time.Time
}

// Deadline implements context.Context.
func (l limit) Deadline() (time.Time, bool) { return l.at, true }

// AfterFunc spares package context a goroutine that watches a context which is not its own.
func (l limit) AfterFunc(f func()) func() bool { return context.AfterFunc(l.Context, f) }

// Within returns ctx with a deadline for one command. It has no timer: the context does not end
// then, the command does.
func Within(ctx context.Context, d time.Duration) context.Context {
	return limit{ctx, time.Now().Add(d)}
}
