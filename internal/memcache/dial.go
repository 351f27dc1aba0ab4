package memcache

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// dial connects, and asks since when the server runs. Nothing that it sends changes anything.
func (c *Client) dial(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	dial := new(net.Dialer).DialContext
	if c.TLS != nil {
		dial = (&tls.Dialer{Config: c.TLS}).DialContext
	}
	n, err := dial(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, err
	}
	last := make(chan struct{})
	close(last)
	conn := &connection{Conn: n, r: bufio.NewReader(n), last: last, used: time.Now()}
	stop := context.AfterFunc(ctx, func() { _ = n.Close() })
	if conn.start, err = conn.greet(c.User, c.Password); !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = n.Close()
		return nil, err
	}
	return conn, nil
}

// greet says who we are, where that is wanted, and reads what a lock has to know of the server.
func (c *connection) greet(user, password string) (start int64, err error) {
	hello := "stats\r\nstats settings\r\n"
	if user != "" {
		if _, err := c.Write(Nothing().text); err != nil {
			return 0, err
		}
		line, err := readLine(c.r)
		if err != nil {
			return 0, err
		}
		if strings.Contains(line, "unauthenticated") { // one that does not ask would keep this as an item, for everybody to read
			secret := user + " " + password
			hello = fmt.Sprintf("set auth 0 0 %d\r\n%s\r\n%s", len(secret), secret, hello)
		}
	}
	if _, err := c.Write([]byte(hello)); err != nil {
		return 0, err
	}
	said := map[string]string{}
	for ends := 0; ends < 2; {
		line, err := readLine(c.r)
		f := strings.SplitN(line, " ", 3)
		switch {
		case err != nil:
			return 0, err
		case line == "END":
			ends++
		case len(f) == 3 && f[0] == "STAT":
			said[f[1]] = f[2]
		case strings.Contains(line, "connections"):
			return 0, fmt.Errorf("the server says %q: want it with room for more (-c)", line)
		case strings.Contains(line, "authentic"):
			return 0, fmt.Errorf("%w: the server says %q: want its user and password", driver.ErrRefused, line)
		case line != "STORED":
			return 0, unexpected(line)
		}
	}
	if said["cas_enabled"] == "no" {
		return 0, fmt.Errorf("%w: the server keeps no versions of items: want it without -C", driver.ErrRefused)
	}
	now, err := strconv.ParseInt(said["time"], 10, 64)
	up, err2 := strconv.ParseInt(said["uptime"], 10, 64)
	if err != nil || err2 != nil || up < 0 || up > now {
		return 0, fmt.Errorf("%w: the server does not say since when it runs: want a memcached itself, and no proxy", driver.ErrRefused)
	}
	return now - up, nil
}
