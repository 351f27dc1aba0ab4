package redistest

import (
	"context"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redisconn/goredis"
)

// Connect does what a driver does with a URL, through the proxies. The test closes the connection,
// as those below.
func Connect(t drivertest.T, b *Proxies, rawURL string) redisconn.Conn {
	t.Helper()
	conn, err := connect(b, rawURL)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func connect(b *Proxies, rawURL string) (redisconn.Conn, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	p := driver.NewParams(u)
	config, err := redisconn.ParseURL(u, p)
	if err != nil {
		return nil, err
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	config.Dial = b.Dial
	return redisconn.Open(context.Background(), config)
}

// Rueidis is a user's client of the server at addr, as a driver takes it.
func Rueidis(t drivertest.T, addr string) redisconn.Conn {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(client.Close)
	return redisconn.Rueidis(client)
}

// GoRedis is a user's client as a driver takes it.
func GoRedis(t drivertest.T, client redis.UniversalClient) redisconn.Conn {
	t.Helper()
	t.Cleanup(func() { _ = client.Close() })
	conn, err := goredis.Conn(client)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return conn
}

// GoRedisCluster is a user's client of the Cluster at the URL, through the proxies. It never asks
// twice by itself.
func GoRedisCluster(t drivertest.T, b *Proxies, rawURL string) redisconn.Conn {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return GoRedis(t, redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: strings.Split(u.Host, ","), MaxRetries: -1, Dialer: b.Dial,
	}))
}
