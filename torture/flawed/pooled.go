package flawed

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
)

// pooled is the advisory lock of a PostgreSQL, which the connection has that took it, through a
// pooler that gives every transaction another one. Who asks over a connection that has the lock
// already is given it again.
type pooled struct {
	pool *pgxpool.Pool

	mu    sync.Mutex
	conns map[string]*pgxpool.Conn // of claims that hold, by ID
}

// openPooled connects to the pooler of a URL without its scheme.
func openPooled(ctx context.Context, rest string) (driver.Driver, error) {
	config, err := pgxpool.ParseConfig("postgres://" + rest)
	if err != nil {
		return nil, fmt.Errorf("flawed: %w", err)
	}
	config.MaxConns = 64
	// a pooler knows no prepared statements
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("flawed: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("flawed: %w", err)
	}
	return &store{lock: &pooled{pool: pool, conns: map[string]*pgxpool.Conn{}}, close: pool.Close, traits: driver.Traits{
		Expires: true, MinTTL: 20 * time.Millisecond, Grain: time.Millisecond,
	}}, nil
}

func (*pooled) value(g *grip) string { return g.id }

func (p *pooled) acquire(ctx context.Context, g *grip, _ time.Duration) (held bool, err error) {
	c, err := p.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	err = c.QueryRow(ctx, "select pg_try_advisory_lock(hashtextextended($1, 0))", g.key).Scan(&held)
	if err != nil || !held {
		c.Release()
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[g.id] = c
	return true, nil
}

// conn is the connection of a claim, which is its own no more where it leaves.
func (p *pooled) conn(g *grip, leaves bool) *pgxpool.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.conns[g.id]
	if leaves {
		delete(p.conns, g.id)
	}
	return c
}

// renew sees that the connection is there.
func (p *pooled) renew(ctx context.Context, g *grip, _ time.Duration) (bool, error) {
	c := p.conn(g, false)
	if c == nil {
		return false, nil
	}
	return true, c.Ping(ctx)
}

func (p *pooled) release(ctx context.Context, g *grip) (held bool, err error) {
	c := p.conn(g, true)
	if c == nil {
		return false, nil
	}
	defer c.Release()
	err = c.QueryRow(ctx, "select pg_advisory_unlock(hashtextextended($1, 0))", g.key).Scan(&held)
	return held, err
}

func (*pooled) valid(ttl, _ time.Duration) time.Duration { return ttl }
