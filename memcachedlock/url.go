package memcachedlock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func init() {
	driver.Register("memcached", open)
	driver.Register("memcached+tls", open)
}

// ParseURL reads memcached://user:password@host:11211,host:11211 and memcached+tls:// with the parameters layout, prefix, timeout and, for
// TLS, ca (a file).
func ParseURL(u *url.URL) (servers []string, o *Options, err error) {
	switch {
	case strings.Contains(u.Opaque+u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@"):
		return nil, nil, errors.New("memcachedlock: the URL has an @ behind the host: want the characters / ? # % and @ of a password written as %2F %3F %23 %25 and %40, and an @ elsewhere as %40")
	case u.Opaque != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return nil, nil, fmt.Errorf("memcachedlock: something stands behind the hosts of the URL: want %s://host:11211,host:11211, and ?prefix= for what is to begin every key", u.Scheme)
	}
	p := driver.NewParams(u)
	o = &Options{
		Layout:  Layout(driver.Param(p, "layout", plain)),
		Prefix:  driver.Param(p, "prefix", plain),
		Timeout: driver.Param(p, "timeout", positive),
		User:    u.User.Username(),
	}
	o.Password, _ = u.User.Password()
	ca := driver.Param(p, "ca", os.ReadFile)
	if strings.HasSuffix(u.Scheme, "+tls") {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if ca != nil {
		if o.TLS == nil {
			return nil, nil, errors.New("memcachedlock: parameter ca without TLS: want memcached+tls://")
		}
		o.TLS.RootCAs = x509.NewCertPool()
		if !o.TLS.RootCAs.AppendCertsFromPEM(ca) {
			return nil, nil, errors.New("memcachedlock: parameter ca: the file holds no certificate in PEM")
		}
	}
	return strings.Split(u.Host, ","), o, p.Err()
}

func plain(s string) (string, error) { return s, nil }

func positive(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q: want a duration above 0, such as 3s", s)
	}
	return d, nil
}

// open implements driver.Opener.
func open(ctx context.Context, u *url.URL) (driver.Driver, error) {
	servers, o, err := ParseURL(u)
	if err != nil {
		return nil, err
	}
	d, err := New(ctx, servers, o)
	if err != nil {
		return nil, err
	}
	return d, nil
}
