package serve

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servertest"
	_ "github.com/interlock-go/interlock/redislock"
)

// The test binary is also the program that floods a server: the two ends of ten thousand
// connections are too many files for one process.
func TestMain(m *testing.M) {
	if to := os.Getenv("INTERLOCK_TEST_FLOOD"); to != "" {
		n, _ := strconv.Atoi(os.Getenv("INTERLOCK_TEST_CONNECTIONS"))
		floods(to, n)
		return
	}
	os.Exit(m.Run())
}

// floods keeps n connections open, one in two of them with half a request, and opens anew what the
// server has closed, until it is killed. It prints a line when all are open for the first time.
func floods(to string, n int) {
	open := make(chan struct{}, n)
	slots := make(chan struct{}, 64) // who may dial at the same time
	for i := range n {
		go func() {
			for first := true; ; first = false {
				slots <- struct{}{}
				c, err := net.DialTimeout("tcp", to, 30*time.Second)
				<-slots
				if err != nil {
					fmt.Println("dial:", err)
					os.Exit(1)
				}
				if i%2 == 0 {
					_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: local"))
				}
				if first {
					open <- struct{}{}
				}
				_, _ = c.Read(make([]byte, 1)) // until the server has enough
				_ = c.Close()
			}
		}()
	}
	for range n {
		<-open
	}
	fmt.Println("open")
	select {}
}

// D7: ten thousand connections that ask for nothing, and come back when they are closed, in the
// process that holds a lock: it is renewed for three times its life, and the server answers those
// who ask.
func TestD07_TenThousandHalfOpenConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("three quarters of a minute of ten thousand connections")
	}
	const n, ttl = 10_000, 15 * time.Second
	redis := servertest.Redis(t)
	left := &slack{}
	c, err := interlock.Open(t.Context(), redis.URL(), &interlock.Options{TTL: ttl, Tracer: left})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lease, err := c.Mutex("report").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	s := serves(t, &Options{Stores: [][2]string{{"one", redis.URL()}}, Connections: n + 1000})

	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "INTERLOCK_TEST_FLOOD="+strings.TrimPrefix(s.at, "http://"), "INTERLOCK_TEST_CONNECTIONS="+strconv.Itoa(n))
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the flood says %q, %v: want more files than %d for a process (ulimit -n)", line, err, n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*ttl)
	defer cancel()
	for ctx.Err() == nil {
		if err := lease.Err(); err != nil {
			t.Fatalf("the lock was lost: %v", err)
		}
		if a := s.ask("GET", "/healthz", ""); a.status != 200 {
			t.Errorf("health: %d", a.status)
		}
		if err := c.Health(t.Context()); err != nil {
			t.Errorf("a renewal: %v", err)
		}
		pause(ctx, 100*time.Millisecond)
	}
	if err := lease.Err(); err != nil {
		t.Errorf("the lock was lost: %v", err)
	}
	t.Logf("%v\n%s", left, s.connections())
}

// slack is how near a loss the renewals of a client came.
type slack struct {
	mu           sync.Mutex
	renewals     int
	least, trust time.Duration
}

func (s *slack) WaitStart(ctx context.Context, _ interlock.WaitStart) context.Context { return ctx }
func (s *slack) WaitEnd(context.Context, interlock.WaitEnd)                           {}
func (s *slack) HoldEnd(context.Context, interlock.HoldEnd)                           {}

func (s *slack) Renewed(_ context.Context, r interlock.Renewed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Err != nil || r.Leases == 0 {
		return
	}
	if s.renewals == 0 || r.Slack < s.least {
		s.least = r.Slack
	}
	s.renewals, s.trust = s.renewals+1, r.Trust
}

func (s *slack) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d renewals; %v of the lease was left at the latest of them, of %v after each", s.renewals, s.least.Round(time.Millisecond), s.trust)
}

// connections is what the server says of them.
func (r *running) connections() (found string) {
	for line := range strings.Lines(r.ask("GET", "/metrics", "").body) {
		if strings.HasPrefix(line, "interlock_http_connections ") || strings.HasPrefix(line, `interlock_http_dropped_total{what="connection"}`) {
			found += line
		}
	}
	return found
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
