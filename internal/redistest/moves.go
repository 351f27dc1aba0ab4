package redistest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

// moving is a master that moves to another server behind one address. The former one lives on as
// its replica, with all that is connected to it.
type moving struct {
	former, next *servertest.Server
	address      *wire.Wire
}

func newMoving(t *testing.T) *moving {
	t.Helper()
	former := servertest.Redis(t)
	return &moving{
		former, servertest.Redis(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(former.Port())), wire.New(t, former.Addr()),
	}
}

func (m *moving) move(t *testing.T) {
	t.Helper()
	Until(t, limit, "the replica has not heard of all", func() bool {
		return offset(t, m.former) == offset(t, m.next) && strings.Contains(m.next.MustDo(t, "INFO", "replication"), "master_link_status:up")
	})
	m.next.MustDo(t, "REPLICAOF", "NO", "ONE")
	m.address.Redirect(m.next.Addr())
	m.former.MustDo(t, "REPLICAOF", "127.0.0.1", strconv.Itoa(m.next.Port()))
}

// offset is up to where a server has written or heard.
func offset(t *testing.T, s *servertest.Server) string {
	t.Helper()
	for line := range strings.Lines(s.MustDo(t, "INFO", "replication")) {
		if n, ok := strings.CutPrefix(line, "master_repl_offset:"); ok {
			return strings.TrimSpace(n)
		}
	}
	return ""
}

// TryMoves tries each way to a server: a lease stays when the master moves, and who waits behind it
// gets in.
func TryMoves(t *testing.T, clients map[string]Opening) {
	t.Helper()
	for what, open := range clients {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tryMove(t, open)
		})
	}
}

func tryMove(t *testing.T, open Opening) {
	t.Helper()
	m := newMoving(t)
	client := func() *interlock.Client {
		d := open(t, m.address.Addr())
		c, err := interlock.New(d, &interlock.Options{TTL: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Close()
			_ = d.Close(context.Background())
		})
		return c
	}
	holds, waits := client(), client()
	for range 10 { // over each connection that a client may have
		lease, err := waits.Mutex("m").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(); err != nil {
			t.Fatal(err)
		}
	}
	lease, err := holds.Mutex("m").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	granted := make(chan error, 1)
	go func() {
		_, err := waits.Mutex("m").Lock(t.Context())
		granted <- err
	}()
	other := open(t, m.former.Addr())
	defer func() { _ = other.Close(context.Background()) }()
	claims := func() int {
		l, err := other.(driver.Inspector).Line(t.Context(), "m")
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Claims)
	}
	Until(t, limit, "not one that holds and one that waits", func() bool { return claims() == 2 })
	m.move(t)
	left := func() int {
		n, err := strconv.Atoi(m.next.MustDo(t, "PTTL", "m"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	least := left()
	Until(t, limit, "the lease is not renewed at the new master", func() bool {
		now := left()
		defer func() { least = min(least, now) }()
		return now > least
	})
	if err := lease.Context().Err(); err != nil {
		t.Errorf("the lease was lost: %v", context.Cause(lease.Context()))
	}
	if err := lease.Release(); err != nil {
		t.Errorf("release at the new master: %v", err)
	}
	if err := Receive(t, limit, "who waited gets in", granted); err != nil {
		t.Errorf("who waited: %v", err)
	}
}

// TryConnMoves tries a connection, which open makes: it finds the master that has moved, whether a
// write or a question shows it, and a subscription ends that is heard by the former one.
func TryConnMoves(t *testing.T, open func(t *testing.T, addr string) redisconn.Conn) {
	t.Helper()
	write := redisconn.Command{Words: []string{"SET", "k", "v"}, First: 1, Keys: 1}
	together := []redisconn.Command{write, write, write}
	info := func(ctx context.Context, c redisconn.Conn) (text string, err error) {
		err = c.EachMaster(ctx, func(do redisconn.DoFunc) error {
			v, err := do(ctx, "INFO", "replication")
			text, _ = v.(string)
			return err
		})
		return text, err
	}
	for what, works := range map[string]func(ctx context.Context, c redisconn.Conn) bool{
		"a write":         func(ctx context.Context, c redisconn.Conn) bool { _, err := c.Do(ctx, write); return err == nil },
		"writes together": func(ctx context.Context, c redisconn.Conn) bool { return c.DoAll(ctx, together)[0].Err == nil },
		"a question": func(ctx context.Context, c redisconn.Conn) bool {
			text, err := info(ctx, c)
			return err == nil && strings.Contains(text, "role:master")
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := newMoving(t)
			c := open(t, m.address.Addr())
			for range 10 {
				if !works(t.Context(), c) || c.DoAll(t.Context(), together)[0].Err != nil {
					t.Fatal("it does not work before the master has moved")
				}
			}
			subscribe := func() *redisconn.Subscription {
				s, err := c.Subscribe(t.Context(), "k", "news", func(string) {})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			s := subscribe()
			m.move(t)
			if !works(t.Context(), c) {
				t.Fatal(what + " does not find the master that has moved")
			}
			Receive(t, limit, "the end of a subscription at the former master", s.Done)
			defer subscribe().Close()
			if n := m.next.MustDo(t, "PUBSUB", "NUMSUB", "news"); !strings.Contains(n, "1") {
				t.Errorf("subscriptions at the new master: %q, want one", n)
			}
		})
	}
}
