package serve

import (
	"bytes"
	"container/list"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
)

// conns bounds the connections. Each costs a goroutine and some memory, and a client that opens
// many of them without a request that it may make must not keep others out. So the connections
// without an admitted request under way are in a list, the longest idle first, and when there are
// too many connections the first of that list is closed. If all have such a request under way the
// new one is.
//
//	new ─▶ quiet ─▶ at work ─▶ quiet ─▶ …
//	         └─ too many: the first of the list is closed
//
// A request is admitted when it has arrived with its body and has a credential, where one is
// needed: see admit. One whose header or body arrives slowly does not count until then.
type conns struct {
	max     int
	dropped func()

	mu    sync.Mutex
	open  map[net.Conn]*list.Element // its place in quiet, nil while it has a request under way
	quiet list.List                  // of net.Conn; the last one has changed last
}

func newConns(most int, dropped func()) *conns {
	return &conns{max: most, dropped: dropped, open: map[net.Conn]*list.Element{}}
}

// changed is http.Server.ConnState.
func (c *conns) changed(conn net.Conn, to http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	place, known := c.open[conn]
	if to == http.StateNew {
		c.open[conn] = c.quiet.PushBack(conn)
		if len(c.open) > c.max {
			c.drop(c.quiet.Front())
		}
		return
	}
	if !known { // it was dropped
		return
	}
	switch to {
	case http.StateActive, http.StateIdle:
		if place != nil {
			c.quiet.MoveToBack(place)
		} else if to == http.StateIdle {
			c.open[conn] = c.quiet.PushBack(conn)
		}
	case http.StateHijacked, http.StateClosed:
		if place != nil {
			c.quiet.Remove(place)
		}
		delete(c.open, conn)
	}
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// connContext is http.Server.ConnContext.
func connContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// admit records that the connection has an admitted request under way.
func (c *conns) admit(ctx context.Context) {
	conn, ok := ctx.Value(connKey{}).(net.Conn)
	if !ok { // of a test without a server
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if place := c.open[conn]; place != nil {
		c.quiet.Remove(place)
		c.open[conn] = nil
	}
}

// arrive waits for the body of a request, so that reading it later does not. An error is returned
// to the reader. A body that is announced as too long is not waited for.
func arrive(r *http.Request) {
	switch {
	case r.ContentLength == 0:
		return
	case r.ContentLength > maxBody:
		r.Body = io.NopCloser(failing{&http.MaxBytesError{Limit: maxBody}})
		return
	}
	b, err := io.ReadAll(r.Body)
	if err == nil {
		err = io.EOF
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(b), failing{err}))
}

// failing is a reader that returns an error.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// drop closes a connection that is in quiet. One of TLS is closed below TLS, whose farewell would
// wait for a client that reads nothing. Called under mu.
func (c *conns) drop(place *list.Element) {
	conn := c.quiet.Remove(place).(net.Conn)
	delete(c.open, conn)
	c.dropped()
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	_ = conn.Close()
}

// count returns how many connections there are.
func (c *conns) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}
