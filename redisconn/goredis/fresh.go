package goredis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/internal/redislink"
	"github.com/interlock-go/interlock/redisconn"
)

// fresh sends commands to the master that owns the keys of the first, over a connection that has
// just answered.
func (c *conn) fresh(ctx context.Context, cmds []redisconn.Command) []redisconn.Reply {
	_, client, err := c.master(ctx, cmds[0].Words[cmds[0].First])
	if err != nil {
		return failed(cmds, err)
	}
	one, err := c.answering(ctx, client, cmds[0].Words[cmds[0].First])
	if at, ends := ctx.Deadline(); err == nil && ends && !time.Now().Before(at) { // the caller has returned
		_ = one.Close()
		err = context.DeadlineExceeded
	}
	if err != nil {
		return failed(cmds, err)
	}
	replies := together(ctx, one.Pipeline(), cmds)
	_ = one.Close() // back to the pool
	for i, reply := range replies {
		if redisconn.Is(reply.Err, "MOVED") || redisconn.Is(reply.Err, "ASK") { // nothing was done
			replies[i] = together(ctx, c.client.Pipeline(), cmds[i:i+1])[0]
		}
	}
	return replies
}

// answering returns a connection that answers. Each of the pool's may have ended while it was idle,
// and go-redis sees that before it uses one, except over TLS; or it may lead to a former master.
func (c *conn) answering(ctx context.Context, client *redis.Client, key string) (*redis.Conn, error) {
	question := []string{"PING"}
	if c.links.Lately() {
		question = redislink.Probe(key)
	}
	for idle := client.Options().PoolSize; ; idle-- {
		one := client.Conn()
		v := command(ctx, redisconn.Command{Words: question})
		_ = one.Process(ctx, v)
		_, err := answer(v.Result())
		if redisconn.Moved(nil, nil, err) && idle > 0 {
			quit(ctx, one)
			continue
		}
		var refusal *redisconn.Error
		if err == nil || errors.As(err, &refusal) { // the commands will get that answer, too
			return one, nil
		}
		_ = one.Close()
		if !redisconn.Broken(err) || idle == 0 {
			return nil, err
		}
	}
}
