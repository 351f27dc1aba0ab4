package redisconn_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

// opened opens a connection to one server.
func opened(t *testing.T, s *servertest.Server) redisconn.Conn {
	t.Helper()
	c, err := redisconn.Open(t.Context(), redisconn.Config{Addrs: []string{s.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// noting notes the commands that go through a Conn, and answers in its place where answer says so.
type noting struct {
	redisconn.Conn
	sent   []string
	answer func(words []string) error
}

func (n *noting) Do(ctx context.Context, cmd redisconn.Command) (any, error) {
	n.sent = append(n.sent, cmd.Words[0])
	if n.answer != nil {
		if err := n.answer(cmd.Words); err != nil {
			return nil, err
		}
	}
	return n.Conn.Do(ctx, cmd)
}

func (n *noting) DoAll(ctx context.Context, cmds []redisconn.Command) []redisconn.Reply {
	for _, cmd := range cmds {
		n.sent = append(n.sent, cmd.Words[0])
	}
	return n.Conn.DoAll(ctx, cmds)
}

func (n *noting) want(t *testing.T, what string, words ...string) {
	t.Helper()
	if !slices.Equal(n.sent, words) {
		t.Errorf("%s sent %q; want %q", what, n.sent, words)
	}
	n.sent = nil
}

var (
	echo  = redisconn.NewScript("echo", "return {KEYS[1], ARGV[1]}")
	count = redisconn.NewScript("count", "return redis.call('INCRBY', KEYS[1], ARGV[1])")
)

func TestRunner_Run(t *testing.T) {
	s := servertest.Redis(t)
	n := &noting{Conn: opened(t, s)}
	run := func() {
		t.Helper()
		v, err := redisconn.Runner{Conn: n}.Run(t.Context(), redisconn.Call{Script: echo, Keys: []string{"k"}, Args: []string{"a"}})
		if list, _ := v.([]any); err != nil || len(list) != 2 || list[0] != "k" || list[1] != "a" {
			t.Errorf("the script answered %v, %v", v, err)
		}
	}
	run()
	n.want(t, "the first run", "EVALSHA", "EVAL")
	run()
	n.want(t, "the second run", "EVALSHA")
	if _, err := s.Do("SCRIPT", "FLUSH"); err != nil {
		t.Fatal(err)
	}
	run()
	n.want(t, "a run after SCRIPT FLUSH", "EVALSHA", "EVAL")

	if _, err := s.Do("SET", "text", "x"); err != nil {
		t.Fatal(err)
	}
	_, err := redisconn.Runner{Conn: n}.Run(t.Context(), redisconn.Call{Script: count, Keys: []string{"text"}, Args: []string{"1"}})
	if err == nil || errors.Is(err, driver.ErrNotSent) {
		t.Errorf("a script that fails on its way: %v; want an error whose outcome is open", err)
	}
}

func TestRunner_RunAll(t *testing.T) {
	s := servertest.Redis(t)
	n := &noting{Conn: opened(t, s)}
	call := func(script *redisconn.Script, key, arg string) redisconn.Call {
		return redisconn.Call{Script: script, Keys: []string{key}, Args: []string{arg}}
	}
	calls := []redisconn.Call{call(count, "n", "1"), call(echo, "k", "a"), call(count, "n", "10"), call(count, "list", "1")}
	if _, err := s.Do("RPUSH", "list", "x"); err != nil {
		t.Fatal(err)
	}
	check := func(first, third int64) {
		t.Helper()
		replies := redisconn.Runner{Conn: n}.RunAll(t.Context(), calls)
		if r := replies[0]; r.Err != nil || r.Value != first {
			t.Errorf("first: %v, %v; want %d", r.Value, r.Err, first)
		}
		if list, _ := replies[1].Value.([]any); replies[1].Err != nil || len(list) != 2 || list[1] != "a" {
			t.Errorf("second: %v, %v", replies[1].Value, replies[1].Err)
		}
		if r := replies[2]; r.Err != nil || r.Value != third {
			t.Errorf("third: %v, %v; want %d", r.Value, r.Err, third)
		}
		if replies[3].Err == nil {
			t.Errorf("fourth: %v; want the error of a key of another type", replies[3].Value)
		}
	}
	check(1, 11)
	n.want(t, "the first run", "EVALSHA", "EVALSHA", "EVALSHA", "EVALSHA", "EVAL", "EVAL", "EVAL", "EVAL")
	check(12, 22)
	n.want(t, "the second run", "EVALSHA", "EVALSHA", "EVALSHA", "EVALSHA")
	if got, err := s.Do("GET", "n"); err != nil || got != "22" {
		t.Errorf("the counter is %s, %v; want 22: each script ran once", got, err)
	}
	if _, err := s.Do("SCRIPT", "FLUSH"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do("SCRIPT", "LOAD", echo.Text); err != nil {
		t.Fatal(err)
	}
	check(23, 33)
	n.want(t, "a run where the server knows one of them", "EVALSHA", "EVALSHA", "EVALSHA", "EVALSHA", "EVAL", "EVAL", "EVAL")
	if replies := (redisconn.Runner{Conn: n}).RunAll(t.Context(), nil); len(replies) != 0 {
		t.Errorf("nothing answered %v", replies)
	}
}

// deaf is a client with a master for each key, one of which it goes on connecting to whatever a
// context says.
type deaf struct {
	redisconn.Conn
	over chan struct{}
}

func (d deaf) Node(key string) string { return key }

func (d deaf) DoAll(ctx context.Context, cmds []redisconn.Command) []redisconn.Reply {
	if slices.Contains(cmds[0].Words, "deaf") {
		<-d.over
	}
	return d.Conn.DoAll(context.WithoutCancel(ctx), cmds)
}

// A master to which the client is still connecting holds up the answers of the others until the
// deadline and no longer.
func TestRunner_AMasterHoldsUpNobody(t *testing.T) {
	d := deaf{opened(t, servertest.Redis(t)), make(chan struct{})}
	end := time.AfterFunc(5*time.Second, func() { close(d.over) })
	defer func() {
		if end.Stop() {
			close(d.over)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	replies := redisconn.Runner{Conn: d}.RunAll(ctx, []redisconn.Call{
		{Script: count, Keys: []string{"deaf"}, Args: []string{"1"}},
		{Script: count, Keys: []string{"n"}, Args: []string{"1"}},
	})
	if err := replies[0].Err; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the master that does not answer: %v; want the deadline", err)
	}
	if r := replies[1]; r.Err != nil || r.Value != int64(1) {
		t.Errorf("the master that does: %v, %v; want 1", r.Value, r.Err)
	}
}

func TestRunner_Functions(t *testing.T) {
	s := servertest.Redis(t)
	n := &noting{Conn: opened(t, s)}
	r := redisconn.Runner{Conn: n, Functions: true}
	if _, err := r.Run(t.Context(), redisconn.Call{Script: count, Keys: []string{"n"}, Args: []string{"1"}}); err == nil {
		t.Error("a function that nobody loaded answered")
	}
	n.want(t, "a function that nobody loaded", "FCALL")
	library := "#!lua name=test\nredis.register_function('count', function(KEYS, ARGV)\n" + count.Text + "\nend)\n"
	if _, err := s.Do("FUNCTION", "LOAD", library); err != nil {
		t.Fatal(err)
	}
	if v, err := r.Run(t.Context(), redisconn.Call{Script: count, Keys: []string{"n"}, Args: []string{"1"}}); err != nil || v != int64(1) {
		t.Errorf("the function answered %v, %v", v, err)
	}
}

// A cluster that moves a slot says TRYAGAIN: nothing was done, and a moment later it takes the
// script.
func TestRunner_TriesAgainWhileASlotMoves(t *testing.T) {
	s := servertest.Redis(t)
	n := &noting{Conn: opened(t, s)}
	refusals := 3
	n.answer = func([]string) error {
		if refusals > 0 {
			refusals--
			return redisconn.ParseError("TRYAGAIN Multiple keys request during rehashing of slot")
		}
		return nil
	}
	call := redisconn.Call{Script: count, Keys: []string{"n"}, Args: []string{"1"}}
	if v, err := (redisconn.Runner{Conn: n}).Run(t.Context(), call); err != nil || v != int64(1) {
		t.Errorf("a script whose slot was being moved answered %v, %v; want 1 when it has moved", v, err)
	}
	if got := strings.Join(n.sent, " "); got != "EVALSHA EVALSHA EVALSHA EVALSHA EVAL" {
		t.Errorf("sent %s", got)
	}

	refusals = 1 << 30
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := (redisconn.Runner{Conn: n}).Run(ctx, call); !errors.Is(err, driver.ErrNotSent) || !redisconn.Is(err, "TRYAGAIN") {
		t.Errorf("a slot that moves for longer: %v; want an error that says that nothing was done", err)
	}
	cancel()
	n.sent = nil
	if _, err := (redisconn.Runner{Conn: n}).Run(ctx, call); !errors.Is(err, driver.ErrNotSent) || len(n.sent) > 1 {
		t.Errorf("after the end: %v, sent %q", err, n.sent)
	}
}

// A context that ends while the slot is being moved says nothing of why: the error does, and leaves
// open what the request that had no answer did.
func TestAContextThatEndsBehindAMoveIsExplained(t *testing.T) {
	tries := 0
	n := &noting{Conn: opened(t, servertest.Redis(t))}
	n.answer = func([]string) error {
		if tries++; tries < 3 {
			return redisconn.ParseError("TRYAGAIN Multiple keys request during rehashing of slot")
		}
		return context.DeadlineExceeded
	}
	_, err := redisconn.Runner{Conn: n}.Run(t.Context(), redisconn.Call{Script: redisconn.NewScript("one", "return 1"), Keys: []string{"k"}})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "slot is being moved") {
		t.Errorf("got %v, want the end of the context, nothing said of what was done, and that the slot is being moved", err)
	}
}
