package goredis

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/redisconn"
)

// listening is a redisconn.Listener over go-redis.
type listening struct {
	pubsub  *redis.PubSub
	sharded bool
	closed  chan struct{}

	mu       sync.Mutex
	awaiting map[string][]chan struct{} // by channel, what is closed when it is confirmed
	leaving  map[string]int             // channels whose end was asked for
	err      error                      // why it ended
}

// Listen implements redisconn.Conn.
func (c *conn) Listen(ctx context.Context, key string, sharded bool, onMessage func(channel, payload string)) (*redisconn.Listener, error) {
	g := &listening{sharded: sharded, closed: make(chan struct{}), awaiting: map[string][]chan struct{}{}, leaving: map[string]int{}}
	node, client, err := c.master(ctx, key)
	if err != nil {
		return nil, err
	}
	g.pubsub = client.Subscribe(ctx)
	if err := g.pubsub.Ping(ctx); err != nil {
		_ = g.pubsub.Close()
		_, err = answer(nil, err)
		return nil, err
	}
	end := func() { _ = g.pubsub.Close() }
	go func() {
		defer c.links.Add(end)()
		g.run(onMessage)
	}()
	return redisconn.NewListener(node, g.closed, g.subscribe, g.unsubscribe, end), nil
}

// run handles messages until the connection fails; see listen.
func (g *listening) run(onMessage func(channel, payload string)) {
	defer close(g.closed)
	defer func() { _ = g.pubsub.Close() }()
	silent := false
	for {
		m, err := g.pubsub.ReceiveTimeout(context.Background(), redisconn.DefaultKeepAlive)
		switch m := m.(type) {
		case *redis.Message:
			onMessage(m.Channel, m.Payload)
			silent = false
		case *redis.Subscription:
			if strings.HasSuffix(m.Kind, "unsubscribe") && !g.left(m.Channel) {
				return // the server took it away: its slot has moved
			}
			g.confirmed(m)
			silent = false
		case *redis.Pong:
			silent = false
		}
		if err == nil {
			continue
		}
		var late interface{ Timeout() bool }
		if errors.As(err, &late) && late.Timeout() && !silent {
			silent = true
			err = g.pubsub.Ping(context.Background())
		}
		if err != nil {
			g.mu.Lock()
			_, g.err = answer(nil, err)
			g.mu.Unlock()
			return
		}
	}
}

func (g *listening) confirmed(s *redis.Subscription) {
	if strings.HasSuffix(s.Kind, "unsubscribe") {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, done := range g.awaiting[s.Channel] {
		close(done)
	}
	delete(g.awaiting, s.Channel)
}

// left reports whether the end of the channel was asked for.
func (g *listening) left(channel string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leaving[channel] == 0 {
		return false
	}
	if g.leaving[channel]--; g.leaving[channel] == 0 {
		delete(g.leaving, channel)
	}
	return true
}

func (g *listening) subscribe(ctx context.Context, channel string) error {
	done := make(chan struct{})
	g.mu.Lock()
	g.awaiting[channel] = append(g.awaiting[channel], done)
	g.mu.Unlock()
	send := g.pubsub.Subscribe
	if g.sharded {
		send = g.pubsub.SSubscribe
	}
	if err := send(ctx, channel); err != nil && !errors.Is(err, redis.ErrClosed) { // run has closed it, and says why
		_, err = answer(nil, err)
		return err
	}
	select {
	case <-done:
		return nil
	case <-g.closed:
		g.mu.Lock()
		defer g.mu.Unlock()
		return errors.Join(errors.New("goredis: the connection of a subscription was closed"), g.err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *listening) unsubscribe(ctx context.Context, channel string) {
	g.mu.Lock()
	g.leaving[channel]++
	g.mu.Unlock()
	send := g.pubsub.Unsubscribe
	if g.sharded {
		send = g.pubsub.SUnsubscribe
	}
	_ = send(ctx, channel) // a connection that fails has ended, and says so by Done
}
