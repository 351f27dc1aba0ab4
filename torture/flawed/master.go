package flawed

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

var (
	//go:embed step.lua
	stepText string
	//go:embed admit.lua
	admitText string

	stepScript  = rueidis.NewLuaScript(stepText)
	admitScript = rueidis.NewLuaScript(admitText)
)

// VoteKey is what a master has that counts: the run_id of the start of the server that got it.
const VoteKey = "flawed:vote"

const (
	countersKey = "flawed:counters"
	sinceKey    = "flawed:since"
)

// master is one of several Redis servers that know nothing of each other. It is dialled when it is
// first needed, and again when it has come back; one connection keeps the order of what is sent.
type master struct {
	addr    string
	dialled atomic.Pointer[rueidis.Client]
	dials   chan struct{} // holds a token while a goroutine dials
	admits  atomic.Bool   // a goroutine is about to give it its vote
}

func newMaster(addr string) *master { return &master{addr: addr, dials: make(chan struct{}, 1)} }

var errAway = errors.New("flawed: the master is not there")

// client returns the connection, once there has been one.
func (m *master) client(ctx context.Context) (rueidis.Client, error) {
	if c := m.dialled.Load(); c != nil {
		return *c, nil
	}
	select {
	case m.dials <- struct{}{}:
		defer func() { <-m.dials }()
	case <-ctx.Done():
		return nil, errAway
	}
	if c := m.dialled.Load(); c != nil {
		return *c, nil
	}
	c, err := dial([]string{m.addr}, "")
	if err != nil {
		return nil, err
	}
	m.dialled.Store(&c)
	return c, nil
}

// step runs the script step. A master without a vote answers as one that is away.
func (m *master) step(ctx context.Context, g *grip, what, value string, ttl time.Duration, number int64, voteless bool) (int64, error) {
	c, err := m.client(ctx)
	if err != nil {
		return 0, err
	}
	always := "0"
	if voteless {
		always = "1"
	}
	n, err := stepScript.Exec(ctx, c, []string{g.key, countersKey, VoteKey}, []string{
		what, value, millis(ttl), strconv.Itoa(g.limit), strconv.FormatInt(number, 10), always,
	}).AsInt64()
	if err == nil && n < 0 {
		err = errVoteless
	}
	return n, err
}

var errVoteless = errors.New("flawed: the master may have forgotten who holds, and does not count")

// admit gives the master its vote after wait, with the largest counters of those that count.
func (m *master) admit(ctx context.Context, wait time.Duration, counters func(context.Context) ([]string, error)) error {
	for {
		left, err := m.knock(ctx, wait, "0")
		if err != nil || left < 0 {
			return err
		}
		if left == 0 {
			break
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	all, err := counters(ctx)
	if err == nil {
		_, err = m.knock(ctx, wait, append([]string{"1"}, all...)...)
	}
	return err
}

func (m *master) knock(ctx context.Context, wait time.Duration, args ...string) (time.Duration, error) {
	c, err := m.client(ctx)
	if err != nil {
		return 0, err
	}
	ms, err := admitScript.Exec(ctx, c, []string{VoteKey, sinceKey, countersKey}, append([]string{millis(wait)}, args...)).AsInt64()
	return time.Duration(ms) * time.Millisecond, err
}

// counters reads what a master knows: all counters, and whether it counts. It is asked for its vote
// last: had it restarted in between, it would not have it.
func (m *master) counters(ctx context.Context) (known map[string]string, counts bool, err error) {
	c, err := m.client(ctx)
	if err != nil {
		return nil, false, err
	}
	known, err = c.Do(ctx, c.B().Hgetall().Key(countersKey).Build()).AsStrMap()
	if err != nil {
		return nil, false, fmt.Errorf("flawed: read the counters of %s: %w", m.addr, err)
	}
	left, err := m.knock(ctx, time.Hour, "0")
	return known, left < 0, err
}

func (m *master) close() {
	if c := m.dialled.Load(); c != nil {
		(*c).Close()
	}
}
