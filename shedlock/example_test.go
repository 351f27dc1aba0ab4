package shedlock_test

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock"
)

// What stands in docs/from-shedlock.md.
var _ = nightly

func nightly(ctx context.Context, client *interlock.Client, report func(context.Context) error) error {
	nightly := client.Mutex("nightly", interlock.Wait(0), interlock.MinHold(time.Minute))
	err := nightly.Do(ctx, report)
	if errors.Is(err, interlock.ErrHeld) {
		return nil // another one runs it, in Java or in Go
	}
	return err
}
