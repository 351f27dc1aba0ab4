package recipes

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/interlock-go/interlock"
)

// once is a job that one machine of the fleet runs, whichever comes first. minHold is longer than the clocks
// differ, and shorter than the time to the next run.
func once(
	ctx context.Context, client *interlock.Client, name string, minHold time.Duration, run func(context.Context) error,
) cron.FuncJob {
	m := client.Mutex(name, interlock.Wait(0), interlock.MinHold(minHold))
	return func() {
		err := m.Do(ctx, run)
		if err != nil && !errors.Is(err, interlock.ErrHeld) { // another machine has it
			log.Printf("%s: %v", name, err)
		}
	}
}
