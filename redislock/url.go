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
	var o Options
	conn, err := redisconn.OpenURL(ctx, u, func(p *driver.Params, c redisconn.Config) {
		o = Options{
			Timeout:   c.Timeout,
			Strict:    driver.Param(p, "strict", strconv.ParseBool),
			Functions: driver.Param(p, "functions", strconv.ParseBool),
			Shared:    driver.Param(p, "shared", strconv.ParseBool),

			KeepCounters: driver.Param(p, "keep_counters", time.ParseDuration),
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
