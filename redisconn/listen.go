package redisconn

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/redis/rueidis"
)

// Listen implements Conn.
func (c *conn) Listen(ctx context.Context, key string, sharded bool, onMessage func(channel, payload string)) (*Listener, error) {
	return apart(ctx, func() (*Listener, error) { return c.listen(ctx, key, sharded, onMessage) })
}

// listening is a Listener over rueidis.
type listening struct {
	conn    *conn
	client  rueidis.DedicatedClient
	sharded bool
	closed  chan struct{}

	mu      sync.Mutex
	leaving map[string]int // channels whose end was asked for
}

func (c *conn) listen(ctx context.Context, key string, sharded bool, onMessage func(channel, payload string)) (*Listener, error) {
	node, client, err := c.masterOf(ctx, key)
	if err != nil {
		return nil, err
	}
	until := untilDeadline(ctx)
	defer until.finish()
	dedicated, giveBack, err := c.dedicate(until, client, key)
	if err != nil {
		_, err = c.answer(nil, err)
		return nil, err
	}
	g := &listening{conn: c, client: dedicated, sharded: sharded, closed: make(chan struct{}), leaving: map[string]int{}}
	end := sync.OnceFunc(func() {
		dedicated.Close()
		giveBack()
	})
	errs := dedicated.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) { onMessage(m.Channel, m.Message) },
		OnSubscription: func(s rueidis.PubSubSubscription) {
			if strings.HasSuffix(s.Kind, "unsubscribe") && !g.left(s.Channel) {
				go end() // not from within the client's reader
			}
		},
	})
	go func() {
		defer close(g.closed)
		defer c.links.Add(func() { go end() })()
		defer c.Doubt() // a connection that ends is often a master that does
		c.attend(node, key, dedicated, errs, end)
	}()
	named := node
	if !c.clustered() {
		named = "" // as Node says
	}
	return NewListener(named, g.closed, g.subscribe, g.unsubscribe, end), nil
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
	until := untilDeadline(ctx)
	defer until.finish()
	b := g.client.B()
	cmd := b.Subscribe().Channel(channel).Build()
	if g.sharded {
		cmd = b.Ssubscribe().Channel(channel).Build()
	}
	done := make(chan error, 1)
	go func() { done <- g.client.Do(until, cmd).Error() }()
	select {
	case err := <-done:
		if errors.Is(err, rueidis.ErrClosing) {
			return errEnded
		}
		_, err = g.conn.answer(nil, err)
		return err
	case <-g.closed:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *listening) unsubscribe(ctx context.Context, channel string) {
	g.mu.Lock()
	g.leaving[channel]++
	g.mu.Unlock()
	b := g.client.B()
	cmd := b.Unsubscribe().Channel(channel).Build()
	if g.sharded {
		cmd = b.Sunsubscribe().Channel(channel).Build()
	}
	until := untilDeadline(ctx)
	defer until.finish()
	_ = g.client.Do(until, cmd) // a connection that fails has ended, and says so by Done
}
