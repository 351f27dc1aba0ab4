package sessions

import (
	"context"
	"time"
)

// limit is a context with a deadline and no timer: clients read the deadline, and a command needs nothing else.
type limit struct {
	context.Context //nolint:containedctx // it is one
	at              time.Time
}

// Deadline implements context.Context.
func (l limit) Deadline() (time.Time, bool) { return l.at, true }

// AfterFunc is what package context asks a context for that is not its own, instead of starting a goroutine to watch it.
func (l limit) AfterFunc(f func()) func() bool { return context.AfterFunc(l.Context, f) }

// Within returns ctx with a deadline for one command. It costs no timer: ctx does not end then, the command does.
func Within(ctx context.Context, d time.Duration) context.Context {
	return limit{ctx, time.Now().Add(d)}
}
