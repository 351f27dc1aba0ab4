// Package fault has the errors that the floors of the core tell each other, and users see as those
// of package interlock, where they are explained.
package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// What users see under the same names.
var (
	ErrHeld           = errors.New("held by another")
	ErrLost           = errors.New("lease lost")
	ErrReleased       = errors.New("lease released")
	ErrUncertain      = errors.New("release not confirmed")
	ErrUnavailable    = errors.New("store unavailable")
	ErrClosed         = errors.New("client closed")
	ErrTooManyWaiters = errors.New("too many waiters")
	ErrMaxHold        = errors.New("held for its maximum")
)

// ErrStalled is why a lease ran out that was not renewed although the store did not fail.
var ErrStalled = errors.New("not renewed in time, although the store did not fail: this process may have been stopped")

// Lost is the error of a lease that was lost for a reason.
func Lost(reason error) error { return fmt.Errorf("%w: %w", ErrLost, reason) }

// Unavailable is the error of a store that failed with err, or did not answer at all, with nil.
func Unavailable(err error) error {
	if err == nil {
		return ErrUnavailable
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Final reports whether asking again will not help, after this error of a store.
func Final(err error) bool {
	return errors.Is(err, driver.ErrRefused) || errors.Is(err, errors.ErrUnsupported)
}

// Context is how ctx ended: what it says by Err and, where its owner gave another reason, by Cause.
func Context(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}
