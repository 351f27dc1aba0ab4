package goredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/redisconn"
	"github.com/redis/go-redis/v9"
)

// conn is a redisconn.Conn over go-redis.
type conn struct{ client redis.UniversalClient }

// Conn makes a redisconn.Conn of a client that the program has: a *redis.Client, also one made by NewFailoverClient, or a
// *redis.ClusterClient. The client stays open when the Conn is closed.
//
// go-redis repeats commands by itself when a connection fails, and a lock's must not be: make the client with
// MaxRetries: -1, or Conn refuses it. It does not tell when it makes a new connection, so each grant asks the server for
// its time.
func Conn(client redis.UniversalClient) (redisconn.Conn, error) {
	retries := 0
	switch c := client.(type) {
	case *redis.Client:
		retries = c.Options().MaxRetries
	case *redis.ClusterClient:
		// MaxRetries is of its nodes; redirections, which say that nothing was done, have a limit of their own.
		retries = c.Options().MaxRetries
	default:
		return nil, fmt.Errorf("goredis: client is a %T: want a *redis.Client or a *redis.ClusterClient", client)
	}
	if retries > 0 {
		return nil, fmt.Errorf("goredis: the client repeats commands up to %d times by itself: want MaxRetries: -1", retries)
	}
	return &conn{client}, nil
}

// Do implements redisconn.Conn.
func (c *conn) Do(ctx context.Context, cmd redisconn.Command) (any, error) {
	v := c.command(ctx, cmd)
	_ = c.client.Process(ctx, v)
	return answer(v.Result())
}

// DoAll implements redisconn.Conn.
func (c *conn) DoAll(ctx context.Context, cmds []redisconn.Command) []redisconn.Reply {
	pipe := c.client.Pipeline()
	built := make([]*redis.Cmd, len(cmds))
	for i, cmd := range cmds {
		built[i] = c.command(ctx, cmd)
		_ = pipe.Process(ctx, built[i])
	}
	_, err := pipe.Exec(ctx)
	replies := make([]redisconn.Reply, len(cmds))
	for i, cmd := range built {
		v, e := cmd.Result()
		if e == nil && v == nil && err != nil {
			e = err // it was never sent
		}
		replies[i].Value, replies[i].Err = answer(v, e)
	}
	return replies
}

func (c *conn) command(ctx context.Context, cmd redisconn.Command) *redis.Cmd {
	words := make([]any, len(cmd.Words))
	for i, w := range cmd.Words {
		words[i] = w
	}
	v := redis.NewCmd(ctx, words...)
	if cmd.Keys > 0 {
		v.SetFirstKeyPos(int8(cmd.First)) //nolint:gosec // 1 or 3
	}
	return v
}

func answer(v any, err error) (any, error) {
	var said redis.Error
	switch {
	case err == nil:
		return v, nil
	case errors.Is(err, redis.Nil):
		return nil, nil //nolint:nilnil // a nil answer is an answer
	case errors.As(err, &said):
		return nil, redisconn.ParseError(said.Error())
	}
	return nil, err
}

// Node implements redisconn.Conn.
func (c *conn) Node(key string) string {
	cluster, ok := c.client.(*redis.ClusterClient)
	if !ok {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	master, err := cluster.MasterForKey(ctx, key)
	if err != nil {
		return "unknown"
	}
	return master.Options().Addr
}

// Moves implements redisconn.Conn.
func (c *conn) Moves() <-chan struct{} { return nil }

// EachMaster implements redisconn.Conn.
func (c *conn) EachMaster(ctx context.Context, visit func(do redisconn.DoFunc) error) error {
	doing := func(client *redis.Client) redisconn.DoFunc {
		return func(ctx context.Context, words ...string) (any, error) {
			v := c.command(ctx, redisconn.Command{Words: words})
			_ = client.Process(ctx, v)
			return answer(v.Result())
		}
	}
	switch client := c.client.(type) {
	case *redis.ClusterClient:
		turn := make(chan struct{}, 1) // go-redis visits all masters at once
		return client.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
			turn <- struct{}{}
			defer func() { <-turn }()
			return visit(doing(master))
		})
	case *redis.Client:
		return visit(doing(client))
	}
	return nil
}

// Subscribe implements redisconn.Conn.
func (c *conn) Subscribe(ctx context.Context, key, channel string, heard func(payload string)) (*redisconn.Subscription, error) {
	var pubsub *redis.PubSub
	node := ""
	switch client := c.client.(type) {
	case *redis.ClusterClient:
		master, err := client.MasterForKey(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("goredis: find the master of the slot: %w", err)
		}
		node, pubsub = master.Options().Addr, master.Subscribe(ctx)
	case *redis.Client:
		pubsub = client.Subscribe(ctx)
	}
	if err := pubsub.Subscribe(ctx, channel); err != nil {
		_ = pubsub.Close()
		_, err = answer(nil, err)
		return nil, err
	}
	if _, err := pubsub.Receive(ctx); err != nil {
		_ = pubsub.Close()
		_, err = answer(nil, err)
		return nil, err
	}
	done := make(chan struct{})
	go listen(pubsub, heard, done)
	return redisconn.NewSubscription(node, done, func() { _ = pubsub.Close() }), nil
}

// listen passes messages on until the connection fails. go-redis would make another one by itself, and nobody would learn
// that messages were lost in between.
func listen(pubsub *redis.PubSub, heard func(payload string), done chan<- struct{}) {
	defer close(done)
	defer func() { _ = pubsub.Close() }()
	silent := false
	for {
		m, err := pubsub.ReceiveTimeout(context.Background(), redisconn.DefaultKeepAlive)
		switch m := m.(type) {
		case *redis.Message:
			heard(m.Payload)
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
		if pubsub.Ping(context.Background()) != nil {
			return
		}
	}
}

// Generation implements redisconn.Conn.
func (c *conn) Generation() uint64 { return 0 }

// Abandons implements redisconn.Conn: go-redis would send the next command on another connection.
func (c *conn) Abandons() bool { return false }

// Close implements redisconn.Conn: the client is the user's.
func (c *conn) Close() {}
