package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/internal/servertest"
)

// TestMain lets the test binary be peerlock.
func TestMain(m *testing.M) {
	if os.Getenv("PEERLOCK") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// peer is a running peerlock.
type peer struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, args ...string) *peer {
	t.Helper()
	p := &peer{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0], args...)}
	p.cmd.Env = append(os.Environ(), "PEERLOCK=1", "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.in.Close(); _ = p.cmd.Wait() })
	p.hear("READY")
	return p
}

func (p *peer) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// hear returns what follows the first word, which must be want.
func (p *peer) hear(want string) string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("wanted to hear %s: %v", want, err)
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if word != want {
		p.t.Fatalf("heard %q, wanted %s", line, want)
	}
	return rest
}

// A peer takes the canonical key, keeps its like out, hands over, and dies
// with the lock when its input ends.
func TestProtocol(t *testing.T) {
	addr := servertest.Redis(t).Addr()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	for kind := range kinds {
		if kind == goZooKeeper {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			name := "a:0:" + kind
			one := start(t, kind, addr, name, "60000")
			two := start(t, kind, addr, name, "60000")
			one.say("unlock")
			one.hear("ERR")
			one.say("lock 1000")
			key, value, _ := strings.Cut(one.hear("LOCKED"), "=")
			stored, err := client.Get(t.Context(), name).Result()
			if key != name || err != nil || (value != "" && stored != value) {
				t.Errorf("%s: the server has %q (%v) at %s; LOCKED %s=%s", kind, stored, err, name, key, value)
			}
			two.say("lock 0")
			two.hear("TIMEOUT")
			two.say("lock 30")
			two.hear("TIMEOUT")
			if kind == "rueidislock" {
				one.say("extend 90000")
				one.hear("ERR")
			} else {
				one.say("extend 90000")
				one.hear("EXTENDED")
				if left := client.PTTL(t.Context(), name).Val(); left <= time.Minute {
					t.Errorf("%s: %v left after extend 90000", kind, left)
				}
			}
			two.say("lock -1")
			one.say("unlock")
			one.hear("UNLOCKED")
			two.hear("LOCKED")

			one.say("lock -1") // dies in the middle of it
			one.in.Close()
			if err := one.cmd.Wait(); err != nil {
				t.Error(err)
			}
			two.in.Close()
			if err := two.cmd.Wait(); err != nil {
				t.Error(err)
			}
			if n := client.Exists(t.Context(), name).Val(); n != 1 {
				t.Errorf("%s: the end of the input released the lock", kind)
			}
			client.Del(t.Context(), name)

			three := start(t, kind, addr, name, "60000")
			three.say("lock 1000")
			three.hear("LOCKED")
			three.say("quit")
			if err := three.cmd.Wait(); err != nil {
				t.Error(err)
			}
			if n := client.Exists(t.Context(), name).Val(); n != 0 {
				t.Errorf("%s: quit did not release the lock", kind)
			}
		})
	}
}

// redsync takes several servers, writes one value to each, and a majority that
// somebody else has keeps it out.
func TestRedsyncOverSeveral(t *testing.T) {
	var addrs []string
	var clients []*redis.Client
	for range 3 {
		addr := servertest.Redis(t).Addr()
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		addrs, clients = append(addrs, addr), append(clients, client)
	}
	one := start(t, "redsync", strings.Join(addrs, ","), "several", "60000")
	two := start(t, "redsync", strings.Join(addrs, ","), "several", "60000")
	one.say("lock 1000")
	_, value, _ := strings.Cut(one.hear("LOCKED"), "=")
	for i, client := range clients {
		if stored := client.Get(t.Context(), "several").Val(); stored != value || value == "" {
			t.Errorf("server %d has %q, redsync says that it wrote %q", i+1, stored, value)
		}
	}
	two.say("lock 0")
	two.hear("TIMEOUT")
	one.say("extend 90000")
	one.hear("EXTENDED")
	for i, client := range clients {
		if left := client.PTTL(t.Context(), "several").Val(); left <= time.Minute {
			t.Errorf("server %d: %v left after extend 90000", i+1, left)
		}
	}
	one.say("unlock")
	one.hear("UNLOCKED")
	clients[0].Set(t.Context(), "several", "somebody's", time.Minute) // a minority
	two.say("lock 0")
	two.hear("LOCKED")
	two.say("unlock")
	two.hear("UNLOCKED")
	clients[1].Set(t.Context(), "several", "somebody's", time.Minute)
	two.say("lock 30")
	two.hear("TIMEOUT")
	if n := clients[2].Exists(t.Context(), "several").Val(); n != 0 {
		t.Error("a try without a majority leaves what it got")
	}
}

// The lock of go-zookeeper keeps its like out, and gives up when its time is
// over, with nothing of it left in line.
func TestGoZooKeeper(t *testing.T) {
	addr := servertest.ZooKeeper(t).Addr()
	one := start(t, goZooKeeper, addr, "shared", "20000")
	two := start(t, goZooKeeper, addr, "shared", "20000")
	one.say("lock -1")
	one.hear("LOCKED")
	two.say("lock 0")
	two.hear("TIMEOUT")
	one.say("unlock")
	one.hear("UNLOCKED")
	two.say("lock -1")
	two.hear("LOCKED")
	two.say("quit")
	if err := two.cmd.Wait(); err != nil {
		t.Error(err)
	}
	one.say("lock -1")
	one.hear("LOCKED")
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"redsync", "x:1"},
		{"redlock", "x:1", "n"},
		{"redsync", "x:1", "n", "soon"},
		{"redsync", "x:1", "n", "0"},
		{"redislock", "x:1,x:2", "n"},
	} {
		if err := run(args); err == nil {
			t.Errorf("peerlock %q started", args)
		}
	}
}
