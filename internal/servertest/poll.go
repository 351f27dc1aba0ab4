package servertest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// interval is the time between two looks at servers that agree among themselves and tell nobody
// when they have.
const interval = 10 * time.Millisecond

// poll calls look until it returns nil, or the context ends; then the error says what was waited
// for and what was missing at the last look.
func poll(ctx context.Context, what string, look func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		err := look()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("servertest: %s: %w; at the last look: %w", what, context.Cause(ctx), err)
		}
	}
}

// together calls f for 0 to n-1 at once and returns what went wrong.
func together(n int, f func(i int) error) error {
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- f(i) }()
	}
	var all error
	for range n {
		all = errors.Join(all, <-errs)
	}
	return all
}
