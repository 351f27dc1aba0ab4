package pglock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlock-go/interlock/driver"
)

// linger is how long an ear stays when nobody waits any more. Every listener of a database is woken by every NOTIFY in it, whatever
// the channel: a hundred idle ones cost four tenths of the handoffs.
const linger = 5 * time.Second

// retry is how long claims ask when no ear could be made, until the next one is tried.
const retry = 5 * time.Second

var (
	errNoEar = fmt.Errorf("pglock: listen: %w: there is no connection to listen over", driver.ErrNotSent)
	errDeaf  = errors.New("what is said to this connection is not heard: want by listen the server itself, without a pooler, and the store's database")
)

// ear is the connection over which this process is told, from before it is made until it has ended. It is not of the pool, since it
// is kept; it is dialled as the pool dials.
type ear struct {
	ready chan struct{} // closed when it hears, or never will: then err says why
	done  chan struct{} // closed when it hears no more
	err   error
}

// hearing returns the ear that hears what is said to a claim from now on, or nil. A claim may be let in before the answer that put it
// in line is read, and before anybody calls Wait.
func (d *Driver) hearing(c *claim) *ear {
	if !c.Queue {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[nonce(c.ID)] = c
	if d.ear != nil {
		select {
		case <-d.ear.ready:
			return d.ear
		default:
		}
	}
	return nil
}

// listen returns the ear, and makes it if it is missing.
func (d *Driver) listen(ctx context.Context) (*ear, error) {
	d.mu.Lock()
	if d.sessions.Closed() {
		d.mu.Unlock()
		return nil, errClosed
	}
	e := d.ear
	if e == nil && time.Now().Before(d.deaf) {
		d.mu.Unlock()
		return nil, errNoEar
	}
	if e == nil {
		e = &ear{ready: make(chan struct{}), done: make(chan struct{})}
		d.ear = e
		go d.hear(e)
	}
	d.mu.Unlock()
	select {
	case <-e.ready:
		if e.err != nil {
			return nil, fmt.Errorf("pglock: listen: %w: %w", driver.ErrNotSent, e.err)
		}
		return e, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("pglock: listen: %w: %w", driver.ErrNotSent, ctx.Err())
	}
}

// unhear has nobody hear the messages for a claim.
func (d *Driver) unhear(c *claim) {
	if c.Queue {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiting, nonce(c.ID))
	}
}

// hear connects, listens until nobody waits any more or the connection ends, and has those who wait then look again.
func (d *Driver) hear(e *ear) {
	conn, err := d.dial()
	e.err = err
	if err != nil {
		d.options.Logger.Warn("pglock: claims that wait ask, since nobody can tell them", "error", err)
		d.mu.Lock()
		d.ear, d.deaf = nil, time.Now().Add(retry)
		d.mu.Unlock()
	}
	close(e.ready)
	if err == nil {
		d.follow(e, conn.PgConn())
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = conn.Close(ctx)
		cancel()
	}
	close(e.done)
}

// follow takes in messages.
func (d *Driver) follow(e *ear, pg *pgconn.PgConn) {
	for idle := false; ; {
		ctx, cancel := context.WithTimeout(d.ctx, linger)
		err := pg.WaitForNotification(ctx) // OnNotification has it
		cancel()
		quiet := err != nil && pgconn.Timeout(err) && d.ctx.Err() == nil
		d.mu.Lock()
		nobody := len(d.waiting) == 0
		if err != nil && !quiet || quiet && nobody && idle {
			d.ear = nil
			d.mu.Unlock()
			return
		}
		idle = quiet && nobody
		d.mu.Unlock()
	}
}

// hears looks whether we are told over a connection that a pooler makes, or that Listen names. It is asked before whether it keeps its
// backend: on one that is shared nothing is to be left. And what it brings with an answer it has to bring without one, too.
func (d *Driver) hears(ctx context.Context) error {
	conn, err := d.connect(ctx, func(*pgx.ConnConfig) {})
	if err != nil {
		return err
	}
	err = d.keeps(ctx, conn)
	_ = conn.Close(ctx)
	if err != nil {
		return err
	}
	if conn, err = d.dial(); err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if err = d.say(ctx); err != nil {
		return err
	}
	if err = conn.PgConn().WaitForNotification(ctx); err != nil && ctx.Err() != nil {
		err = errDeaf
	}
	return err
}

// dial makes the connection and proves that what is said over the source is heard: Listen may name another database. That takes no time
// in which to come: a server has told a listener's backend before it answers a NOTIFY, and that backend passes on what it was told before
// it answers the next query.
func (d *Driver) dial() (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, d.options.Timeout)
	defer cancel()
	heard := false
	conn, err := d.connect(ctx, func(config *pgx.ConnConfig) {
		config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
			heard = true
			d.told(n.Payload)
		}
	})
	if err != nil {
		return nil, err
	}
	// The settings are those of this connection of ours, as far as the server knows them.
	listen := `listen "` + d.channel + `"`
	_, err = conn.PgConn().Exec(ctx, "select set_config(name, '0', false) from pg_settings where name in ('idle_session_timeout', 'statement_timeout'); "+listen).ReadAll()
	if err == nil {
		err = d.say(ctx)
	}
	if err == nil {
		_, err = conn.PgConn().Exec(ctx, listen).ReadAll() // which changes nothing
	}
	if err == nil && !heard {
		err = errDeaf
	}
	if err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// say sends this process a message that says nothing.
func (d *Driver) say(ctx context.Context) error {
	_, err := d.send(ctx, message{sql: "select pg_notify('" + d.channel + "', 'heard')"})
	return err
}

// told takes in a message: "h nonce token" for a claim that is held, "r nonce" for one that should look again.
func (d *Driver) told(payload string) {
	f := strings.Fields(payload)
	if len(f) < 2 {
		return
	}
	d.mu.Lock()
	c := d.waiting[f[1]]
	d.mu.Unlock()
	if c == nil {
		return
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	switch {
	case c.Leaving || c.state > waiting:
	case f[0] == "h" && len(f) == 3:
		c.admit(number(f[2]))
		d.unhear(c)
	case f[0] == "r":
		c.asked = nil
		c.change.Give()
	}
}
