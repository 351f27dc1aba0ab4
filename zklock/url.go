package zklock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func init() {
	for _, scheme := range []string{"zk", "zk+tls"} {
		driver.Register(scheme, open)
	}
}

// open opens the store of a URL such as zk://user:password@a:2181,b:2181/locks?timeout=5s.
func open(ctx context.Context, u *url.URL) (driver.Driver, error) {
	p := driver.NewParams(u)
	o := &Options{
		Path:           u.Path,
		Timeout:        driver.Param(p, "timeout", positive),
		Layout:         Layout(driver.Param(p, "layout", plainText)),
		SemaphoreMutex: driver.Param(p, "mutex", oneOf("semaphore", "Curator's InterProcessSemaphoreMutex")),
		ACL:            ACL(driver.Param(p, "acl", plainText)),
		User:           u.User.Username(),
		SASL:           driver.Param(p, "sasl", oneOf("DIGEST-MD5", "the only mechanism: Kerberos (GSSAPI) is not supported")),
	}
	o.Password, _ = u.User.Password()
	if secret := driver.Param(p, "password_file", os.ReadFile); secret != nil {
		o.Password = strings.TrimRight(string(secret), "\r\n")
	}
	err := o.readTLS(p, strings.HasSuffix(u.Scheme, "+tls"))
	if first := p.Err(); first != nil {
		err = first
	}
	switch {
	case err != nil:
		return nil, err
	case strings.Contains(u.Opaque+u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@"):
		return nil, errors.New("zklock: the store's URL has an @ behind the host: want the characters / ? # % and @ of a password written as %2F %3F %23 %25 and %40, and an @ elsewhere as %40")
	case u.Host == "" || u.Opaque != "" || u.Fragment != "":
		return nil, fmt.Errorf("zklock: the store's URL names no server: want %s://HOST:PORT,HOST:PORT/PATH", u.Scheme)
	}
	return New(ctx, strings.Split(u.Host, ","), o)
}

func (o *Options) readTLS(p *driver.Params, encrypted bool) error {
	ca := driver.Param(p, "ca", os.ReadFile)
	cert, key := driver.Param(p, "cert", plainText), driver.Param(p, "key", plainText)
	name := driver.Param(p, "server_name", plainText)
	skip := driver.Param(p, "skip_verify", strconv.ParseBool)
	if !encrypted {
		if ca != nil || cert != "" || key != "" || name != "" || skip {
			return errors.New("zklock: parameters for TLS without TLS: want zk+tls://")
		}
		return nil
	}
	o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name, InsecureSkipVerify: skip} //nolint:gosec // only when asked for
	if ca != nil {
		o.TLS.RootCAs = x509.NewCertPool()
		if !o.TLS.RootCAs.AppendCertsFromPEM(ca) {
			return errors.New("zklock: parameter ca: the file holds no certificate in PEM")
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("zklock: parameters cert and key: %w", err)
		}
		o.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}

func plainText(s string) (string, error) { return s, nil }

func oneOf(value, what string) func(string) (bool, error) {
	return func(s string) (bool, error) {
		if !strings.EqualFold(s, value) {
			return false, fmt.Errorf("want %s, %s, or leave it out", value, what)
		}
		return true, nil
	}
}

func positive(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, errors.New("want a time such as 3s")
	}
	return d, nil
}
