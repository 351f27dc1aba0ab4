package mysqllock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
)

// Cancel cancels a wait of a connection that has ended, whose number in the server is another
// one's.
func Cancel(ctx context.Context, d driver.Driver, id string) error {
	c := &conn{Locker: connlock.NewLocker(nil, id, nil), db: d.(*connDriver).db, own: own + driver.NewID()}
	return c.Cancel(ctx)
}
