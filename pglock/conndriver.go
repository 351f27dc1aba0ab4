package pglock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
	"github.com/interlock-go/interlock/internal/sessions"
)

// connDriver is a PostgreSQL as a store of locks that live with connections. What it is of a Driver is for looks, by the pool.
type connDriver struct {
	*connlock.Sessions
	base
	key    func(name string) (key, error)
	rows   bool   // technique rowlock: a transaction each, that locks a row
	free   string // gives back all that a connection has
	draw   string // a token
	texts  struct{ one, pair, shared, sharedPair text }
	fence  bool // there is a sequence to draw tokens from
	pooled bool // by a pooler that gives each client a backend of its own
}

// base is the Driver of rows, one step further down than the sessions, whose methods of the same name come first.
type base struct{ *Driver }

const maxTTL = math.MaxInt32 * time.Millisecond

func newConnDriver(ctx context.Context, of *Driver) (driver.Driver, error) {
	d := &connDriver{base: base{of}, rows: of.options.Technique == "rowlock", free: "select pg_advisory_unlock_all()", draw: "nextval('" + of.in + "token')"}
	c := connlock.Config{
		Store: d, Package: "pglock", Technique: d.options.Technique, Timeout: d.options.Timeout, MinTTL: minTTL, MaxTTL: maxTTL,
		MaxWaiting: d.options.MaxWaiting, Instead: ", or use technique rows",
	}
	if d.rows {
		c.Store = rowStore{d}
	}
	d.Sessions = connlock.New(c)
	if d.rows {
		d.free = "rollback"
	}
	d.key, _ = convention(d.options.Keys) // looked at before
	if err := d.survey(ctx); err != nil {
		d.cancel()
		return nil, fmt.Errorf("pglock: %w", unchanged(err))
	}
	d.write()
	if !d.fence {
		d.options.Logger.Warn("pglock: there is no sequence " + d.in + "token, so locks have no tokens: make it with interlock migrate")
	}
	return d, nil
}

// survey looks at the server, and whether a connection of ours keeps its backend.
func (d *connDriver) survey(ctx context.Context) error {
	first, f, err := d.dial(ctx, "select pg_backend_pid(), pg_is_in_recovery(), current_setting('server_version_num')::int >= 140000, to_regclass('"+d.in+"token') is not null, "+
		"current_setting('fsync'), current_setting('full_page_writes')")
	if err != nil {
		return err
	}
	defer func() { _ = first.Close(ctx) }()
	d.fence = string(f[3]) == "t"
	switch {
	case string(f[1]) == "t":
		return errStandby()
	case string(f[2]) != "t":
		return fmt.Errorf("%w: technique %s needs PostgreSQL 14, which ends idle connections: use technique rows", driver.ErrRefused, d.options.Technique)
	case d.rows && !d.fence:
		return &driver.FindingError{Finding: d.options.absent(), Err: fmt.Errorf("%w: there is no sequence token, and perhaps no table held, in %s: make them with interlock migrate --store URL, or pglock.Migrate",
			driver.ErrRefused, d.options.where())}
	}
	if d.fence {
		v, err := row(ctx, first, "select min(version) from "+d.in+"version")
		if err != nil {
			return classify(err, &d.options)
		}
		if err := d.options.knows(number(v[0])); err != nil {
			return err
		}
	}
	if d.options.Listen != nil {
		if err := d.same(ctx, first); err != nil {
			return err
		}
	}
	d.flushes(f[4], f[5])
	d.pooled = number(f[0]) != int64(first.PgConn().PID())
	return d.keeps(ctx, first)
}

// dial makes a connection and asks it.
func (d *connDriver) dial(ctx context.Context, sql string) (*pgx.Conn, [][]byte, error) {
	pc, err := d.connect(ctx, func(*pgx.ConnConfig) {})
	if err != nil {
		return nil, nil, classify(unconnected{err}, &d.options)
	}
	keepAlive(pc.PgConn().Conn())
	f, err := row(ctx, pc, sql)
	if err != nil {
		_ = pc.Close(ctx)
		return nil, nil, classify(err, &d.options)
	}
	return pc, f, nil
}

// row asks over a connection that nobody else uses, and returns the last row.
func row(ctx context.Context, pc *pgx.Conn, sql string) ([][]byte, error) {
	results, err := pc.PgConn().Exec(ctx, sql).ReadAll()
	if err == nil && (len(results) == 0 || len(results[len(results)-1].Rows) == 0) {
		err = errors.New("the server answered nothing")
	}
	if err != nil {
		return nil, err
	}
	return results[len(results)-1].Rows[0], nil
}

// Traits implements driver.Driver.
func (d *connDriver) Traits() driver.Traits {
	t := driver.Traits{
		Ordered: !d.rows, Shared: true, Mixed: true, Events: driver.AllKinds, Expires: true,
		MinTTL: minTTL, MaxTTL: maxTTL, Grain: 2 * grain, Notice: time.Second,
	}
	if d.fence {
		t.Fence = driver.Durable
	}
	return t
}

// Key implements driver.Keyer.
func (d *connDriver) Key(name string) string {
	k, err := d.key(name)
	if err != nil || d.rows {
		return name
	}
	return k.String()
}

// Dial implements connlock.Store.
func (d *connDriver) Dial(ctx context.Context, spec driver.Spec, ended func()) (connlock.Conn, error) {
	set := fmt.Sprintf(settings, spec.TTL.Milliseconds(), "interlock "+spec.Owner.Name)
	if d.fence {
		set += "select " + d.in + "advance(); "
	}
	pc, f, err := d.dial(ctx, set+ping)
	if err == nil && !d.pooled && number(f[0]) != int64(pc.PgConn().PID()) {
		_ = pc.Close(ctx)
		err = errPooler
	}
	if err != nil {
		return nil, err
	}
	pg := pc.PgConn()
	return &conn{connlock.NewPipe(newWire(pg), spec.TTL, ended), pg, d, string(f[0])}, nil
}

// Close implements driver.Driver.
func (d *connDriver) Close(ctx context.Context) error {
	first, err := d.Sessions.Close(ctx)
	if first {
		d.cancel()
		if d.owned {
			_ = sessions.Aside(ctx, 0, func(context.Context) error {
				d.source.close()
				return nil
			})
		}
	}
	return err
}
