package zklock_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/zk"
	"github.com/interlock-go/interlock/zklock"
)

// silent is a connection that brings a session, and no answer after it.
type silent struct {
	net.Conn
	left  int
	quiet context.CancelFunc
}

func (c *silent) Read(b []byte) (int, error) {
	if c.left == 0 {
		c.quiet()
		_, err := io.Copy(io.Discard, c.Conn) // until it is closed
		return 0, cmp.Or(err, io.EOF)
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// That a server is silent is told with how long, and is not the end of the caller's own time.
func TestASilentServerIsNotTheCallersDeadline(t *testing.T) {
	t.Parallel()
	mute, err := wire.Loopback() // whose connections nobody takes
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	server := servertest.ZooKeeper(t)
	for what, o := range map[string]*zklock.Options{
		"dial": {Dial: func(ctx context.Context, network, addr string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }},
		"open": {},
		"TLS":  {TLS: &tls.Config{MinVersion: tls.VersionTLS12}},
		"ask": {Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, server.Addr())
			return &silent{nc, 41, func() {}}, err
		}},
	} {
		o.Timeout = 300 * time.Millisecond
		_, err := zklock.Once(within(t), []string{mute.Addr().String()}, o)
		if !errors.Is(err, driver.ErrNotSent) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer for 300ms") {
			t.Errorf("%s: %v; want that nothing was sent, for want of an answer for 300ms", what, err)
		}
	}
}

func TestAServerThatOpensASessionAndIsSilent(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	ctx, cancel := context.WithCancel(within(t))
	_, err := zklock.New(ctx, []string{server.Addr()}, &zklock.Options{Timeout: patience, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &silent{nc, 41, cancel}, err // a length, and the answer to a connection
	}})
	if !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "opened a session, and answers nothing") {
		t.Errorf("%v; want that it says so", err)
	}
}

// Every way to open a store that is wrong is refused with what would be right, and without a
// secret.
func TestWhatCannotBeOpened(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	hand := byHand(t, server)
	do(t, hand, zk.Create("/there", nil, zk.Persistent, zk.Anyone))
	nobody := servertest.Nobody(t)
	for url, want := range map[string]string{
		"zk://" + server.Addr() + "/missing":                        "zkCli.sh create /missing",
		"zk://" + server.Addr() + "/there/../x":                     "without . and ..",
		"zk://" + server.Addr() + "/there//x":                       "without . and ..",
		"zk://" + server.Addr() + "/zookeeper":                      "not below /zookeeper",
		"zk://" + server.Addr() + "/%F0%9F%94%92":                   "cannot have",
		"zk://" + server.Addr() + "?timeout=soon":                   "want a duration above 0",
		"zk://" + server.Addr() + "?timeout=-1s":                    "want a duration above 0",
		"zk://" + server.Addr() + "?tiemout=1s":                     "unknown parameter",
		"zk://" + server.Addr() + "?mutex=fair":                     "want semaphore",
		"zk://" + server.Addr() + "?layout=zkc":                     "want curator or kazoo",
		"zk://" + server.Addr() + "?acl=me":                         "want world or auth",
		"zk://" + server.Addr() + "?ca=/dev/null":                   "want zk+tls://",
		"zk://:hush@" + server.Addr():                               "without a user",
		"zk://u@" + server.Addr() + "?sasl=GSSAPI":                  "Kerberos (GSSAPI) is not supported",
		"zk://u@" + server.Addr() + "?layout=kazoo&mutex=semaphore": "want Curator's",
		"zk://" + server.Addr() + "//":                              `path "//": want one as /locks`,
		"zk://," + server.Addr():                                    "an address of a server is empty",
		"zk:///locks":                                               "names no server",
		"zk:locks":                                                  "names no server",
		"zk://" + nobody + "?timeout=2s":                            nobody,
		"zk://" + nobody + ",127.0.0.1:2?timeout=2s":                "127.0.0.1:2",
	} {
		d, err := driver.OpenURL(within(t), url)
		if err == nil {
			_ = d.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v; want an error that says %q", url, err, want)
		}
	}
	d, err := driver.OpenURL(within(t), "zk://"+server.Addr()+"/there/")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	if key := d.(driver.Keyer).Key("a/b"); key != "/there/a%2Fb" {
		t.Errorf("the key is %s", key)
	}
}

// A claim that cannot be kept is refused, and nothing of it is left.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	for want, change := range map[string]func(*driver.Claim){
		"want a mutex, write": func(c *driver.Claim) { c.Kind = 7 },
		"want 1 under":        func(c *driver.Claim) { c.Kind, c.Weight = driver.Read, 2 },
		"want 1 ≤ weight":     func(c *driver.Claim) { c.Kind, c.Weight, c.Limit = driver.Permit, 3, 2 },
		"under limit 3":       func(c *driver.Claim) { c.Weight, c.Limit = 1, 3 },
		"name of 0":           func(c *driver.Claim) { c.Name = "" },
		"name of 1025":        func(c *driver.Claim) { c.Name = strings.Repeat("x", 1025) },
	} {
		c := storetest.Mutex("refused")
		change(&c)
		_, err := s.Acquire(within(t), c)
		refused(t, err, want)
	}
	hand := byHand(t, server)
	do(t, hand, zk.Create("/leaf", nil, zk.Ephemeral, zk.Anyone))
	for _, c := range []driver.Claim{storetest.Mutex("leaf"), permit("leaf", 1, 2)} {
		_, err := s.Acquire(within(t), c)
		refused(t, err, "an ephemeral node can have no children")
	}
	if names := children(t, hand, "/"); slices.Contains(names, "refused") {
		t.Errorf("there are %q", names)
	}
}

var _ interface {
	driver.Keyer
	driver.Inspector
	driver.Watcher
} = (*zklock.Driver)(nil)
