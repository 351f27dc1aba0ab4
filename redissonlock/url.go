package redissonlock

import (
	"context"
	"net/url"
	"strconv"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// Schemes that this package opens: those of package redisconn with redisson in place of redis.
var schemes = []string{
	"redisson", "redisson+tls", "redisson+sentinel", "redisson+sentinel+tls", "redisson+cluster", "redisson+cluster+tls",
}

func init() {
	for _, scheme := range schemes {
		driver.Register(scheme, open)
	}
}

// open reads the options of a connection and of the driver from the URL.
func open(ctx context.Context, u *url.URL) (driver.Driver, error) {
	var o Options
	conn, err := redisconn.OpenURL(ctx, u, func(p *driver.Params, c redisconn.Config) {
		o = Options{
			Timeout:  c.Timeout,
			Strict:   driver.Param(p, "strict", strconv.ParseBool),
			Sharding: driver.Param(p, "sharding", parseSharding),
		}
	})
	if err != nil {
		return nil, redisstore.Answered(err, u.User)
	}
	d, err := newDriver(ctx, conn, &o)
	if err != nil {
		conn.Close()
		return nil, redisstore.Answered(err, u.User)
	}
	d.store.Owned = true
	return d, nil
}
