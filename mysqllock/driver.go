package mysqllock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Driver is a MariaDB or MySQL as a store of locks. It is safe for concurrent use.
type Driver struct {
	*server
	owned    bool // its pool was opened for this driver
	flush    int  // the server's innodb_flush_log_at_trx_commit
	sessions *rowline.Sessions
}

const (
	minTTL  = 100 * time.Millisecond
	grain   = 50 * time.Millisecond // of the look at a claim that has run out
	maxName = 1024
	most    = 16 // requests at once of a driver that dials for itself, beside the waits: the server has other users
)

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	var told driver.Kinds
	if d.gates != nil {
		told = driver.KindsOf(driver.Mutex, driver.Write)
	}
	return driver.Traits{
		Ordered: true, Shared: true, Counted: true, Mixed: true, Events: told, Expires: true,
		Fence: driver.Durable, MinTTL: minTTL, Grain: grain,
		Survives: driver.Survival{Process: true, Restart: d.flush != 0, Machine: d.flush == 1},
	}
}

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	return d.sessions.Open(ctx, spec)
}

// Close implements driver.Driver.
func (d *Driver) Close(ctx context.Context) error {
	first, err := d.sessions.Close(ctx)
	if first && d.owned {
		_ = sessions.Aside(ctx, 0, func(context.Context) error {
			if d.gates != nil {
				d.gates.close()
			}
			return d.db.Close()
		}) // a request may hold a connection that does not answer
	}
	return err
}
