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

// About is what a server tells about itself, by name.
type About struct {
	Stats    map[string]string // what has happened since it was started
	Settings map[string]string // with which it was started
}

// dial connects, and reads what the server is and since when it runs. Its requests change nothing.
func (c *Client) dial(ctx context.Context) (*connection, About, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	dial := new(net.Dialer).DialContext
	if c.TLS != nil {
		dial = (&tls.Dialer{Config: c.TLS}).DialContext
	}
	n, err := dial(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, About{}, err
	}
	last := make(chan struct{})
	close(last)
	conn := &connection{Conn: n, r: bufio.NewReader(n), last: last, used: time.Now()}
	stop := context.AfterFunc(ctx, func() { _ = n.Close() })
	about, err := conn.greet(c.User, c.Password)
	if err == nil {
		conn.start, err = about.start()
	}
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = n.Close()
		return nil, About{}, err
	}
	return conn, about, nil
}

// greet logs in, if the server wants that, and reads what the server tells about itself.
func (c *connection) greet(user, password string) (about About, err error) {
	hello := "stats\r\nstats settings\r\n"
	if user != "" {
		if _, err := c.Write(Nothing().text); err != nil {
			return about, err
		}
		line, err := readLine(c.r)
		if err != nil {
			return about, err
		}
		// A server that does not ask for a login would store it as an item, for everybody to read.
		if strings.Contains(line, "unauthenticated") {
			secret := user + " " + password
			hello = fmt.Sprintf("set auth 0 0 %d\r\n%s\r\n%s", len(secret), secret, hello)
		}
	}
	if _, err := c.Write([]byte(hello)); err != nil {
		return about, err
	}
	about = About{map[string]string{}, map[string]string{}}
	said := about.Stats // some names are in both
	for ends := 0; ends < 2; {
		line, err := readLine(c.r)
		f := strings.SplitN(line, " ", 3)
		switch {
		case err != nil:
			return about, err
		case line == "END":
			ends++
			said = about.Settings
		case len(f) == 3 && f[0] == "STAT":
			said[f[1]] = f[2]
		case strings.Contains(line, "connections"):
			return about, fmt.Errorf("the server says %q: want it with room for more (-c)", line)
		case strings.Contains(line, "authentic"):
			return about, fmt.Errorf("%w: the server says %q: want its user and password", driver.ErrRefused, line)
		case line != "STORED":
			return about, unexpected(line)
		}
	}
	return about, nil
}

// start returns when the server was started, in seconds since 1970 by its own clock. Without that,
// and without versions, there are no locks.
func (a About) start() (int64, error) {
	if a.Settings["cas_enabled"] == "no" {
		return 0, fmt.Errorf("%w: the server keeps no versions of items: want it without -C", driver.ErrRefused)
	}
	now, err := strconv.ParseInt(a.Stats["time"], 10, 64)
	up, err2 := strconv.ParseInt(a.Stats["uptime"], 10, 64)
	if err != nil || err2 != nil || up < 0 || up > now {
		return 0, fmt.Errorf("%w: the server does not say since when it runs: want a memcached itself, and no proxy", driver.ErrRefused)
	}
	return now - up, nil
}
