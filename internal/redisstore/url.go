package redisstore

import (
	"context"
	"net/url"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// OpenURL opens a driver by a URL: options reads the driver's options from the URL, open makes the
// driver over the connection, and store returns the Store of the driver, which owns the connection
// from then on.
func OpenURL[O any, D driver.Driver](
	ctx context.Context, u *url.URL, options func(p *driver.Params, c redisconn.Config) *O,
	open func(ctx context.Context, conn redisconn.Conn, o *O) (D, error), store func(D) *Store,
) (driver.Driver, error) {
	var o *O
	conn, err := redisconn.OpenURL(ctx, u, func(p *driver.Params, c redisconn.Config) { o = options(p, c) })
	if err != nil {
		return nil, Answered(err, u.User)
	}
	d, err := open(ctx, conn, o)
	if err != nil {
		conn.Close()
		return nil, Answered(err, u.User)
	}
	store(d).Owned = true
	return d, nil
}
