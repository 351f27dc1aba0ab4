package etcdlock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/interlock-go/interlock/driver"
)

func init() {
	for _, scheme := range []string{"etcd", "etcd+tls"} {
		driver.Register(scheme, open)
	}
}

// ParseURL reads etcd://user:password@host:2379,host:2379 and etcd+tls:// with the parameters namespace, timeout, password_file, and for
// TLS ca, cert, key (files), server_name and skip_verify. A driver's own client is made of what it returns.
func ParseURL(u *url.URL) (clientv3.Config, *Options, error) {
	o := &Options{}
	// Of the client's own log there is nothing that its errors do not say; a connection that is silent for long is looked after.
	c := clientv3.Config{Logger: zap.NewNop(), DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second}
	switch {
	case strings.Contains(u.Opaque+u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@"):
		return c, o, errors.New("etcdlock: the URL has an @ behind the host: want the characters / ? # % and @ of a password written as %2F %3F %23 %25 and %40, and an @ elsewhere as %40")
	case u.Opaque != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return c, o, fmt.Errorf("etcdlock: something stands behind the hosts of the URL: want %s://host:2379,host:2379, and ?namespace= for what is to begin every key", u.Scheme)
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		h, port, err := net.SplitHostPort(host)
		if err != nil {
			h, port = strings.Trim(host, "[]"), "2379"
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return c, o, fmt.Errorf("etcdlock: port %q of host %q: want a number from 1 to 65535", port, h)
		}
		if h == "" {
			h = "localhost"
		}
		c.Endpoints = append(c.Endpoints, net.JoinHostPort(h, port))
	}
	c.Username = u.User.Username()
	c.Password, _ = u.User.Password()
	p := driver.NewParams(u)
	o.Namespace = driver.Param(p, "namespace", plain)
	o.Timeout = driver.Param(p, "timeout", positive)
	if secret := driver.Param(p, "password_file", os.ReadFile); secret != nil {
		c.Password = strings.TrimRight(string(secret), "\r\n")
	}
	err := readTLS(p, &c, strings.HasSuffix(u.Scheme, "+tls"))
	if err == nil && c.Password != "" && c.Username == "" {
		err = errors.New("etcdlock: the URL has a password and no user: want user:password before the @")
	}
	if first := p.Err(); first != nil {
		err = first
	}
	return c, o, err
}

func readTLS(p *driver.Params, c *clientv3.Config, encrypted bool) error {
	ca := driver.Param(p, "ca", os.ReadFile)
	cert, key := driver.Param(p, "cert", plain), driver.Param(p, "key", plain)
	name := driver.Param(p, "server_name", plain)
	skip := driver.Param(p, "skip_verify", strconv.ParseBool)
	if !encrypted {
		if ca != nil || cert != "" || key != "" || name != "" || skip {
			return errors.New("etcdlock: parameters for TLS without TLS: want etcd+tls://")
		}
		return nil
	}
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name, InsecureSkipVerify: skip} //nolint:gosec // only when asked for
	if ca != nil {
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(ca) {
			return errors.New("etcdlock: parameter ca: the file holds no certificate in PEM")
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("etcdlock: parameters cert and key: %w", err)
		}
		c.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
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
	c, o, err := ParseURL(u)
	if err != nil {
		return nil, err
	}
	if c.Username != "" {
		c.DialTimeout = o.withDefaults().Timeout // it logs in at once
	}
	client, err := clientv3.New(c)
	if err != nil {
		return nil, fmt.Errorf("etcdlock: %s: %w", strings.Join(c.Endpoints, ","), classify(err))
	}
	d, err := New(ctx, client, o)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	d.owned = true
	return d, nil
}
