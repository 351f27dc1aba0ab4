package pglock

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/storeurl"
	"github.com/interlock-go/interlock/internal/tables"
)

func init() {
	for _, scheme := range []string{"postgres", "postgresql"} {
		driver.Register(scheme, open)
		tables.Register(scheme, tables.MakerOf(ParseURL, schemaOf, migrateStore))
	}
}

// ours are the parameters of a URL that are for this package. All others are for the client and the
// server.
var ours = []string{"technique", "schema", "prefix", "timeout", "listen", "keys", "max_waiting"}

// ParseURL reads a URL as libpq and pgx know it, with our parameters: technique, schema, prefix,
// timeout, keys, max_waiting and listen, which is another such URL. See [Options].
func ParseURL(rawURL string) (*pgxpool.Config, *Options, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, nil, fmt.Errorf("pglock: the store's URL is malformed: want postgres://USER@HOST:PORT/DATABASE")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nil, fmt.Errorf("pglock: the parameters of the store's URL are malformed: want ?name=value&name=value")
	}
	read := *u
	read.RawQuery = strings.Join(slices.Collect(maps.Keys(q)), "") // what listen is may have an @
	if err := storeurl.Misread(&read); err != nil {
		return nil, nil, fmt.Errorf("pglock: %w", err)
	}
	for name := range q {
		if lower := strings.ToLower(name); lower != name && slices.Contains(ours, lower) {
			return nil, nil, fmt.Errorf("pglock: unknown parameter %s of the store's URL: want %s", name, lower)
		}
		if len(q[name]) > 1 {
			return nil, nil, fmt.Errorf("pglock: parameter %s stands %d times in the store's URL: want it once", name, len(q[name]))
		}
	}
	o := &Options{Technique: q.Get("technique"), Schema: q.Get("schema"), Prefix: q.Get("prefix"), Keys: q.Get("keys")}
	if s := q.Get("timeout"); s != "" {
		if o.Timeout, err = time.ParseDuration(s); err != nil || o.Timeout <= 0 {
			return nil, nil, fmt.Errorf("pglock: parameter timeout of the store's URL: want a time such as 3s")
		}
	}
	if s := q.Get("max_waiting"); s != "" {
		if o.MaxWaiting, err = strconv.Atoi(s); err != nil || o.MaxWaiting <= 0 {
			return nil, nil, fmt.Errorf("pglock: parameter max_waiting of the store's URL: want a number such as 32")
		}
	}
	if s := q.Get("listen"); s != "" {
		if o.Listen, err = pgx.ParseConfig(s); err != nil {
			return nil, nil, fmt.Errorf("pglock: parameter listen of the store's URL: want a URL of the server itself, such as postgres://USER@HOST:PORT/DATABASE")
		}
	}
	for _, name := range ours {
		q.Del(name)
	}
	if _, err := o.withDefaults(); err != nil {
		return nil, nil, err
	}
	// To pgx, as to libpq, a + is a +.
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	if u.Host == "" && u.Path == "" { // of postgres:// alone package url leaves no slash
		u.Path = "/"
	}
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return nil, nil, fmt.Errorf("pglock: %w", err) // pgx leaves the password out
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "interlock"
	}
	// A connection that has ended unnoticed shows when it is used, and then another one is.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	return config, o, nil
}

// open opens the store of a URL.
func open(ctx context.Context, u *url.URL) (driver.Driver, error) {
	config, o, err := ParseURL(u.String())
	if err != nil {
		return nil, &driver.URLError{Err: err}
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("pglock: %w", err)
	}
	d, err := newDriver(ctx, poolSource{pool}, o)
	if err != nil {
		pool.Close()
		return nil, answered(err, config.ConnConfig, o)
	}
	switch d := d.(type) {
	case *Driver:
		d.owned = true
	case *connDriver:
		d.owned = true
	}
	return d, nil
}

// schemaOf is [Schema] for the store of a URL, as one transaction.
func schemaOf(o *Options) (string, error) {
	text, err := Schema(o)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("begin;\n\n%s\ncommit;\n", text), nil
}

// migrateStore is [Migrate] for the store of a URL.
func migrateStore(ctx context.Context, config *pgxpool.Config, o *Options) (where string, err error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return "", fmt.Errorf("pglock: %w", err)
	}
	defer pool.Close()
	return "schema " + cmp.Or(o.Schema, "interlock"), Migrate(ctx, pool, o)
}
