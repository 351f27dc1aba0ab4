package goredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/interlock-go/interlock/redisconn"
)

// failover is the address that a client of NewFailoverClient gives: its own is that of whoever is
// master.
const failover = "FailoverClient"

// changes returns what tells whether commands may go to another master by now: behind Sentinels
// always, on a Cluster never, and else if the client has made a connection since it was last asked.
func (c *conn) changes(addr string) func() bool {
	client, one := c.client.(*redis.Client)
	if !one || addr == failover {
		return func() bool { return one }
	}
	made := client.PoolStats().Misses
	return func() bool {
		was := made
		made = client.PoolStats().Misses
		return made != was
	}
}

var errOnce = errors.New("goredis: a subscription is not made again by itself")

// Subscribe implements redisconn.Conn. go-redis makes a connection that fails again and subscribes
// once more, and the server would count a subscriber whom nobody tells that messages were lost. So
// each subscription has a client of its own that can connect once.
func (c *conn) Subscribe(ctx context.Context, key, channel string, onMessage func(payload string)) (*redisconn.Subscription, error) {
	node, client, err := c.master(ctx, key)
	if err != nil {
		return nil, err
	}
	options := *client.Options()
	options.Dialer = dialOnce(options.Dialer)
	options.PoolSize, options.MinIdleConns, options.MaxIdleConns, options.DialerRetries = 1, 0, 1, 1
	options.PushNotificationProcessor = nil // that of the user's client is its own
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	own := redis.NewClient(&options)
	pubsub := own.Subscribe(ctx)
	end := sync.OnceFunc(func() {
		_ = pubsub.Close()
		_ = own.Close()
	})
	err = pubsub.Subscribe(ctx, channel)
	if err == nil {
		_, err = pubsub.Receive(ctx)
	}
	if err != nil {
		end()
		_, err = answer(nil, err)
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer c.links.Add(func() { go end() })()
		defer end()
		c.attend(pubsub, channel, c.changes(options.Addr), onMessage)
	}()
	return redisconn.NewSubscription(node, done, end), nil
}

// master returns the client of the master that owns key, and its address on a Cluster.
func (c *conn) master(ctx context.Context, key string) (node string, client *redis.Client, err error) {
	cluster, several := c.client.(*redis.ClusterClient)
	if !several {
		return "", c.client.(*redis.Client), nil //nolint:forcetypeassert // Conn takes no third kind
	}
	if client, err = cluster.MasterForKey(ctx, key); err != nil {
		return "", nil, fmt.Errorf("goredis: find the master of the slot: %w", err)
	}
	return client.Options().Addr, client, nil
}

// dialOnce lets the first connection be made and no other.
func dialOnce(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	var made atomic.Bool
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if made.Load() {
			return nil, errOnce
		}
		c, err := dial(ctx, network, addr)
		if err == nil {
			made.Store(true)
		}
		return c, err
	}
}

// attend passes messages on until the connection fails, or, where the master may move to another
// server, until the channel has no subscriber at the one that commands go to.
func (c *conn) attend(pubsub *redis.PubSub, channel string, changes func() bool, onMessage func(payload string)) {
	silent := false
	for {
		m, err := pubsub.ReceiveTimeout(context.Background(), redisconn.DefaultKeepAlive)
		switch m := m.(type) {
		case *redis.Message:
			onMessage(m.Payload)
			silent = false
		case *redis.Pong:
			silent = false
		}
		if err == nil {
			continue
		}
		var late interface{ Timeout() bool }
		if !errors.As(err, &late) || !late.Timeout() || silent {
			return // the second silence in a row: the ping was not answered
		}
		silent = true
		if pubsub.Ping(context.Background()) != nil || changes() && c.noSubscribers(channel) {
			return
		}
	}
}

// noSubscribers reports whether the master says that the channel has no subscribers.
func (c *conn) noSubscribers(channel string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), redisconn.DefaultTimeout)
	defer cancel()
	n, err := c.Do(ctx, redisconn.Command{Words: []string{"PUBLISH", channel, ""}})
	return err == nil && n == int64(0)
}
