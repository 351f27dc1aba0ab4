package connlock

import (
	"context"
	"errors"
	"strconv"

	"github.com/interlock-go/interlock/driver"
)

// Technique is how a store asks its server for locks.
type Technique struct {
	// Try and Wait take a lock: the one if it is free, the other in its turn. They are answered by its
	// token, 0 where it has none, and by -1 or nothing where it was not taken.
	Try, Wait func(l Lock) Query

	// Leave releases a lock, and Left reads from the answer whether there was one.
	Leave func(l Lock) Query
	Left  func(r Reply) bool

	// Waits asks whether a connection stands in line. The answer is t, 1, or else no.
	Waits func(id string) Query

	Free   string // releases everything that a connection has
	Begins bool   // Try begins a transaction, which Leave ends, also where the lock was not free

	Classify func(err error) error // names the kind of an error, as package driver has them
}

// Locker implements Conn, except Cancel and Ping, by the queries of a [Technique].
type Locker struct {
	*Pipe
	ID string // of the connection in the server
	of *Technique
}

// NewLocker returns a Locker that asks over a pipe.
func NewLocker(p *Pipe, id string, of *Technique) *Locker { return &Locker{p, id, of} }

func (c *Locker) id() string { return c.ID }

var errUnsaid = errors.New("a wait has ended without the lock")

// grant reads the answer to Try and Wait.
func (r Reply) grant() (driver.Grant, error) {
	token, err := strconv.ParseInt(r.Field, 10, 64)
	if r.Err != nil || err != nil || token < 0 {
		return driver.Grant{}, r.Err
	}
	return driver.Grant{Held: true, Fence: uint64(token)}, nil
}

// Try implements Conn.
func (c *Locker) Try(ctx context.Context, l Lock, then func(driver.Grant, error)) error {
	return c.Call(ctx, c.of.Try(l), func(r Reply) {
		ended := errors.Is(r.Err, ErrEnded)
		if r.Err != nil && !ended {
			r.Err = c.of.Classify(r.Err)
		}
		g, err := r.grant()
		if !ended && (err != nil || !g.Held && c.of.Begins) { // the lock may be taken, without a token
			c.Ask(c.of.Leave(l), func(Reply) {})
		}
		then(g, err)
	})
}

// Wait implements Conn.
func (c *Locker) Wait(l Lock, then func(driver.Grant, error)) {
	c.Pipe.Wait(c.of.Wait(l), func(r Reply) {
		g, err := r.grant()
		if err == nil && !g.Held {
			err = errUnsaid
		}
		then(g, err)
	})
}

// Waits implements Conn.
func (c *Locker) Waits(ctx context.Context, other Conn) (bool, error) {
	answer, err := c.Fetch(ctx, c.of.Waits(other.(interface{ id() string }).id()))
	return answer == "t" || answer == "1", err
}

// Leave implements Conn.
func (c *Locker) Leave(ctx context.Context, l Lock, then func(bool, error)) error {
	return c.Call(ctx, c.of.Leave(l), func(r Reply) { then(c.of.Left(r), r.Err) })
}

// Free implements Conn.
func (c *Locker) Free(ctx context.Context) error {
	_, err := c.Fetch(ctx, Query{SQL: c.of.Free})
	return err
}
