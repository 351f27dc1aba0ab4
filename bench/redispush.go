package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// pushSource hands over safely: only the holder can, the next one's token is
// drawn and its lease begun before it is told, and all of it is one step.
const pushSource = `
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
local token = redis.call("INCRBY", KEYS[2], 32)
redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3])
redis.call("PUBLISH", ARGV[2], token)
return 1`

const (
	pushKey     = "bench:push"
	pushCounter = "bench:push:counter"
	pushOver    = "over"
)

// redisPush is the floor of a handover on Redis: processes in a ring give the
// lock to the next one by one script and one push. Nobody asks for the lock,
// because everybody knows who is next.
type redisPush struct {
	commands, pushes rueidis.Client
	closePushes      func()
	turns            chan string // tokens, and what says that the run is over
	hand             script
	me, next         string // channels, and values of the key
}

func openRedisPush(ctx context.Context, p place) (locker, error) {
	channel := func(i int) string { return "bench:push:" + strconv.Itoa(i) }
	r := &redisPush{
		turns: make(chan string, 2), // a turn, and the end behind it
		me:    channel(p.Process), next: channel(p.Process%p.Processes + 1),
	}
	var err error
	if r.commands, err = dialRedis(p.Redis[0]); err != nil {
		return nil, err
	}
	// A connection of its own: one that carries pushes answers commands later.
	if r.pushes, err = dialRedis(p.Redis[0]); err != nil {
		return nil, err
	}
	if r.hand, err = loadScript(ctx, r.commands, pushSource); err != nil {
		return nil, err
	}
	dedicated, end := r.pushes.Dedicate()
	r.closePushes = end
	subscribed := make(chan struct{})
	broken := dedicated.SetPubSubHooks(rueidis.PubSubHooks{
		OnSubscription: func(rueidis.PubSubSubscription) { close(subscribed) },
		OnMessage:      func(m rueidis.PubSubMessage) { r.turns <- m.Message },
	})
	if err := dedicated.Do(ctx, dedicated.B().Subscribe().Channel(r.me).Build()).Error(); err != nil {
		return nil, err
	}
	select {
	case <-subscribed:
	case err := <-broken:
		return nil, fmt.Errorf("bench: subscribe: %w", err)
	}
	if p.Process == 1 {
		r.turns <- "0"
		return r, r.commands.Do(ctx, r.commands.B().Set().Key(pushKey).Value(r.me).Build()).Error()
	}
	return r, nil
}

func (r *redisPush) mutex(string) mutex { return r }

func (r *redisPush) lock(ctx context.Context) (func() error, error) {
	if turn := <-r.turns; turn == pushOver {
		return nil, errOver
	}
	return func() error { return r.unlock(ctx) }, nil
}

func (r *redisPush) unlock(ctx context.Context) error {
	n, err := r.commands.Do(ctx, r.commands.B().Evalsha().Sha1(r.hand.sha).Numkeys(2).Key(pushKey, pushCounter).
		Arg(r.me, r.next, strconv.FormatInt(rawTTL.Milliseconds(), 10)).Build()).AsInt64()
	if err == nil && n != 1 {
		err = errors.New("bench: handed over what somebody else holds")
	}
	return err
}

// close tells the next one that nobody will hand over any more.
func (r *redisPush) close() error {
	err := r.commands.Do(context.Background(), r.commands.B().Publish().Channel(r.next).Message(pushOver).Build()).Error()
	r.closePushes()
	r.pushes.Close()
	r.commands.Close()
	return err
}
