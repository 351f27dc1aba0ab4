package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/storeurl"
)

func init() {
	driver.Register("etcd", open)
	driver.Register("etcd+tls", open)
}

// ParseURL reads etcd://user:password@host:2379,host:2379 and etcd+tls:// with the parameters
// namespace, timeout, password_file, and for TLS ca, cert, key (files), server_name and
// skip_verify. A driver's own client is made of what it returns.
func ParseURL(u *url.URL) (clientv3.Config, *Options, error) {
	// Of the client's own log there is nothing that its errors do not say; a connection that is
	// silent for long is looked after, and a server that is back is found soon: without this gRPC's
	// pauses between two attempts grow to two minutes, and one attempt may take 20 s.
	c := clientv3.Config{Logger: zap.NewNop(), DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second}
	c.DialOptions = []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
		MinConnectTimeout: 3 * time.Second,
	})}
	o, err := read(u, &c)
	if err != nil {
		err = fmt.Errorf("etcdlock: %w", err)
	}
	return c, o, err
}

func read(u *url.URL, c *clientv3.Config) (*Options, error) {
	if err := storeurl.OnlyHosts(u, "2379", "namespace"); err != nil {
		return nil, err
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		endpoint, err := storeurl.Host(host, "2379")
		if err != nil {
			return nil, err
		}
		c.Endpoints = append(c.Endpoints, endpoint)
	}
	p := driver.NewParams(u)
	o := &Options{Namespace: driver.Param(p, "namespace", storeurl.Text), Timeout: driver.Param(p, "timeout", storeurl.Positive)}
	c.Username, c.Password = storeurl.Login(u, p)
	var err error
	c.TLS, err = storeurl.SchemeTLS(u, p)
	if err == nil && c.Password != "" && c.Username == "" {
		err = errors.New("the URL has a password and no user: want user:password before the @")
	}
	if c.TLS != nil && c.TLS.ServerName != "" {
		// Else the certificate has to be of the host's name.
		c.DialOptions = append(c.DialOptions, grpc.WithAuthority(c.TLS.ServerName))
	}
	if c.Username != "" {
		c.DialOptions = append(c.DialOptions, grpc.WithChainUnaryInterceptor(login(*c)))
	}
	return o, cmp.Or(p.Err(), err)
}

// login has a login that is refused for the old token that came with it, as a server 3.4 does,
// repeated over a connection that has none. Else nothing would be answered any more after a token
// has expired.
func login(c clientv3.Config) grpc.UnaryClientInterceptor {
	c.Username, c.Password = "", ""
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, ask grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := ask(ctx, method, req, reply, cc, opts...)
		if _, is := req.(*etcdserverpb.AuthenticateRequest); !is || !errors.Is(rpctypes.Error(err), rpctypes.ErrInvalidAuthToken) {
			return err
		}
		fresh, failed := clientv3.New(c)
		if failed != nil {
			return err
		}
		defer fresh.Close()
		return fresh.ActiveConnection().Invoke(ctx, method, req, reply)
	}
}

// open implements driver.Opener.
func open(ctx context.Context, u *url.URL) (driver.Driver, error) {
	c, o, err := ParseURL(u)
	if err != nil {
		return nil, err
	}
	if c.Username != "" {
		c.DialTimeout = o.withDefaults().Timeout // it logs in at once
		if end, ends := ctx.Deadline(); ends {
			// The rest is for the look.
			c.DialTimeout = max(min(c.DialTimeout, time.Until(end)/2), time.Millisecond)
		}
	}
	client, err := clientv3.New(c)
	late := false
	if errors.Is(err, context.DeadlineExceeded) { // to log in was tried again and again, and why it failed is forgotten: a look tells
		c.Username, late = "", true
		client, err = clientv3.New(c)
	}
	if err != nil {
		return nil, fmt.Errorf("etcdlock: %s: %w", strings.Join(c.Endpoints, ","), unchanged(classify(err)))
	}
	d, err := newDriver(ctx, client, o)
	if late && errors.Is(err, rpctypes.ErrUserEmpty) { // the store is there by now, and would take the login
		err = fmt.Errorf("etcdlock: %s: %w: no answer to a login for %v", strings.Join(c.Endpoints, ","), driver.ErrNotSent, c.DialTimeout)
	}
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	d.owned = true
	return d, nil
}
