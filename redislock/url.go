package redislock

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// Schemes that this package opens.
var schemes = []string{
	"redis", "rediss", "redis+sentinel", "redis+sentinel+tls", "redis+cluster", "redis+cluster+tls",
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
			Timeout:   c.Timeout,
			Strict:    driver.Param(p, "strict", strconv.ParseBool),
			Functions: driver.Param(p, "functions", strconv.ParseBool),
			Shared:    driver.Param(p, "shared", strconv.ParseBool),

			KeepCounters: driver.Param(p, "keep_counters", time.ParseDuration),
		}
	}, newDriver, func(d *Driver) *redisstore.Store { return d.store })
}
