package memcachedlock

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/storeurl"
)

func init() {
	driver.Register("memcached", open)
	driver.Register("memcached+tls", open)
}

// open implements driver.Opener.
func open(ctx context.Context, u *url.URL) (driver.Driver, error) {
	o, err := parse(u)
	if err != nil {
		return nil, fmt.Errorf("memcachedlock: %w", err)
	}
	d, err := newDriver(ctx, strings.Split(u.Host, ","), o)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func parse(u *url.URL) (*Options, error) {
	if err := storeurl.OnlyHosts(u, "11211", "prefix"); err != nil {
		return nil, err
	}
	p := driver.NewParams(u)
	o := &Options{
		Layout:  Layout(driver.Param(p, "layout", storeurl.Text)),
		Prefix:  driver.Param(p, "prefix", storeurl.Text),
		Timeout: driver.Param(p, "timeout", storeurl.Positive),
	}
	o.User, o.Password = storeurl.Login(u, p)
	var err error
	o.TLS, err = storeurl.SchemeTLS(u, p)
	return o, cmp.Or(p.Err(), err)
}
