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
	if err := storeurl.Misread(u); err != nil {
		return nil, err
	}
	if u.Opaque != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("something stands behind the hosts of the URL: want %s://host:11211,host:11211, and ?prefix= for what is to begin every key", u.Scheme)
	}
	p := driver.NewParams(u)
	password, _ := u.User.Password()
	o := &Options{
		Layout:   Layout(driver.Param(p, "layout", storeurl.Text)),
		Prefix:   driver.Param(p, "prefix", storeurl.Text),
		Timeout:  driver.Param(p, "timeout", storeurl.Positive),
		User:     u.User.Username(),
		Password: cmp.Or(driver.Param(p, "password_file", storeurl.Secret), password),
	}
	var err error
	o.TLS, err = storeurl.TLS(p, strings.HasSuffix(u.Scheme, "+tls"), "memcached+tls://")
	return o, cmp.Or(p.Err(), err)
}
