// Package storeurl reads what the URLs of stores behind a network have in common.
package storeurl

import (
	"cmp"
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

	"github.com/interlock-go/interlock/driver"
)

// Misread refuses a URL that does not mean what its writer meant. Unescaped, a character of a
// password can end the host, and what is left of the password stands where others may be quoted
// from: an @ there gives it away.
func Misread(u *url.URL) error {
	if strings.Contains(u.Opaque+u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@") {
		return &driver.URLError{Err: errors.New("the URL has an @ behind the host: want the characters / ? # % and @ of a password written as %2F %3F %23 %25 and %40, and an @ elsewhere as %40")}
	}
	return nil
}

// OnlyHosts is [Misread] for a URL that has nothing between its hosts and its parameters.
func OnlyHosts(u *url.URL, port, parameter string) error {
	if err := Misread(u); err != nil {
		return err
	}
	if u.Opaque != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("something stands behind the hosts of the URL: want %s://host:%[2]s,host:%[2]s, and ?%s= for what is to begin every key", u.Scheme, port, parameter)
	}
	return nil
}

// Login reads user and password. A password from the file that the parameter password_file names
// comes first.
func Login(u *url.URL, p *driver.Params) (user, password string) {
	password, _ = u.User.Password()
	return u.User.Username(), cmp.Or(driver.Param(p, "password_file", Secret), password)
}

// Host reads one of the hosts; without a port it has the usual one, and without a name it is this
// machine.
func Host(host, usual string) (string, error) {
	h, port, err := net.SplitHostPort(host)
	if err != nil {
		h, port = strings.Trim(host, "[]"), usual
	}
	if h == "" {
		h = "localhost"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", &driver.URLError{Err: fmt.Errorf("port %q of host %q: want a number from 1 to 65535", port, h)}
	}
	return net.JoinHostPort(h, port), nil
}

// SchemeTLS is [TLS] for a store whose encrypted scheme ends in +tls.
func SchemeTLS(u *url.URL, p *driver.Params) (*tls.Config, error) {
	plain := strings.TrimSuffix(u.Scheme, "+tls")
	return TLS(p, plain != u.Scheme, plain+"+tls://")
}

// TLS reads the parameters ca, cert, key (files), server_name and skip_verify. It is nil where the
// URL is not of an encrypted scheme, which want names.
func TLS(p *driver.Params, encrypted bool, want string) (*tls.Config, error) {
	ca := driver.Param(p, "ca", os.ReadFile)
	cert, key := driver.Param(p, "cert", Text), driver.Param(p, "key", Text)
	name := driver.Param(p, "server_name", Text)
	skip := driver.Param(p, "skip_verify", truth)
	if !encrypted {
		if ca != nil || cert != "" || key != "" || name != "" || skip {
			return nil, fmt.Errorf("parameters for TLS without TLS: want %s", want)
		}
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name, InsecureSkipVerify: skip} //nolint:gosec // only when asked for
	if ca != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("parameter ca: the file holds no certificate in PEM")
		}
	}
	if (cert == "") != (key == "") {
		return nil, errors.New("of the parameters cert and key there is one: want both")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("parameters cert and key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Text reads a parameter as it stands there.
func Text(s string) (string, error) { return s, nil }

func truth(s string) (bool, error) {
	is, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%q: want true or false", s)
	}
	return is, nil
}

// Positive reads a duration.
func Positive(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q: want a duration above 0, such as 3s", s)
	}
	return d, nil
}

// Secret reads the file that has it.
func Secret(file string) (string, error) {
	b, err := os.ReadFile(file)
	return strings.TrimRight(string(b), "\r\n"), err
}
