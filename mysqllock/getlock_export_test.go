package mysqllock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// Cancel cancels a wait of a connection that has ended, whose number in the server is another one's.
func Cancel(ctx context.Context, d driver.Driver, id string) error {
	c := &conn{d: d.(*connDriver), id: id, own: own + driver.NewID()}
	return c.Cancel(ctx)
}
