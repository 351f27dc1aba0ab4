package recipes

import (
	"context"
	"errors"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source"

	"github.com/interlock-go/interlock"
)

// leased is a database in which no migration begins once the lock is lost. The version is set before each one, with
// dirty: refused there, none is left half done.
type leased struct {
	database.Driver
	lost func() error
}

func (d leased) SetVersion(version int, dirty bool) error {
	if err := d.lost(); dirty && err != nil {
		return err
	}
	return d.Driver.SetVersion(version, dirty)
}

// migrateUp brings a database up to date, on one machine at a time.
func migrateUp(ctx context.Context, client *interlock.Client, files source.Driver, db database.Driver) error {
	return client.Mutex("migrations/shop").Do(ctx, func(ctx context.Context) error {
		m, err := migrate.NewWithInstance("files", files, "shop", leased{db, func() error { return context.Cause(ctx) }})
		if err != nil {
			return err
		}
		if err := m.Up(); !errors.Is(err, migrate.ErrNoChange) {
			return err
		}
		return nil // another machine has done it
	})
}
