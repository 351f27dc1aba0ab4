package redisconn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/internal/redislink"
)

// Open connects as c says. It returns when a server has answered.
func Open(ctx context.Context, c Config) (Conn, error) {
	made, w, links := new(atomic.Uint64), newWatcher(), new(redislink.Links)
	met := &met{Config: c}
	made.Store(1)
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	keepAlive := c.KeepAlive
	if keepAlive <= 0 {
		keepAlive = DefaultKeepAlive
	}
	dialer := net.Dialer{Timeout: timeout, KeepAlive: keepAlive}
	option := rueidis.ClientOption{
		InitAddress: c.Addrs, Username: c.Username, Password: c.Password, SelectDB: c.DB, ClientName: c.ClientName,
		TLSConfig: c.TLS, Dialer: dialer, ConnWriteTimeout: timeout,
		DisableRetry: true, DisableCache: true,
		PipelineMultiplex:  -1, // one connection is shared: commands keep their order there
		ForceSingleClient:  !c.Cluster && c.Master == "",
		DialCtxFn:          met.dialer(countingDialer(made, w, links, c.Dial)),
		ReadBufferEachConn: 1 << 14, WriteBufferEachConn: 1 << 14,
		RingScaleEachConn: redislink.RingScale,
	}
	if c.Master != "" {
		option.Sentinel = rueidis.SentinelOption{
			MasterSet: c.Master, Username: c.SentinelUsername, Password: c.SentinelPassword, Dialer: dialer, TLSConfig: c.TLS,
		}
		option.Sentinel.Dialer.Resolver = net.DefaultResolver // which nil means, too: by it their connections are known
	}
	client, err := aside(ctx, func() (rueidis.Client, error) {
		defer w.opened.Store(true)
		return rueidis.NewClient(option)
	}, rueidis.Client.Close)
	if err != nil {
		return nil, fmt.Errorf("redisconn: connect to %s: %w", met, Unchanged(answered(err)))
	}
	conn := newConn(client)
	conn.made, conn.own, conn.config, conn.watcher, conn.links = made, true, c, w, links
	return conn, nil
}

// met is what an opening has tried, for its error.
type met struct {
	Config
	master atomic.Pointer[string]
}

// dialer records the master that Sentinels name.
func (m *met) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
		if m.Master != "" && d.Resolver == nil {
			m.master.Store(&addr)
		}
		return dial(ctx, addr, d, t)
	}
}

// String names the master that was tried, and the Sentinels that named it.
func (m *met) String() string {
	all := strings.Join(m.Addrs, ", ")
	if master := m.master.Load(); master != nil {
		return fmt.Sprintf("the master %s that %s name", *master, all)
	}
	return all
}

type dialFunc = func(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error)

// countingDialer makes connections and counts them before they are used. Closed, a connection drops
// what the server has not received instead of going on to send it: a request that was given up must
// not arrive much later.
func countingDialer(made *atomic.Uint64, w *watcher, links *redislink.Links, dial func(ctx context.Context, network, addr string) (net.Conn, error)) dialFunc {
	return func(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (adopted net.Conn, err error) {
		ready, sentinel := w.begin(ctx), d.Resolver != nil
		defer func() {
			if err != nil {
				ready()
			}
		}()
		through := dial
		if through == nil {
			through = d.DialContext
		}
		c, err := through(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		made.Add(1)
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		if t == nil {
			return w.adopt(ctx, links.Adopt(c), sentinel, ready), nil
		}
		if t.ServerName == "" {
			host, _, _ := net.SplitHostPort(addr)
			t = t.Clone()
			t.ServerName = host
		}
		secured := tls.Client(c, t)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = c.Close()
			return nil, err
		}
		return w.adopt(ctx, links.Adopt(secured), sentinel, ready), nil
	}
}
