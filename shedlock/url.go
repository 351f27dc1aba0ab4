package shedlock

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"strconv"
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
	if err != nil {
		return nil, fmt.Errorf("shedlock: the parameters of the store's URL are malformed: want ?name=value&name=value")
	}
	for name, values := range q {
		if len(values) > 1 {
			return nil, fmt.Errorf("shedlock: parameter %s stands %d times in the store's URL: want it once", name, len(values))
		}
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
	db, err := connect(u, q)
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

func connectPostgres(u *url.URL, q url.Values) (*sql.DB, error) {
	to := *u
	to.Scheme, to.RawQuery = "postgres", q.Encode()
	if to.Host == "" && to.Path == "" { // of postgres:// alone package url leaves no slash
		to.Path = "/"
	}
	c, err := pgx.ParseConfig(to.String())
	if err != nil {
		return nil, fmt.Errorf("shedlock: %w", err) // pgx leaves the password out
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "interlock"
	}
	return stdlib.OpenDB(*c), nil
}

func connectMySQL(u *url.URL, q url.Values) (*sql.DB, error) {
	database := strings.TrimPrefix(u.Path, "/")
	if u.Hostname() == "" || database == "" || strings.Contains(database, "/") {
		return nil, fmt.Errorf("shedlock: the store's URL names no host or no database: want shedlock+mysql://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	c, err := mysql.ParseDSN("/?" + q.Encode())
	if err != nil {
		return nil, fmt.Errorf("shedlock: the parameters of the store's URL: want those of go-sql-driver/mysql, table and timeout: %w", err)
	}
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", net.JoinHostPort(u.Hostname(), port), database
	c.Passwd, _ = u.User.Password()
	c.RejectReadOnly, c.Logger = true, &mysql.NopLogger{} // after a failover it dials again; what is wrong is in errors
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	for name, value := range map[string]string{"autocommit": "1", "innodb_lock_wait_timeout": strconv.Itoa(int(defaultTimeout / time.Second))} {
		if c.Params[name] == "" {
			c.Params[name] = value
		}
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("shedlock: the store's URL: %w", err)
	}
	return sql.OpenDB(connector), nil
}
