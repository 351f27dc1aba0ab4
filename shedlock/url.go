package shedlock

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/interlock-go/interlock/driver"
)

func init() {
	driver.Register("shedlock+postgres", open)
	driver.Register("shedlock+mysql", open)
}

// open opens the store of a URL: shedlock+postgres:// before what libpq and pgx know, or shedlock+mysql://USER:PASSWORD@HOST:PORT/DATABASE with
// the parameters of go-sql-driver/mysql; and ours, table and timeout.
func open(ctx context.Context, u *url.URL) (driver.Driver, error) {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil || len(q["table"]) > 1 || len(q["timeout"]) > 1 {
		return nil, fmt.Errorf("shedlock: the parameters of the store's URL are malformed: want ?name=value&name=value, each once")
	}
	o := &Options{Table: q.Get("table")}
	if s := q.Get("timeout"); s != "" {
		if o.Timeout, err = time.ParseDuration(s); err != nil || o.Timeout <= 0 {
			return nil, fmt.Errorf("shedlock: parameter timeout of the store's URL: want a time such as 3s")
		}
	}
	q.Del("table")
	q.Del("timeout")
	connect := connectPostgres
	if strings.HasSuffix(u.Scheme, "+mysql") {
		connect = connectMySQL
	}
	db, err := connect(*u, q)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	db.SetConnMaxIdleTime(time.Minute)
	d, err := New(ctx, db, o)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	d.owned = true
	return d, nil
}

// most connections are opened by URL.
const most = 16

func connectPostgres(u url.URL, q url.Values) (*sql.DB, error) {
	if !q.Has("application_name") {
		q.Set("application_name", "interlock")
	}
	u.Scheme, u.RawQuery, u.Path = "postgres", q.Encode(), "/"+strings.TrimPrefix(u.Path, "/")
	c, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, fmt.Errorf("shedlock: %w", err) // pgx leaves the password out
	}
	return stdlib.OpenDB(*c), nil
}

func connectMySQL(u url.URL, q url.Values) (*sql.DB, error) {
	for name, value := range map[string]string{
		"autocommit": "1", "innodb_lock_wait_timeout": "3",
		"rejectReadOnly": "true", // after a failover it dials again
	} {
		if !q.Has(name) {
			q.Set(name, value)
		}
	}
	c, err := mysql.ParseDSN("/?" + q.Encode())
	if err != nil {
		return nil, fmt.Errorf("shedlock: the parameters of the store's URL: want those of go-sql-driver/mysql, table and timeout: %w", err)
	}
	c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	c.Passwd, _ = u.User.Password()
	c.Logger = &mysql.NopLogger{} // what is wrong is in errors
	if c.DBName == "" || u.Hostname() == "" {
		return nil, fmt.Errorf("shedlock: the store's URL names no host or no database: want shedlock+mysql://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	if u.Port() == "" {
		c.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("shedlock: the store's URL: %w", err)
	}
	return sql.OpenDB(connector), nil
}
