package drivertest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// process is a driver that shares nothing with the others but the store.
type process struct {
	w    *trial
	name string
	d    driver.Driver
	gone bool // killed or closed by a law, or the store was restarted, so that its Close may fail
}

// close closes the driver.
func (p *process) close(ctx context.Context) error {
	_, err := ask(ctx, p.w, p.name, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.d.Close(ctx) },
		func(_ struct{}, err error) string {
			if err != nil {
				return "Close of the driver → error: " + p.w.trace.err(err)
			}
			return "Close of the driver"
		})
	return err
}

// ask makes one call of a driver and writes it down. A call that is not back soon after its context
// ended breaks whatever law is being tried: the core relies on it everywhere. A ctx without a
// deadline, such as the trial's own, gets one that allows patience.
func ask[R any](ctx context.Context, w *trial, who string, f func(context.Context) (R, error), what func(R, error) string) (R, error) {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	type answer struct {
		r   R
		err error
	}
	from := time.Now()
	back := make(chan answer, 1)
	go func() {
		r, err := f(ctx)
		back <- answer{r, err}
	}()
	var got answer
	select {
	case got = <-back:
	case <-ctx.Done():
		bound := min(promptly, 2*time.Second+w.slack())
		select {
		case got = <-back:
		case <-time.After(bound):
			w.trace.add(from, who, "a call does not return although its context has ended")
			w.fail("a call of %s was not back %v after its context had ended: each call returns promptly when its context ends", who, bound)
		}
	}
	if what != nil {
		w.trace.add(from, who, "%s", what(got.r, got.err))
	}
	if ctx.Err() == nil && noAnswer(got.err) && (timedOut(got.err) || time.Since(from) >= tardy) {
		got.err = unanswered{got.err}
	}
	return got.r, got.err
}
