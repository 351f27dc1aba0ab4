package goredis

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/redisconn"
)

// found sends commands, of which some were answered by a server that is not the master, to the
// master once more. A cluster says by itself where a slot is.
func (c *conn) found(ctx context.Context, cmds []redisconn.Command, replies []redisconn.Reply) {
	if _, several := c.client.(*redis.ClusterClient); several {
		return
	}
	redisconn.Resend(cmds, replies, func(again []redisconn.Command) []redisconn.Reply {
		c.links.End()
		var once []redisconn.Reply
		if err := c.bounded(ctx, func() { once = c.fresh(ctx, again) }); err != nil {
			return failed(again, err)
		}
		return once
	})
}

// quit closes a connection that leads to a former master, which go-redis does only where it hears
// READONLY. The server closes it, and go-redis sees that when it uses it. Nobody else does
// meanwhile.
func quit(ctx context.Context, one *redis.Conn) {
	defer func() { _ = one.Close() }()
	for _, word := range []string{"QUIT", "PING"} {
		_ = one.Process(ctx, command(ctx, redisconn.Command{Words: []string{word}}))
	}
}
