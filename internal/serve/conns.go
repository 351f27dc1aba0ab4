package serve

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// conns bounds the connections. Each costs a goroutine and some memory, and whoever opens many of them and asks for nothing must not keep others
// out. So those that have not asked for anything, or not since their last answer, stand in a list, the one for longest first; when there are
// too many connections that one is closed. Of a server whose connections all have a request under way the newcomer is.
//
//	new ─▶ quiet ─▶ at work ─▶ quiet ─▶ …
//	         └─ too many: the first of the list is closed
//
// A request whose header comes in slowly does not count as one until it is there.
type conns struct {
	max     int
	dropped func()

	mu    sync.Mutex
	open  map[net.Conn]*list.Element // its place among the quiet ones, nil while it has a request under way
	quiet list.List                  // of net.Conn
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
	if !known { // it was dropped, and its goroutine ends
		return
	}
	switch to {
	case http.StateActive:
		if place != nil {
			c.quiet.Remove(place)
			c.open[conn] = nil
		}
	case http.StateIdle:
		if place == nil {
			c.open[conn] = c.quiet.PushBack(conn)
		}
	case http.StateHijacked, http.StateClosed:
		if place != nil {
			c.quiet.Remove(place)
		}
		delete(c.open, conn)
	}
}

// drop closes a connection. That of TLS is closed below it: to say goodbye would be to wait for a client that reads nothing.
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
