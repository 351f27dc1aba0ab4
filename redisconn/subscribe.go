package redisconn

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// glance is the time between looks whether a client behind sentinels has another master.
const glance = 200 * time.Millisecond

// Subscribe implements Conn.
func (c *conn) Subscribe(ctx context.Context, key, channel string, heard func(payload string)) (*Subscription, error) {
	return apart(ctx, func() (s *Subscription, err error) {
		for range idle {
			s, err = c.subscribe(ctx, key, channel, heard)
			if err == nil || !Broken(err) || ctx.Err() != nil {
				break
			}
		}
		return s, err
	})
}

// idle is how many connections that have ended while they were idle rueidis may offer for a subscription.
const idle = 8

func (c *conn) subscribe(ctx context.Context, key, channel string, heard func(payload string)) (*Subscription, error) {
	node, client, err := c.masterOf(ctx, key)
	if err != nil {
		return nil, err
	}
	dedicated, giveBack := client.Dedicate()
	var once sync.Once
	confirmed, closed := make(chan struct{}), make(chan struct{})
	errs := dedicated.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { heard(m.Message) },
		OnSubscription: func(rueidis.PubSubSubscription) { once.Do(func() { close(confirmed) }) },
	})
	end := sync.OnceFunc(func() {
		dedicated.Close()
		giveBack()
	})
	until := untilDeadline(ctx)
	defer until.finish()
	if err := dedicated.Do(until, dedicated.B().Subscribe().Channel(channel).Build()).Error(); err != nil {
		end()
		_, err = c.answer(nil, err)
		return nil, err
	}
	go func() {
		defer close(closed)
		defer c.suspect() // a connection that ends is often a master that does
		c.attend(node, errs, end)
	}()
	select {
	case <-confirmed:
		if !c.clustered() {
			return NewSubscription("", closed, end), nil // as Node says
		}
		return NewSubscription(node, closed, end), nil
	case <-closed:
		end()
		return nil, fmt.Errorf("redisconn: the connection of a subscription was closed: %w", io.EOF)
	case <-ctx.Done():
		end()
		return nil, ctx.Err()
	}
}

// attend returns when a subscription's connection has ended. Behind sentinels it ends the connection when the client has
// another master: a former one that the sentinels cannot reach would keep it, and no message of the new one would come.
func (c *conn) attend(node string, errs <-chan error, end func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range errs { // why it ended is of no use: it is made again
		}
	}()
	if c.client.Mode() != rueidis.ClientModeSentinel {
		<-ended
		return
	}
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			if _, same := c.client.Nodes()[node]; !same {
				end()
				<-ended
				return
			}
		}
	}
}
