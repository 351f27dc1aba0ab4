package mysqlwire

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/internal/connlock"
)

// Wire is a connection of the client. It implements connlock.Wire.
type Wire struct {
	client driver.Conn
	stream *stream // nil where it is not ours, or not in the clear

	ctx context.Context //nolint:containedctx // of the client's calls; where the stream is not ours they end with it
	end context.CancelFunc

	mu    sync.Mutex
	asked []string      // in order; the first one was sent
	first chan struct{} // there is one, for who makes the calls
}

// Connect makes a connection by a connector of the client.
func Connect(ctx context.Context, c driver.Connector) (*Wire, error) {
	w := &Wire{ctx: context.Background(), end: func() {}, first: make(chan struct{}, 1)}
	var err error
	if w.client, err = c.Connect(context.WithValue(ctx, below{}, &w.stream)); err != nil {
		return nil, err
	}
	if w.stream == nil {
		w.ctx, w.end = context.WithCancel(context.Background()) //nolint:gosec // called by Close
	}
	return w, nil
}

// Ask asks over a connection that nobody else uses yet.
func (w *Wire) Ask(ctx context.Context, statement string) (string, error) {
	return field(ctx, w.client, statement)
}

// Conn implements connlock.Wire.
func (w *Wire) Conn() net.Conn {
	if w.stream != nil {
		return w.stream
	}
	return opaque{end: w.end}
}

// opaque is a connection of which nothing can be done but end it.
type opaque struct {
	net.Conn
	end func()
}

func (opaque) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (opaque) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

func (o opaque) Close() error {
	o.end()
	return nil
}

// Send implements connlock.Wire. The server is asked one thing at a time.
func (w *Wire) Send(q connlock.Query) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, q.SQL)
	if len(w.asked) > 1 {
		return false, nil
	}
	return false, w.send()
}

// The commands of the protocol that are sent past the client.
const (
	quit  = 1
	query = 3
)

// send sends the first query. w.mu is held.
func (w *Wire) send() error {
	if w.stream != nil {
		return w.stream.send(query, w.asked[0])
	}
	w.first <- struct{}{}
	return nil
}

// Receive implements connlock.Wire.
func (w *Wire) Receive() (connlock.Event, connlock.Reply, error) {
	r, err := w.receive()
	switch {
	case err == nil:
		return connlock.Answered, r, nil
	case !errors.Is(err, os.ErrDeadlineExceeded):
		_ = w.client.Close()
	}
	return connlock.Nothing, r, err
}

var errUnasked = errors.New("the server has ended the connection")

func (w *Wire) receive() (r connlock.Reply, err error) {
	if w.stream != nil {
		if err := w.stream.await(); err != nil {
			return r, err
		}
		w.stream.sent = true
	} else {
		select {
		case <-w.first:
		case <-w.ctx.Done():
			return r, net.ErrClosed
		}
	}
	w.mu.Lock()
	if len(w.asked) == 0 {
		w.mu.Unlock()
		return r, errUnasked
	}
	statement := w.asked[0]
	w.mu.Unlock()
	r.Field, err = field(w.ctx, w.client, statement)
	if said := new(mysql.MySQLError); errors.As(err, &said) {
		r.Err, err = err, nil
	}
	if err != nil {
		return r, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = slices.Delete(w.asked, 0, 1)
	if len(w.asked) > 0 && w.send() != nil {
		_ = w.Conn().Close() // the next Receive tells
	}
	return r, nil
}

// Bye implements connlock.Wire.
func (w *Wire) Bye() {
	if w.stream != nil {
		_ = w.stream.send(quit, "")
	}
}

// Close ends a connection that nobody else uses yet.
func (w *Wire) Close() { _ = w.client.Close() }

// field makes a statement and returns the first field of its last row, or "".
func field(ctx context.Context, c driver.Conn, statement string) (last string, err error) {
	rows, err := c.(driver.QueryerContext).QueryContext(ctx, statement, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	for err == nil {
		fields := make([]driver.Value, len(rows.Columns()))
		for err = rows.Next(fields); err == nil; err = rows.Next(fields) {
			var s sql.NullString
			if err := s.Scan(fields[0]); err != nil {
				return "", err
			}
			last = s.String
		}
		if results := rows.(driver.RowsNextResultSet); errors.Is(err, io.EOF) && results.HasNextResultSet() {
			err = results.NextResultSet()
		}
	}
	if errors.Is(err, io.EOF) {
		return last, nil
	}
	return "", err
}
