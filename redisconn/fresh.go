package redisconn

import (
	"cmp"
	"context"
	"errors"

	"github.com/redis/rueidis"
)

// fresh sends commands to the master that owns the keys of the first, over a connection that has
// just answered. If commands share one connection to a master, it is that one, so that they stay
// behind those that were abandoned. A user's client may have several, and does not say which it
// uses, so they get a dedicated one.
func (c *conn) fresh(ctx context.Context, cmds []Command) []Reply {
	if c.connecting() {
		return asideAll(ctx, cmds, func() []Reply { return c.anew(ctx, cmds) })
	}
	return c.anew(ctx, cmds)
}

func (c *conn) anew(ctx context.Context, cmds []Command) []Reply {
	master := c.client
	if c.clustered() {
		key := cmds[0].Words[cmds[0].First]
		if master = nil; c.stalled() {
			master = c.lastMasterOf(key)
		}
		if master == nil {
			var err error
			if _, master, err = c.masterOf(ctx, key); err != nil {
				return failed(cmds, err)
			}
		}
	}
	until := c.bound(ctx)
	defer c.finish(until)
	var over interface {
		B() rueidis.Builder
		DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult
	} = master
	if c.watcher != nil {
		if err := c.answering(until, master); err != nil {
			return failed(cmds, err)
		}
	} else {
		own, err := apart(until, func() (own own, err error) {
			own.DedicatedClient, own.giveBack, err = c.dedicate(until, master, cmds[0].Words[cmds[0].First])
			return own, err
		})
		if err != nil {
			_, err = c.answer(nil, err)
			return failed(cmds, err)
		}
		defer func() {
			if until.Err() != nil { // an answer may still come
				own.Close()
			}
			own.giveBack()
		}()
		over = own
	}
	built := make([]rueidis.Completed, len(cmds))
	for i, cmd := range cmds {
		built[i] = over.B().Arbitrary(cmd.Words...).Build()
	}
	replies := make([]Reply, len(cmds))
	for i, r := range over.DoMulti(until, built...) {
		v, err := c.answer(r.ToAny())
		if Moved(cmds[i].Words, v, err) && !c.clustered() {
			c.moved()
		}
		if Is(err, "MOVED") || Is(err, "ASK") { // nothing was done
			cmd := cmds[i]
			cmd.Fresh, cmd.Behind = false, true
			v, err = c.do(ctx, cmd)
		}
		replies[i] = Reply{v, err}
	}
	return replies
}

// own is a connection for one caller.
type own struct {
	rueidis.DedicatedClient
	giveBack func()
}

// answering returns when a master has answered a PING, over a new connection if the last one had
// ended.
func (c *conn) answering(ctx context.Context, master rueidis.Client) error {
	_, err := aside(ctx, func() (struct{}, error) { return struct{}{}, c.answers(ctx, master) }, nil)
	return err
}

func (c *conn) answers(ctx context.Context, master rueidis.Client) (err error) {
	for try := 0; try < 2 && ctx.Err() == nil; try++ {
		_, err = c.answer(master.Do(ctx, master.B().Arbitrary("PING").Build()).ToAny())
		var refusal *Error
		if errors.As(err, &refusal) {
			return nil // the commands will get that answer, too
		}
		if err == nil || !Broken(err) {
			return err
		}
	}
	return cmp.Or(err, ctx.Err())
}
