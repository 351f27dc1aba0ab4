package zklock

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
	for _, scheme := range []string{"zk", "zk+tls"} {
		driver.Register(scheme, open)
	}
}

// open opens the store of a URL such as zk://user:password@a:2181,b:2181/locks?timeout=5s.
func open(ctx context.Context, u *url.URL) (driver.Driver, error) {
	o, err := read(u)
	if err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	return newDriver(ctx, strings.Split(u.Host, ","), o)
}

func read(u *url.URL) (*Options, error) {
	if err := storeurl.Misread(u); err != nil {
		return nil, err
	}
	if u.Host == "" || u.Opaque != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the URL names no server: want %s://HOST:PORT,HOST:PORT/PATH", u.Scheme)
	}
	p := driver.NewParams(u)
	o := &Options{
		Path:           u.Path,
		Timeout:        driver.Param(p, "timeout", storeurl.Positive),
		Layout:         Layout(driver.Param(p, "layout", storeurl.Text)),
		SemaphoreMutex: driver.Param(p, "mutex", oneOf("semaphore", "Curator's InterProcessSemaphoreMutex")),
		ACL:            ACL(driver.Param(p, "acl", storeurl.Text)),
		SASL:           driver.Param(p, "sasl", oneOf("DIGEST-MD5", "the only mechanism: Kerberos (GSSAPI) is not supported")),
	}
	o.User, o.Password = storeurl.Login(u, p)
	var err error
	o.TLS, err = storeurl.SchemeTLS(u, p)
	return o, cmp.Or(p.Err(), err)
}

func oneOf(value, what string) func(string) (bool, error) {
	return func(s string) (bool, error) {
		if !strings.EqualFold(s, value) {
			return false, fmt.Errorf("want %s, %s, or leave it out", value, what)
		}
		return true, nil
	}
}
