package shedlock

import (
	"cmp"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/storeurl"
)

func init() {
	driver.Register("shedlock+postgres", open)
	driver.Register("shedlock+mysql", open)
}

// open opens the store of a URL: shedlock+postgres:// before what libpq and pgx know, or
// shedlock+mysql://USER:PASSWORD@HOST:PORT/DATABASE with the parameters of go-sql-driver/mysql; and
// ours, table and timeout.
func open(ctx context.Context, u *url.URL) (driver.Driver, error) {
	if err := storeurl.Misread(u); err != nil {
		return nil, fmt.Errorf("shedlock: %w", err)
	}
	q, err := url.ParseQuery(u.RawQuery)
	o := &Options{Table: q.Get("table")}
	timeout, wrong := time.ParseDuration(cmp.Or(q.Get("timeout"), "3s"))
	if o.Timeout = timeout; err != nil || wrong != nil || timeout <= 0 || len(q["table"]) > 1 || len(q["timeout"]) > 1 {
		return nil, &driver.URLError{Err: errors.New("shedlock: the parameters of the store's URL: want ?name=value&name=value, with table and a timeout such as 3s once at most")}
	}
	q.Del("table")
	q.Del("timeout")
	connect := connectPostgres
	if u.Scheme == "shedlock+mysql" {
		connect = connectMySQL
	}
	connector, err := connect(*u, q.Encode())
	if err != nil {
		return nil, &driver.URLError{Err: fmt.Errorf("shedlock: the store's URL: %w", err)}
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	db.SetConnMaxIdleTime(time.Minute)
	d, err := newDriver(ctx, db, o)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	d.owned = true
	return d, nil
}

// most connections are opened by URL.
const most = 16

// connectPostgres takes the first of two parameters of a name.
func connectPostgres(u url.URL, parameters string) (sqldriver.Connector, error) {
	u.Scheme, u.Path, u.RawQuery = "postgres", "/"+strings.TrimPrefix(u.Path, "/"), strings.TrimPrefix(parameters+"&application_name=interlock", "&")
	c, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, err // without the password
	}
	return stdlib.GetConnector(*c), nil
}

// connectMySQL takes the last one. After a failover its client dials again.
func connectMySQL(u url.URL, parameters string) (sqldriver.Connector, error) {
	c, err := mysql.ParseDSN("/?autocommit=1&innodb_lock_wait_timeout=3&rejectReadOnly=true&" + parameters)
	if err != nil {
		return nil, fmt.Errorf("want the parameters of go-sql-driver/mysql, table and timeout: %w", err)
	}
	if c.DBName = strings.TrimPrefix(u.Path, "/"); c.DBName == "" || u.Hostname() == "" {
		return nil, errors.New("it names no host or no database: want shedlock+mysql://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	c.User, c.Net, c.Addr, c.Logger = u.User.Username(), "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306")), &mysql.NopLogger{}
	c.Passwd, _ = u.User.Password()
	return mysql.NewConnector(c)
}
