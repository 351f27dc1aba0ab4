package mysqllock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// Alone judges a server by one of its settings.
func Alone(name, value string) error { return alone([][][]byte{{[]byte(name), []byte(value)}}) }

// Cancel cancels a wait of a connection that has ended, whose number in the server is another one's.
func Cancel(ctx context.Context, d driver.Driver, id string) error {
	c := &conn{d: d.(*connDriver), id: id, own: own + driver.NewID()}
	return c.Cancel(ctx)
}
