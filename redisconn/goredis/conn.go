package goredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/internal/redislink"
	"github.com/interlock-go/interlock/redisconn"
)

// conn is a redisconn.Conn over go-redis.
type conn struct {
	client   redis.UniversalClient
	punctual bool // the client heeds the deadlines of contexts

	links redislink.Links // the subscriptions
}

// Conn makes a redisconn.Conn of a client that the program has: a *redis.Client, also one made by
// NewFailoverClient, or a *redis.ClusterClient. The client stays open when the Conn is closed.
//
// go-redis repeats commands by itself when a connection fails, and a lock's must not be: those that
// go through Conn are sent once, whatever the client's MaxRetries, unless [redisconn.Call].Again
// says more. With ContextTimeoutEnabled each command costs a goroutine less. go-redis does not tell
// when it makes a new connection, so each grant asks the server for its time.
func Conn(client redis.UniversalClient) (redisconn.Conn, error) {
	switch client := client.(type) {
	case *redis.Client:
		return &conn{client: client, punctual: client.Options().ContextTimeoutEnabled}, nil
	case *redis.ClusterClient:
		return &conn{client: client, punctual: client.Options().ContextTimeoutEnabled}, nil
	}
	return nil, fmt.Errorf("goredis: client is a %T: want a *redis.Client or a *redis.ClusterClient", client)
}

// once is a command that go-redis does not repeat.
type once struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }

func command(ctx context.Context, cmd redisconn.Command) once {
	words := make([]any, len(cmd.Words))
	for i, w := range cmd.Words {
		words[i] = w
	}
	v := redis.NewCmd(ctx, words...)
	if cmd.Keys > 0 {
		v.SetFirstKeyPos(int8(cmd.First)) //nolint:gosec // 1 or 3
	}
	return once{v}
}

// Do implements redisconn.Conn.
func (c *conn) Do(ctx context.Context, cmd redisconn.Command) (any, error) {
	if cmd.Fresh {
		reply := c.DoAll(ctx, []redisconn.Command{cmd})[0]
		return reply.Value, reply.Err
	}
	v := command(ctx, cmd)
	if err := c.bounded(ctx, func() { _ = c.client.Process(ctx, v) }); err != nil {
		return nil, err
	}
	return c.answered(ctx, cmd, v)
}

// DoAll implements redisconn.Conn.
func (c *conn) DoAll(ctx context.Context, cmds []redisconn.Command) []redisconn.Reply {
	var replies []redisconn.Reply
	if err := c.bounded(ctx, func() {
		if len(cmds) > 0 && cmds[0].Fresh {
			replies = c.fresh(ctx, cmds)
		} else {
			replies = together(ctx, c.client.Pipeline(), cmds)
		}
	}); err != nil {
		return failed(cmds, err)
	}
	c.found(ctx, cmds, replies)
	return replies
}

// together sends commands in one go.
func together(ctx context.Context, pipe redis.Pipeliner, cmds []redisconn.Command) []redisconn.Reply {
	built := make([]once, len(cmds))
	for i, cmd := range cmds {
		built[i] = command(ctx, cmd)
		_ = pipe.Process(ctx, built[i])
	}
	_, ended := pipe.Exec(ctx)
	replies := make([]redisconn.Reply, len(cmds))
	for i, cmd := range built {
		v, err := cmd.Result()
		if err == nil && v == nil {
			err = ended // it has no answer: another one's error ended the connection
		}
		replies[i].Value, replies[i].Err = answer(v, err)
	}
	return replies
}

func failed(cmds []redisconn.Command, err error) []redisconn.Reply {
	replies := make([]redisconn.Reply, len(cmds))
	for i := range replies {
		replies[i].Err = err
	}
	return replies
}

// bounded runs f and returns by ctx's deadline. A client that does not heed deadlines goes on with
// f for its own time, so nothing that f writes may be read after an error.
func (c *conn) bounded(ctx context.Context, f func()) error {
	at, ends := ctx.Deadline()
	if c.punctual || !ends {
		f()
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return context.DeadlineExceeded
	}
}

// answered is what a server answered to a command, or the master where it was another one.
func (c *conn) answered(ctx context.Context, cmd redisconn.Command, sent once) (any, error) {
	v, err := answer(sent.Result())
	if redisconn.Moved(cmd.Words, v, err) {
		replies := []redisconn.Reply{{Value: v, Err: err}}
		c.found(ctx, []redisconn.Command{cmd}, replies)
		return replies[0].Value, replies[0].Err
	}
	return v, err
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

// Node implements redisconn.Conn. The client reads once where the slots are and from then on
// answers at once.
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

// Doubt implements redisconn.Conn.
func (c *conn) Doubt() {
	if cluster, ok := c.client.(*redis.ClusterClient); ok {
		cluster.ReloadState(context.Background())
	}
}

// Moves implements redisconn.Conn.
func (c *conn) Moves() <-chan struct{} { return nil }

// EachMaster implements redisconn.Conn.
func (c *conn) EachMaster(ctx context.Context, visit func(do redisconn.DoFunc) error) error {
	doing := func(client *redis.Client) redisconn.DoFunc {
		return func(ctx context.Context, words ...string) (any, error) {
			v := command(ctx, redisconn.Command{Words: words})
			if err := c.bounded(ctx, func() { _ = client.Process(ctx, v) }); err != nil {
				return nil, err
			}
			return c.answered(ctx, redisconn.Command{Words: words}, v)
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

// Abandons implements redisconn.Conn: go-redis would send the next command on another connection.
func (c *conn) Abandons() bool { return false }

// Close implements redisconn.Conn: the client is the user's.
func (c *conn) Close() {}
