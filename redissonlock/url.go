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
	return redisstore.OpenURL(ctx, u, func(p *driver.Params, c redisconn.Config) *Options {
		return &Options{
			Timeout:  c.Timeout,
			Strict:   driver.Param(p, "strict", strconv.ParseBool),
			Sharding: driver.Param(p, "sharding", parseSharding),
		}
	}, newDriver, func(d *Driver) *redisstore.Store { return d.store })
}
