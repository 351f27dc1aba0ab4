package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver that OpenLedger opens

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/pglock"
)

// schema has no constraint that would notice a coupon sold twice: the second sale would fail after its buyer has paid.
const schema = `
CREATE TABLE IF NOT EXISTS %[1]scoupons (
	id        TEXT NOT NULL PRIMARY KEY,
	stock     INTEGER NOT NULL, -- how many there were
	remaining INTEGER NOT NULL  -- how many there are, say those who sell
);
CREATE TABLE IF NOT EXISTS %[1]ssales (
	coupon TEXT NOT NULL,
	number INTEGER NOT NULL,
	buyer  TEXT NOT NULL,
	shop   TEXT NOT NULL,
	token  BIGINT NOT NULL
);`

// Ledger is the database: how many coupons are left, and who bought which. It is safe for concurrent use, by several
// processes too.
type Ledger struct {
	db     *sql.DB
	in     string // begins the names of tables
	fences *fence.Table
}

// OpenLedger opens the SQLite database at path, and creates it if there is none.
func OpenLedger(ctx context.Context, path string) (*Ledger, error) {
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("shop: open the ledger: %w", err)
	}
	return openLedger(ctx, db, fence.SQLite, "", "")
}

// OpenPostgresLedger opens the ledger in a schema of a PostgreSQL database, and creates it if there is none. The URL may be that of the
// store of locks.
func OpenPostgresLedger(ctx context.Context, rawURL, schema string) (*Ledger, error) {
	rawURL, _, err := driver.CutFenceBase(rawURL) // which is of tokens, and these come as they are to be
	if err != nil {
		return nil, fmt.Errorf("shop: open the ledger: %w", err)
	}
	config, _, err := pglock.ParseURL(rawURL)
	if err != nil {
		return nil, fmt.Errorf("shop: open the ledger: %w", err)
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // prepares nothing, which a pooler would lose
	db := stdlib.OpenDB(*config.ConnConfig)
	db.SetMaxOpenConns(4)
	// Of shops that open at once, one creates; the others find what it has made.
	first := "SELECT pg_advisory_xact_lock(hashtext('coupons')); CREATE SCHEMA IF NOT EXISTS " + schema + ";"
	l, err := openLedger(ctx, db, fence.PostgreSQL, schema+".", first)
	if refused := new(pgconn.PgError); errors.As(err, &refused) && refused.Code == "42501" {
		return nil, fmt.Errorf("%w: its tables are in a schema of their own, %s: want a role with CREATE on the database", err, schema)
	}
	return l, err
}

func openLedger(ctx context.Context, db *sql.DB, d fence.Dialect, in, first string) (*Ledger, error) {
	fences, err := fence.NewTable(d, in+"fence")
	if err == nil {
		_, err = db.ExecContext(ctx, first+fmt.Sprintf(schema, in)+fences.Schema())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shop: open the ledger: %w", err), db.Close())
	}
	return &Ledger{db, in, fences}, nil
}

// Remove removes a ledger of PostgreSQL, with its schema and all that is in it.
func (l *Ledger) Remove(ctx context.Context) error {
	_, err := l.db.ExecContext(ctx, "DROP SCHEMA "+strings.TrimSuffix(l.in, ".")+" CASCADE")
	return err
}

// Close closes the database.
func (l *Ledger) Close() error { return l.db.Close() }

// Offer puts n coupons up for sale, unless they are already.
func (l *Ledger) Offer(ctx context.Context, coupon string, n int) error {
	_, err := l.db.ExecContext(ctx, `INSERT INTO `+l.in+`coupons (id, stock, remaining) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, coupon, n, n)
	return err
}

// Left returns how many coupons are left.
func (l *Ledger) Left(ctx context.Context, coupon string) (n int, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT remaining FROM `+l.in+`coupons WHERE id = $1`, coupon).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("shop: there are no coupons %q", coupon)
	}
	return n, err
}

// Write writes a sale down.
func (l *Ledger) Write(ctx context.Context, s Sale) error { return l.write(ctx, l.db, s) }

// Claim stores the token of a new holder of the lock name, before its first look. From then on earlier holders are
// refused with fence.ErrStale.
func (l *Ledger) Claim(ctx context.Context, name string, token uint64) error {
	return l.fences.Claim(ctx, l.db, name, token)
}

// WriteFenced is Write for the holder of the lock name: refused with fence.ErrStale when a later one has been here.
func (l *Ledger) WriteFenced(ctx context.Context, name string, token uint64, s Sale) error {
	return l.fences.Do(ctx, l.db, name, token, func(tx *sql.Tx) error { return l.write(ctx, tx, s) })
}

// write takes the coupon off the stock *as it was when the seller looked*, which is all that a seller knows.
func (l *Ledger) write(ctx context.Context, c interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, s Sale,
) error {
	if _, err := c.ExecContext(ctx, `UPDATE `+l.in+`coupons SET remaining = $1 WHERE id = $2`, s.Number-1, s.Coupon); err != nil {
		return err
	}
	_, err := c.ExecContext(ctx, `INSERT INTO `+l.in+`sales (coupon, number, buyer, shop, token) VALUES ($1, $2, $3, $4, $5)`,
		s.Coupon, s.Number, s.Buyer, s.Shop, int64(s.Token))
	return err
}

// Account is what became of a coupon.
type Account struct {
	Stock int `json:"stock"` // how many there were
	Left  int `json:"left"`  // how many there are, says the ledger
	Sold  int `json:"sold"`  // how many sales stand in it
	Twice int `json:"twice"` // how many of them have a number that was sold before
}

// Right reports whether every coupon is either left or was sold to exactly one buyer.
func (a Account) Right() bool { return a.Twice == 0 && a.Sold+a.Left == a.Stock }

// Oversold is how many more were sold than there were.
func (a Account) Oversold() int { return max(a.Sold-a.Stock, 0) }

// Account adds up a coupon's sales.
func (l *Ledger) Account(ctx context.Context, coupon string) (a Account, err error) {
	err = l.db.QueryRowContext(ctx, `
		SELECT stock, remaining, count(number), count(number) - count(DISTINCT number)
		FROM `+l.in+`coupons LEFT JOIN `+l.in+`sales ON coupon = id WHERE id = $1 GROUP BY id`, coupon).Scan(&a.Stock, &a.Left, &a.Sold, &a.Twice)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("shop: there are no coupons %q", coupon)
	}
	return a, err
}
