package redisconn

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/internal/redislink"
)

// glance is the time between looks whether a client behind sentinels has another master.
const glance = 200 * time.Millisecond

// errEnded says that no message comes any more, and that the same subscription can be asked for at
// once.
var errEnded = fmt.Errorf("redisconn: the connection of a subscription was closed: %w", io.EOF)

// Subscribe implements Conn.
func (c *conn) Subscribe(ctx context.Context, key, channel string, onMessage func(payload string)) (*Subscription, error) {
	return apart(ctx, func() (s *Subscription, err error) {
		for range idle {
			s, err = c.subscribe(ctx, key, channel, onMessage)
			if err == nil || !Broken(err) || ctx.Err() != nil {
				break
			}
		}
		return s, err
	})
}

func (c *conn) subscribe(ctx context.Context, key, channel string, onMessage func(payload string)) (*Subscription, error) {
	node, client, err := c.masterOf(ctx, key)
	if err != nil {
		return nil, err
	}
	until := untilDeadline(ctx)
	defer until.finish()
	var dedicated rueidis.DedicatedClient
	var giveBack func()
	if c.straying() {
		if dedicated, giveBack, err = c.dedicate(until, client, key); err != nil {
			return nil, err
		}
	} else {
		dedicated, giveBack = client.Dedicate()
	}
	var once sync.Once
	confirmed, closed := make(chan struct{}), make(chan struct{})
	errs := dedicated.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { onMessage(m.Message) },
		OnSubscription: func(rueidis.PubSubSubscription) { once.Do(func() { close(confirmed) }) },
	})
	end := sync.OnceFunc(func() {
		dedicated.Close()
		giveBack()
	})
	if err := dedicated.Do(until, dedicated.B().Subscribe().Channel(channel).Build()).Error(); err != nil {
		end()
		_, err = c.answer(nil, err)
		return nil, err
	}
	go func() {
		defer close(closed)
		defer c.links.Add(func() { go end() })()
		defer c.suspect() // a connection that ends is often a master that does
		c.attend(node, key, dedicated, errs, end)
	}()
	select {
	case <-confirmed:
		if !c.clustered() {
			return NewSubscription("", closed, end), nil // as Node says
		}
		return NewSubscription(node, closed, end), nil
	case <-closed:
		end()
		return nil, errEnded
	case <-ctx.Done():
		end()
		return nil, ctx.Err()
	}
}

// attend returns when a subscription's connection has ended. It ends the connection when the server
// is not the master any more, which would keep it, and no message of the new one would come. Behind
// sentinels the client has another master then. Else a connection that was made since may lead to
// it, and the server says so: one that listens carries commands as well, since version 3 of the
// protocol.
func (c *conn) attend(node, key string, own rueidis.DedicatedClient, errs <-chan error, end func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range errs { // why it ended is of no use: it is made again
		}
	}()
	between, same := glance, func() bool { _, same := c.client.Nodes()[node]; return same }
	switch c.client.Mode() {
	case rueidis.ClientModeCluster:
		<-ended
		return
	case rueidis.ClientModeStandalone:
		made := c.Generation()
		between, same = DefaultKeepAlive, func() bool {
			if made == c.Generation() {
				return true
			}
			made = c.Generation()
			ctx, cancel := context.WithTimeout(context.Background(), DefaultTimeout)
			defer cancel()
			_, err := read(own.Do(ctx, own.B().Arbitrary(redislink.Probe(key)...).Build()).ToAny())
			return !Moved(nil, nil, err)
		}
	}
	tick := time.NewTicker(between)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			if !same() {
				end()
				<-ended
				return
			}
		}
	}
}
