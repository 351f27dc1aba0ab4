package mysqllock

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/mysqlwire"
	"github.com/interlock-go/interlock/internal/storeurl"
	"github.com/interlock-go/interlock/internal/tables"
)

func init() {
	driver.Register("mysql", open)
	tables.Register("mysql", tables.MakerOf(ParseURL, Schema, migrateStore))
}

// ParseURL reads mysql://USER:PASSWORD@HOST:PORT/DATABASE with the parameters technique, keys,
// max_waiting, prefix, timeout and tls: see [Options]. TLS is false, which is the default, true,
// skip-verify, or preferred, as the client has it.
func ParseURL(rawURL string) (*mysql.Config, *Options, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "mysql" || u.Hostname() == "" || u.Opaque != "" {
		return nil, nil, errors.New("mysqllock: the store's URL is malformed: want mysql://USER@HOST:PORT/DATABASE")
	}
	if err := storeurl.Misread(u); err != nil {
		return nil, nil, fmt.Errorf("mysqllock: %w", err)
	}
	p := driver.NewParams(u)
	o := &Options{
		Technique: driver.Param(p, "technique", storeurl.Text), Prefix: driver.Param(p, "prefix", storeurl.Text), Timeout: driver.Param(p, "timeout", storeurl.Positive),
		Keys: driver.Param(p, "keys", storeurl.Text), MaxWaiting: driver.Param(p, "max_waiting", count),
	}
	c := mysql.NewConfig()
	c.TLSConfig = driver.Param(p, "tls", tlsMode)
	if err := p.Err(); err != nil {
		return nil, nil, err
	}
	if _, err := o.withDefaults(); err != nil {
		return nil, nil, err
	}
	c.DBName = strings.TrimPrefix(u.Path, "/")
	if c.DBName == "" || strings.Contains(c.DBName, "/") {
		return nil, nil, errors.New("mysqllock: the store's URL names no database: want mysql://USER@HOST:PORT/DATABASE")
	}
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.Logger = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306")), &mysql.NopLogger{}
	return c, o, nil
}

func count(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return 0, errors.New("want a number such as 32")
	}
	return n, nil
}

func tlsMode(s string) (string, error) {
	if !slices.Contains([]string{"false", "true", "skip-verify", "preferred"}, s) {
		return "", errors.New("want false, true, skip-verify or preferred")
	}
	return s, nil
}

// open opens the store of a URL.
func open(ctx context.Context, u *url.URL) (driver.Driver, error) {
	c, o, err := ParseURL(u.String())
	if err != nil {
		return nil, &driver.URLError{Err: err}
	}
	if c.TLSConfig == "" || c.TLSConfig == "false" {
		c.DialFunc = mysqlwire.Dial
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("mysqllock: %w", err)
	}
	d, err := dialling(ctx, connector, o)
	if err != nil {
		return nil, answered(ctx, err, connector, c, o)
	}
	return d, nil
}

// migrateStore is [Migrate] for the store of a URL.
func migrateStore(ctx context.Context, config *mysql.Config, o *Options) (where string, err error) {
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return "", &driver.URLError{Err: err}
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	return "database " + config.DBName, Migrate(ctx, db, o)
}
