package redlock

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

func init() {
	for _, scheme := range []string{"redlock", "redlock+tls"} {
		driver.Register(scheme, func(ctx context.Context, u *url.URL) (driver.Driver, error) { return open(ctx, u, false) })
		driver.RegisterLooker(scheme, func(ctx context.Context, u *url.URL) (driver.Driver, error) { return open(ctx, u, true) })
	}
}

// open reads the masters, the options of their connections and those of the driver from the URL.
// With looks the driver is for a look.
func open(ctx context.Context, u *url.URL, looks bool) (driver.Driver, error) {
	p := driver.NewParams(u)
	var configs []redisconn.Config
	for host := range strings.SplitSeq(u.Host, ",") {
		one := *u
		one.Host, one.Scheme = host, "redis"
		if u.Scheme == "redlock+tls" {
			one.Scheme = "rediss"
		}
		config, err := redisconn.ParseURL(&one, p)
		if err != nil {
			return nil, err
		}
		configs = append(configs, config)
	}
	o := Options{
		NodeTimeout: driver.Param(p, "node_timeout", duration), MaxTTL: driver.Param(p, "max_ttl", duration),
		Shared: driver.Param(p, "shared", strconv.ParseBool),
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	if err := o.withDefaults().check(); err != nil { // before anything is connected
		return nil, err
	}
	conns := connect(ctx, configs, membership.Majority(len(configs)), membership.Hesitation)
	d, err := newDriver(ctx, conns, &o, looks)
	if err != nil {
		for _, c := range conns {
			redisstore.Close(ctx, c)
		}
		return nil, err
	}
	d.owned = true
	return d, nil
}

func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q: want a duration above 0, such as 500ms", s)
	}
	return d, nil
}
