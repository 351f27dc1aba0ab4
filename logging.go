package interlock

import (
	"context"
	"log/slog"
	"time"
)

// log writes to the log from another goroutine, with the time of now.
func (c *Client) log(level slog.Level, what string, args ...any) {
	r := slog.NewRecord(time.Now(), level, what, 0)
	r.Add(args...)
	c.logs.Tell(func() { c.write(r) })
}

func (c *Client) write(r slog.Record) {
	if h := c.opts.Logger.Handler(); h.Enabled(context.Background(), r.Level) {
		_ = h.Handle(context.Background(), r) // there is nobody else to tell
	}
}

// trace calls the tracer from another goroutine, if there is one.
func (c *Client) trace(tell func(Tracer)) {
	if t := c.opts.Tracer; t != nil {
		c.traces.Tell(func() { tell(t) })
	}
}

// logsOmitted says that the log blocks, or did, and tracesOmitted that the tracer does.
func (c *Client) logsOmitted(n int) {
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "interlock: the log blocked, and was not told of everything", 0)
	r.Add("omitted", n)
	c.write(r)
}

func (c *Client) tracesOmitted(n int) {
	c.log(slog.LevelWarn, "interlock: the tracer blocked, and was not told of everything", "omitted", n)
}
