package redisconn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

// failing answers the first commands that leave with these errors, one after the other.
func failing(n *noting, errs ...error) {
	n.answer = func([]string) error {
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

// A call whose connection ended is sent once more where its caller says that it may be, and else
// never.
func TestRunner_Again(t *testing.T) {
	n := &noting{Conn: opened(t, servertest.Redis(t))}
	run := redisconn.Runner{Conn: n}
	ctx := t.Context()
	asked := 0
	yes := func() bool { asked++; return true }
	no := func() bool { asked++; return false }
	over, cancel := context.WithCancel(ctx)
	cancel()
	late, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	for what, c := range map[string]struct {
		ctx   context.Context
		err   error
		again func() bool
		asked int
		works bool
	}{
		"ended, and may":              {ctx, io.EOF, yes, 1, true},
		"ended, and may not":          {ctx, io.EOF, no, 1, false},
		"ended, and nothing is said":  {ctx, io.EOF, nil, 0, false},
		"ended, with its context":     {over, io.EOF, yes, 0, false},
		"ended, with its deadline":    {late, io.EOF, yes, 0, false},
		"not answered in time":        {ctx, context.DeadlineExceeded, yes, 0, false},
		"an answer":                   {ctx, redisconn.ParseError("ERR something new"), yes, 0, false},
		"an answer that says not now": {ctx, redisconn.ParseError("LOADING the data"), yes, 0, false},
	} {
		failing(n, c.err)
		n.sent, asked = nil, 0
		v, err := run.Run(c.ctx, redisconn.Call{Script: count, Keys: []string{"n"}, Args: []string{"0"}, Again: c.again})
		if c.works && (err != nil || v != int64(0)) || !c.works && !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", what, v, err)
		}
		if asked != c.asked {
			t.Errorf("%s: asked %d times whether it may be sent again; want %d", what, asked, c.asked)
		}
		if sent := len(n.sent) > 1; sent != c.works {
			t.Errorf("%s: sent %q", what, n.sent)
		}
	}
}

// A call that failed twice says so, and leaves the outcome open whatever the second error says of
// the second request.
func TestRunner_AgainInVain(t *testing.T) {
	n := &noting{Conn: opened(t, servertest.Redis(t))}
	for _, second := range []error{io.EOF, redisconn.ParseError("LOADING the data"), redisconn.ParseError("NOPERM no right")} {
		failing(n, io.ErrUnexpectedEOF, second, second)
		n.sent = nil
		_, err := redisconn.Runner{Conn: n}.Run(t.Context(), redisconn.Call{Script: count, Keys: []string{"n"}, Args: []string{"1"}, Again: redisconn.Idempotent})
		if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) {
			t.Errorf("%v and then %v became %v; want an error that leaves the outcome open", io.ErrUnexpectedEOF, second, err)
		}
		n.want(t, "a call that fails twice", "EVALSHA", "EVALSHA")
	}
}

// broken is a Conn whose connection ends when commands are sent together for the first time.
type broken struct {
	redisconn.Conn
	ended bool
}

func (b *broken) DoAll(ctx context.Context, cmds []redisconn.Command) []redisconn.Reply {
	if b.ended {
		return b.Conn.DoAll(ctx, cmds)
	}
	b.ended = true
	replies := make([]redisconn.Reply, len(cmds))
	for i := range replies {
		replies[i].Err = io.EOF
	}
	return replies
}

// Of calls that go together those are sent once more that may be.
func TestRunner_AgainTogether(t *testing.T) {
	run := redisconn.Runner{Conn: &broken{Conn: opened(t, servertest.Redis(t))}}
	var calls []redisconn.Call
	for i := range 5 {
		calls = append(calls, redisconn.Call{Script: count, Keys: []string{fmt.Sprint("n", i)}, Args: []string{"1"}})
		if i != 2 {
			calls[i].Again = redisconn.Idempotent
		}
	}
	for i, r := range run.RunAll(t.Context(), calls) {
		switch {
		case i == 2 && !redisconn.Broken(r.Err):
			t.Errorf("the call that may not be sent again: %v, %v; want the end of the connection", r.Value, r.Err)
		case i != 2 && (r.Err != nil || r.Value != int64(1)):
			t.Errorf("call %d: %v, %v; want 1", i, r.Value, r.Err)
		}
	}
}

// On a Cluster, too, whoever owns the keys, and a slot that has moved is followed.
func TestCluster_Again(t *testing.T) {
	c := servertest.RedisCluster(t, 2, 0)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{c.Nodes[1].Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for what, conn := range map[string]redisconn.Conn{
		"by URL": openCluster(t, redisconn.Config{Addrs: []string{c.Nodes[0].Addr()}}), "rueidis": redisconn.Rueidis(client),
	} {
		t.Run(what, func(t *testing.T) {
			var calls []redisconn.Call
			for _, key := range spread {
				calls = append(calls, redisconn.Call{Script: echo, Keys: []string{key}, Args: []string{"x"}, Again: redisconn.Idempotent})
			}
			run := redisconn.Runner{Conn: conn}
			check := func() {
				t.Helper()
				for i, call := range calls {
					if v, err := run.Run(t.Context(), call); err != nil {
						t.Errorf("%s: %v, %v", spread[i], v, err)
					}
				}
				for i, r := range run.RunAll(t.Context(), calls) {
					if r.Err != nil {
						t.Errorf("%s, together: %v, %v", spread[i], r.Value, r.Err)
					}
				}
			}
			kill := func() {
				for _, node := range c.Nodes {
					node.MustDo(t, "CLIENT", "KILL", "TYPE", "normal")
				}
			}
			check()
			for range 3 {
				kill()
				check()
			}
			slot := c.Slot("a")
			to := c.Nodes[0]
			if c.Owner(slot) == to {
				to = c.Nodes[1]
			}
			if err := c.Move(t.Context(), slot, to); err != nil {
				t.Fatal(err)
			}
			if v, err := conn.Do(t.Context(), redisconn.Command{Words: []string{"GET", "a"}, First: 1, Keys: 1, Fresh: true}); err != nil || v != nil {
				t.Errorf("over a new connection, of a slot that has moved: %v, %v; want nil, from its new master", v, err)
			}
		})
	}
}
