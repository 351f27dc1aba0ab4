package pglock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"
)

// source is where the connections of a program come from: its pgxpool.Pool or its sql.DB.
type source interface {
	// ask sends a statement over a connection of the source, once. It returns when ctx ends; the
	// answer is then read until end without the caller.
	ask(ctx context.Context, end time.Time, m message) (result, error)

	// connect makes a connection that is not of the source, as the source makes its own.
	connect(ctx context.Context, change func(*pgx.ConnConfig)) (*pgx.Conn, error)

	most() int // how many connections may have ended unnoticed
	close()
}

// message is a statement. A careful one is carried out at the isolation level READ COMMITTED,
// whatever the default of the database or the role is: a decision under the lock of a row must see
// what was there when it got the lock.
type message struct {
	sql     string
	careful bool

	// In place of sql: the arguments of a prepared statement, as text; nil for null. It is sent so
	// if the connection keeps what it prepares.
	turn *prepared
	args [][]byte
}

// result is the answer to a statement.
type result struct {
	rows    [][][]byte
	greeted int64 // the backend that the server named when it took the connection; 0 if the client does not say
}

// prepared is a statement that each connection prepares once.
type prepared struct{ name, sql string }

// prepare names a statement by its text, so that the name stands for the same statement on every
// connection.
func prepare(sql string) prepared {
	sum := sha256.Sum256([]byte(sql))
	return prepared{"interlock_" + hex.EncodeToString(sum[:16]), sql}
}
