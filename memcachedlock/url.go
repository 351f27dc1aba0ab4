package memcachedlock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func init() {
	driver.Register("memcached", open)
	driver.Register("memcached+tls", open)
}

// open implements driver.Opener.
func open(ctx context.Context, u *url.URL) (driver.Driver, error) {
	switch {
	case strings.Contains(u.Opaque+u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@"):
		return nil, errors.New("memcachedlock: the URL has an @ behind the host: want the characters / ? # % and @ of a password written as %2F %3F %23 %25 and %40, and an @ elsewhere as %40")
	case u.Opaque != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return nil, fmt.Errorf("memcachedlock: something stands behind the hosts of the URL: want %s://host:11211,host:11211, and ?prefix= for what is to begin every key", u.Scheme)
	}
	plain := func(s string) (string, error) { return s, nil }
	p := driver.NewParams(u)
	o := &Options{
		Layout:  Layout(driver.Param(p, "layout", plain)),
		Prefix:  driver.Param(p, "prefix", plain),
		Timeout: driver.Param(p, "timeout", time.ParseDuration),
		User:    u.User.Username(),
	}
	o.Password, _ = u.User.Password()
	if strings.HasSuffix(u.Scheme, "+tls") {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	d, err := New(ctx, strings.Split(u.Host, ","), o)
	if err != nil {
		return nil, err
	}
	return d, nil
}
