package connlock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
)

// Lock is a claim, and what the server locks for it.
type Lock struct {
	driver.Claim
	Key string
}

// Store is what a driver knows of its server.
type Store interface {
	// KeyOf returns what the server locks for a claim, or an error that matches driver.ErrRefused.
	KeyOf(c driver.Claim) (string, error)

	// Dial makes a connection that the server ends when nothing is sent over it for spec.TTL. When it
	// notices the end of the connection it calls ended, once or more often.
	Dial(ctx context.Context, spec driver.Spec, ended func()) (Conn, error)

	// Stands returns the claims that have a name, and those that wait for it in their order, as far as
	// the server shows them.
	Stands(ctx context.Context, name string) ([]Standing, error)

	// End ends a connection by the server's name for it.
	End(ctx context.Context, conn string) error
}

// Apart is a [Store] whose locks need a connection each, such as a transaction that locks a row.
// What would be rolled back with that transaction, or keep others out, is done over the holding
// connection.
type Apart interface {
	// Prepare makes what is to be locked, before the first try. It returns false if that is not
	// visible to all yet: then somebody holds it.
	Prepare(holding Conn, l Lock) (bool, error)

	// Draw draws the token of a lock that was taken.
	Draw(holding Conn, l Lock) (uint64, error)
}

// ErrEnded is why a connection gives no answer: it has ended, and what it had is free.
var ErrEnded = errors.New("the connection has ended")

// Conn is a connection of a session, to which the server gives locks. Its methods may be called
// concurrently, and are carried out in order. After Wait, until that is answered, only Begins,
// Await, Cancel and Close may be called. All but Wait are answered within the session's TTL, or the
// connection has ended.
//
// Some call a function with the answer, once; it must not wait for another answer of the
// connection. They return when the function has. If ctx ends before, they return a
// [sessions.Underway], and the function is called all the same.
type Conn interface {
	// Try takes a lock if it is free. If not, or after an error, nothing is taken.
	Try(ctx context.Context, l Lock, then func(driver.Grant, error)) error

	// Wait stands in the server's line until it has the lock, or until Cancel. It returns at once.
	// After an error nobody knows whether it has the lock.
	Wait(l Lock, then func(driver.Grant, error))

	// Begins returns when the server begins to carry out the last Wait, as far as it tells that, or
	// when ctx has ended.
	Begins(ctx context.Context) error

	// Await returns when the last Wait was answered, or when ctx has ended. The answer may be read
	// late if nobody awaits it.
	Await(ctx context.Context) error

	// Cancel ends a Wait. If that is answered already, Cancel does nothing, and harms no later query.
	Cancel(ctx context.Context) error

	// Waits asks over this connection whether another one, which was sent a Wait, stands in line.
	Waits(ctx context.Context, other Conn) (bool, error)

	// Leave releases a lock, and reports whether there was one.
	Leave(ctx context.Context, l Lock, then func(bool, error)) error

	// Ping sends a query without effect. After an error the connection must not be used.
	Ping() error

	// Free releases everything that the connection has. It waits for the answer until ctx ends.
	Free(ctx context.Context) error

	// Close ends the connection, without waiting.
	Close()
}

// Standing is a claim as the server shows it: a connection that has a lock or waits for it.
type Standing struct {
	driver.Holder
	Conn string // what the server calls the connection
	Also int64  // how many other locks it is known to have
}
