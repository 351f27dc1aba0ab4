package main

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// wire is a pool of connections to PostgreSQL that counts what is sent over
// them. Whoever asks the server sends a question at once and waits for the
// answer, so this is the number of round trips.
type wire struct {
	*pgxpool.Pool
	sent atomic.Int64
}

// openWire makes a pool, as change has it; nil = as pgx does by default.
func openWire(ctx context.Context, p place, change func(*pgxpool.Config)) (*wire, error) {
	config, err := pgxpool.ParseConfig(p.Postgres)
	if err != nil {
		return nil, err
	}
	w := &wire{}
	dialer := net.Dialer{KeepAlive: 5 * time.Minute} // as pgx does
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &wiredConn{c, &w.sent}, nil
	}
	if change != nil {
		change(config)
	}
	w.Pool, err = pgxpool.NewWithConfig(ctx, config)
	return w, err
}

// create makes a table that is not there. Processes that do so at once would
// meet in the catalogue.
func (w *wire) create(ctx context.Context, table string) error {
	_, err := w.Exec(ctx, "do $$ begin perform pg_advisory_xact_lock(1); create table if not exists "+table+"; end $$")
	if err != nil {
		return fmt.Errorf("bench: make the table: %w", err)
	}
	return nil
}

func (w *wire) requests() int64 { return w.sent.Load() }

func (w *wire) close() error {
	w.Close()
	return nil
}

type wiredConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c *wiredConn) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

// NetConn is for who sets options of the socket.
func (c *wiredConn) NetConn() net.Conn { return c.Conn }
