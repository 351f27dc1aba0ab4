// Package redisfence is the checking half of fencing tokens for what is kept in Redis: it refuses the writes of those
// who no longer hold the lock. See package fence for why that is needed.
//
//	guard := redisfence.New(redisconn.Rueidis(client))
//	err = locks.Mutex("stock/{42}").Do(ctx, func(ctx context.Context) error {
//		token := interlock.Fence(ctx, "stock/{42}")
//		if err := guard.Claim(ctx, "stock/{42}", token); err != nil { // before the first read
//			return err
//		}
//		left, err := client.Do(ctx, client.B().Get().Key("left:{42}").Build()).AsInt64()
//		if err != nil {
//			return err
//		}
//		return guard.Set(ctx, "stock/{42}", token, "left:{42}", strconv.FormatInt(left-1, 10))
//	})
//
// The lock may be in another store than what it protects; the token is only a number. On a Cluster what is guarded must lie
// in the slot of the name, which a tag in braces does, as {42} above.
package redisfence

import (
	"context"
	_ "embed" // the script
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/redisconn"
)

//go:embed guard.lua
var guardText string

var (
	claimScript = Script("return 1")
	setScript   = Script("return redis.call('SET', KEYS[1], ARGV[1])")
)

// Script makes a guarded script of Lua text, for [Guard.Run]: the text runs only if the token passes, in the same step.
// It sees KEYS and ARGV as given to Run, and what it returns is returned.
func Script(text string) *redisconn.Script {
	return redisconn.NewScript("", strings.Replace(guardText, "--BODY", text, 1))
}

// Guard keeps the highest token seen of any number of names in the Redis whose keys they guard, under fence:{…}:NAME. These
// keys have no expiry, and must not be deleted while an earlier holder may still run. A Guard may be used concurrently.
type Guard struct{ run redisconn.Runner }

// New returns a guard over conn, which stays the caller's.
func New(conn redisconn.Conn) *Guard { return &Guard{redisconn.Runner{Conn: conn}} }

// Key returns where the highest token of name stands: in the slot of name.
func (g *Guard) Key(name string) string { return "fence:{" + redisconn.Tag(name) + "}:" + name }

// Claim stores token for name. A holder calls it before its first read of what it will write: what it reads then cannot
// change any more by the hand of an earlier holder. Errors match [fence.ErrStale], [fence.ErrNoToken], [fence.ErrRange],
// or are the server's.
func (g *Guard) Claim(ctx context.Context, name string, token uint64) error {
	_, err := g.Run(ctx, name, token, claimScript, nil, nil)
	return err
}

// Set sets key to value if token passes for name, in one step. Errors are as of [Guard.Claim].
func (g *Guard) Set(ctx context.Context, name string, token uint64, key, value string) error {
	_, err := g.Run(ctx, name, token, setScript, []string{key}, []string{value})
	return err
}

// Run runs a script made by [Script] if token passes for name, in one step, and returns what it returned: nil, int64,
// string or []any. Errors are as of [Guard.Claim]; after an error that is none of these the outcome may be unknown.
func (g *Guard) Run(ctx context.Context, name string, token uint64, script *redisconn.Script, keys, args []string) (any, error) {
	if err := fence.Valid(token); err != nil {
		return nil, err
	}
	if len(name) == 0 || len(name) > 1024 {
		return nil, fmt.Errorf("redisfence: name of %d bytes: want 1 to 1024", len(name))
	}
	v, err := g.run.Run(ctx, redisconn.Call{
		Script: script,
		Keys:   append([]string{g.Key(name)}, keys...),
		Args:   append([]string{strconv.FormatUint(token, 10)}, args...),
	})
	var answer *redisconn.Error
	if errors.As(err, &answer) && answer.Code == "STALE" {
		highest, _ := strconv.ParseUint(strings.TrimPrefix(answer.Text, "STALE "), 10, 64)
		return nil, fence.Check(name, highest, token)
	}
	if err != nil {
		return nil, fmt.Errorf("redisfence: guard %q: %w", name, err)
	}
	return v, nil
}

// Highest returns the highest token seen for name, 0 if none was.
func (g *Guard) Highest(ctx context.Context, name string) (uint64, error) {
	v, err := g.run.Conn.Do(ctx, redisconn.Command{Words: []string{"GET", g.Key(name)}, First: 1, Keys: 1})
	if err != nil {
		return 0, fmt.Errorf("redisfence: highest token of %q: %w", name, redisconn.Classify(err))
	}
	text, _ := v.(string)
	if text == "" {
		return 0, nil
	}
	return strconv.ParseUint(text, 10, 64)
}
