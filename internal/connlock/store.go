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

	// Dial makes a connection that the server ends when nothing was asked over it for spec.TTL. Where
	// it notices by itself that the connection has ended it calls ended, once or more often.
	Dial(ctx context.Context, spec driver.Spec, ended func()) (Conn, error)

	// Stands reads who has a name, and who waits for it in the order in which they came, as far as the
	// server shows that.
	Stands(ctx context.Context, name string) ([]Standing, error)

	// End ends a connection, as the server calls it.
	End(ctx context.Context, conn string) error
}

// Apart is a [Store] whose locks need a connection each, as a transaction does that locks a row.
// What such a transaction would take back, or keep others from, is done over the holding
// connection.
type Apart interface {
	// Prepare makes what is to be locked, before the first try. It reports whether that is there for
	// all to see; if not, somebody has it.
	Prepare(holding Conn, l Lock) (bool, error)

	// Draw draws the token of a lock that was taken.
	Draw(holding Conn, l Lock) (uint64, error)
}

// ErrEnded is why a connection gives no answer: it has ended, and what it had is free.
var ErrEnded = errors.New("the connection has ended")

// Conn is a connection, and what has the locks in the server: as a rule, a [Pipe] and the words of
// its store. Its methods may be called concurrently, but for Wait, until whose answer there is only
// Begins, Await, Cancel and Close; they are carried out in order. All but Wait are answered within
// the session's TTL, or the connection has ended.
//
// Some give their answer to a function, once, which must not wait for another answer of the
// connection. They return when it is back; when ctx ends before, a [sessions.Underway], and it is
// called all the same.
type Conn interface {
	// Try takes a lock if it is free. If not, or after an error, nothing is taken.
	Try(ctx context.Context, l Lock, then func(driver.Grant, error)) error

	// Wait stands in the server's line until it has the lock, or until Cancel. It returns at once.
	// After an error nobody knows whether it has the lock.
	Wait(l Lock, then func(driver.Grant, error))

	// Begins returns when the server is about to carry out the last Wait, as far as it tells that, or
	// why ctx has ended.
	Begins(ctx context.Context) error

	// Await returns when the last Wait was answered, or why ctx has ended. The answer may be late
	// where nobody awaits it.
	Await(ctx context.Context) error

	// Cancel ends a Wait. One that comes too late does nothing, to whatever is asked after it was
	// answered.
	Cancel(ctx context.Context) error

	// Waits looks over this connection whether another one, of which Wait was asked, stands in line.
	Waits(ctx context.Context, other Conn) (bool, error)

	// Leave gives a lock back, and reports whether there was one.
	Leave(ctx context.Context, l Lock, then func(bool, error)) error

	// Ping asks for nothing. An error says that the connection is not to be trusted.
	Ping() error

	// Free gives back all that the connection has. It waits for the answer until ctx ends.
	Free(ctx context.Context) error

	// Close ends the connection. It does not wait for anybody.
	Close()
}

// Standing is a claim as the server shows it: a connection that has a lock or waits for it.
type Standing struct {
	driver.Holder
	Conn string // what the server calls the connection
	Also int64  // how many other locks it is known to have
}
