package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/storeurl"
)

// ParseURL reads redis://, rediss:// (TLS), redis+sentinel:// and redis+cluster:// URLs; the last
// two take several hosts, separated by commas, and "+tls" behind the scheme's name:
//
//	redis://user:password@host:6379/0
//	redis+sentinel://:password@s1:26379,s2:26379,s3:26379/mymaster/0
//	redis+cluster+tls://n1:7000,n2:7000,n3:7000
//
// Another word may stand in the place of redis, so that the same servers are named for another
// layout.
//
// Parameters: timeout, keepalive, client_name, db, sentinel_user, sentinel_password_file,
// password_file, and for TLS ca, cert, key (files), server_name, skip_verify. The parameters that
// it does not know stay in p for others to read. An error is a [*driver.URLError].
func ParseURL(u *url.URL, p *driver.Params) (Config, error) {
	c, err := parseURL(u, p)
	if err != nil {
		return c, &driver.URLError{Err: err}
	}
	return c, nil
}

func parseURL(u *url.URL, p *driver.Params) (Config, error) {
	c := Config{Timeout: DefaultTimeout, KeepAlive: DefaultKeepAlive, ClientName: "interlock"}
	kind, encrypted := strings.CutSuffix(u.Scheme, "+tls")
	if u.Scheme == "rediss" {
		kind, encrypted = "redis", true
	}
	_, how, _ := strings.Cut(kind, "+")
	if err := misread(u); err != nil {
		return c, err
	}
	c.Cluster = how == "cluster"
	sentinels := how == "sentinel"
	if err := c.readHosts(u, sentinels); err != nil {
		return c, err
	}
	if err := c.readPath(u, sentinels); err != nil {
		return c, err
	}
	c.Username = u.User.Username()
	c.Password, _ = u.User.Password()
	if d := driver.Param(p, "timeout", storeurl.Positive); d > 0 {
		c.Timeout = d
	}
	if d := driver.Param(p, "keepalive", storeurl.Positive); d > 0 {
		c.KeepAlive = d
	}
	if name := driver.Param(p, "client_name", storeurl.Text); name != "" {
		c.ClientName = name
	}
	if db := driver.Param(p, "db", strconv.Atoi); db != 0 {
		if c.DB != 0 && c.DB != db {
			return c, fmt.Errorf("redisconn: the database stands twice in the URL, as %d and as %d: want it once", c.DB, db)
		}
		c.DB = db
	}
	if c.DB < 0 || c.Cluster && c.DB != 0 {
		return c, fmt.Errorf("redisconn: database %d: want 0 or more, and 0 on a cluster", c.DB)
	}
	if secret := driver.Param(p, "password_file", storeurl.Secret); secret != "" {
		c.Password = secret
	}
	c.SentinelUsername = driver.Param(p, "sentinel_user", storeurl.Text)
	c.SentinelPassword = driver.Param(p, "sentinel_password_file", storeurl.Secret)
	if !sentinels && (c.SentinelUsername != "" || c.SentinelPassword != "") {
		return c, fmt.Errorf("redisconn: parameters for sentinels without sentinels: want %s+sentinel://", family(u.Scheme))
	}
	var err error
	if c.TLS, err = storeurl.TLS(p, encrypted, "rediss:// or +tls behind the scheme"); err != nil {
		return c, fmt.Errorf("redisconn: %w", err)
	}
	return c, nil
}

// misread refuses a URL that does not mean what its writer meant. Unescaped, a character of a
// password can end the host, and what is left of the password stands where others may be quoted
// from: an @ there gives it away.
func misread(u *url.URL) error {
	if err := storeurl.Misread(u); err != nil {
		return fmt.Errorf("redisconn: %w", err)
	}
	switch {
	case u.Opaque != "":
		return fmt.Errorf("redisconn: the URL names no host: want %s://host:port", u.Scheme)
	case u.Fragment != "":
		return errors.New("redisconn: the URL has a # behind the host: want one in a password written as %23")
	}
	return nil
}

func (c *Config) readHosts(u *url.URL, sentinels bool) error {
	port := "6379"
	if sentinels {
		port = "26379"
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		if host == "" && (c.Cluster || sentinels || len(c.Addrs) > 0) {
			return fmt.Errorf("redisconn: the URL names no host, or an empty one: want %s://host:%s,host:%s", u.Scheme, port, port)
		}
		addr, err := storeurl.Host(host, port)
		if err != nil {
			return fmt.Errorf("redisconn: %w", err)
		}
		c.Addrs = append(c.Addrs, addr)
	}
	if !c.Cluster && !sentinels && len(c.Addrs) > 1 {
		return fmt.Errorf("redisconn: %d hosts behind %s://: want one, or %[2]s+cluster://, or %[2]s+sentinel://", len(c.Addrs), family(u.Scheme))
	}
	return nil
}

// family is the first word of a scheme: redis of redis+cluster+tls, and of rediss.
func family(scheme string) string {
	if scheme == "rediss" {
		return "redis"
	}
	word, _, _ := strings.Cut(scheme, "+")
	return word
}

func (c *Config) readPath(u *url.URL, sentinels bool) error {
	path := strings.Trim(u.Path, "/")
	if sentinels {
		c.Master, path, _ = strings.Cut(path, "/")
		if c.Master == "" {
			return fmt.Errorf("redisconn: the URL does not name the master: want %s+sentinel://host:26379/NAME", family(u.Scheme))
		}
	}
	if path == "" {
		return nil
	}
	db, err := strconv.Atoi(path)
	if err != nil {
		return fmt.Errorf("redisconn: database %q behind the host: want a number", path)
	}
	c.DB = db
	return nil
}

// OpenURL opens the connection of a URL. options reads the parameters that [ParseURL] leaves, for a
// store over the connection. A parameter that is not read is an error, before anything is
// connected.
func OpenURL(ctx context.Context, u *url.URL, options func(p *driver.Params, c Config)) (Conn, error) {
	p := driver.NewParams(u)
	c, err := ParseURL(u, p)
	if err != nil {
		return nil, err
	}
	options(p, c)
	if err := p.Err(); err != nil {
		return nil, err
	}
	return Open(ctx, c)
}
