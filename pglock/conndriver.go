package pglock

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
	"github.com/interlock-go/interlock/internal/sessions"
)

// connDriver is a PostgreSQL as a store of locks that live with connections. It implements
// connlock.Store. It looks at the server as a Driver does, by the source.
type connDriver struct {
	*connlock.Sessions
	base
	key       func(name string) (key, error)
	technique connlock.Technique
	hand      func(l connlock.Lock, pid string) connlock.Query
	rows      bool // technique rowlock: a transaction each, that locks a row
	fence     bool // there is a sequence to draw tokens from
	pooled    bool // by a pooler that gives each client a backend of its own
}

// base is the Driver of rows. It is one level further down than the sessions, whose methods of the
// same name win.
type base struct{ *Driver }

const maxTTL = math.MaxInt32 * time.Millisecond

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

// token is what draws a token in SQL.
func (d *connDriver) token() string {
	if !d.fence {
		return "0"
	}
	return "nextval('" + d.in + "token')"
}

// Key implements driver.Keyer.
func (d *connDriver) Key(name string) string {
	k, err := d.key(name)
	if err != nil || d.rows {
		return name
	}
	return k.String()
}

// KeyOf implements connlock.Store.
func (d *connDriver) KeyOf(c driver.Claim) (string, error) {
	switch {
	case c.Kind == driver.Permit:
		return "", fmt.Errorf("%w: technique %s has no permits: use technique rows", driver.ErrRefused, d.options.Technique)
	case c.Name == "" || len(c.Name) > maxName:
		return "", fmt.Errorf("%w: want 1 to %d bytes", driver.ErrName, maxName)
	case d.rows:
		return c.Name, nil
	}
	k, err := d.key(c.Name)
	return k.String(), err
}

// settings are those of a session's own connections. Only the end of its time ends a backend; and
// that does, also if nothing could tell it that its client is gone. A setting that the server's
// version lacks is left out.
const settings = "set transaction read write; select set_config(s.name, v.setting, false) from pg_settings s join (values " +
	"('idle_session_timeout', '%d'), ('idle_in_transaction_session_timeout', '%[1]d'), ('statement_timeout', '0'), ('lock_timeout', '0'), ('transaction_timeout', '0'), " +
	"('client_connection_check_interval', '500'), ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'), ('tcp_user_timeout', '25000'), " +
	"('default_transaction_read_only', 'off'), ('application_name', encode(decode('%x', 'hex'), 'escape')), " +
	"('synchronous_commit', case when current_setting('synchronous_commit') in ('off', 'local') then 'on' else current_setting('synchronous_commit') end)" +
	") v (name, setting) using (name); "

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
	pipe := connlock.NewPipe(newWire(pg), spec.TTL, ended)
	return &conn{connlock.NewLocker(pipe, string(f[0]), &d.technique), pg, d.options.Logger, d.hand}, nil
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
