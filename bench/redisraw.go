package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// rawTTL is how long the keys of floors last.
const rawTTL = 15 * time.Second

// rawRedis is the floor of a lock on Redis: SET NX PX, and a script that
// compares and deletes, over one connection that all goroutines share. It
// knows no tokens, no line, no lease and no renewal.
type rawRedis struct {
	client rueidis.Client
	remove script
	prefix string
	drawn  atomic.Int64
	ttl    string
}

// script is a script that the server knows by its hash.
type script struct{ sha string }

const removeSource = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`

// dialRedis opens one connection for commands.
func dialRedis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, PipelineMultiplex: -1, DisableCache: true, DisableRetry: true,
	})
}

// loadScript lets the server know a script, as any client does before its
// first lock or with it.
func loadScript(ctx context.Context, c rueidis.Client, source string) (script, error) {
	sha, err := c.Do(ctx, c.B().ScriptLoad().Script(source).Build()).ToString()
	return script{sha}, err
}

func openRawRedis(ctx context.Context, p place) (locker, error) {
	client, err := dialRedis(p.Redis[0])
	if err != nil {
		return nil, err
	}
	ttl := rawTTL
	if p.TTL > 0 {
		ttl = p.TTL
	}
	r := &rawRedis{
		client: client, ttl: strconv.FormatInt(ttl.Milliseconds(), 10),
		prefix: fmt.Sprintf("raw:%020d:", p.Process),
	}
	if r.remove, err = loadScript(ctx, client, removeSource); err != nil {
		client.Close()
		return nil, err
	}
	return r, nil
}

func (r *rawRedis) mutex(name string) mutex { return rawKey{r, name} }

type rawKey struct {
	*rawRedis
	name string
}

func (k rawKey) lock(ctx context.Context) (func() error, error) {
	value, err := k.take(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return k.unlock(ctx, value) }, nil
}

// take asks again and again, without a pause, until it has the key. It
// answers the value that it wrote there.
func (k rawKey) take(ctx context.Context) (value string, err error) {
	value = k.prefix + strconv.FormatInt(k.drawn.Add(1), 10)
	for {
		err := k.client.Do(ctx, k.client.B().Arbitrary("SET").Keys(k.name).Args(value, "NX", "PX", k.ttl).Build()).Error()
		if !rueidis.IsRedisNil(err) {
			return value, err
		}
	}
}

func (k rawKey) unlock(ctx context.Context, value string) error {
	n, err := k.client.Do(ctx, k.client.B().Evalsha().Sha1(k.remove.sha).Numkeys(1).Key(k.name).Arg(value).Build()).AsInt64()
	if err == nil && n != 1 {
		err = errors.New("bench: the raw key is somebody else's")
	}
	return err
}

func (r *rawRedis) close() error {
	r.client.Close()
	return nil
}
