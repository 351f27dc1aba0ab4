package recipes

import (
	"context"

	"github.com/pressly/goose/v3"

	"github.com/interlock-go/interlock"
)

// gooseUp brings a database up to date, on one machine at a time; those that wait find nothing left to do. At a loss
// of the lock the context ends, and with it the statement that runs.
func gooseUp(ctx context.Context, client *interlock.Client, provider *goose.Provider) error {
	return client.Mutex("migrations/shop").Do(ctx, func(ctx context.Context) error {
		_, err := provider.Up(ctx)
		return err
	})
}
