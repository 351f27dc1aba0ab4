package redisfence_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/fence/redisfence"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

func open(t *testing.T, s *servertest.Server) redisconn.Conn {
	t.Helper()
	conn, err := redisconn.Open(t.Context(), redisconn.Config{Addrs: []string{s.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func TestLateWriteIsRefused(t *testing.T) {
	server := servertest.Redis(t)
	g := redisfence.New(open(t, server))
	ctx := context.Background()

	if err := g.Set(ctx, "stock", 33, "left", "10"); err != nil {
		t.Fatal(err)
	}
	if err := g.Set(ctx, "stock", 33, "left", "9"); err != nil {
		t.Fatalf("an equal token must pass, a holder writes many times: %v", err)
	}
	if err := g.Claim(ctx, "stock", 34); err != nil {
		t.Fatal(err)
	}
	err := g.Set(ctx, "stock", 33, "left", "8")
	if !errors.Is(err, fence.ErrStale) {
		t.Errorf("a late write answered %v, want ErrStale", err)
	}
	if left, _ := server.Do("GET", "left"); left != "9" {
		t.Errorf("the refused write has changed the value to %q", left)
	}
	if h, err := g.Highest(ctx, "stock"); h != 34 || err != nil {
		t.Errorf("highest token %d, %v, want 34", h, err)
	}
	if h, err := g.Highest(ctx, "other"); h != 0 || err != nil {
		t.Errorf("highest token of an unknown name %d, %v, want 0", h, err)
	}
}

func TestTokensThatAreNone(t *testing.T) {
	g := redisfence.New(open(t, servertest.Redis(t)))
	ctx := context.Background()
	if err := g.Claim(ctx, "stock", 0); !errors.Is(err, fence.ErrNoToken) {
		t.Errorf("token 0 answered %v, want ErrNoToken", err)
	}
	if err := g.Claim(ctx, "stock", math.MaxUint64); !errors.Is(err, fence.ErrRange) {
		t.Errorf("a token out of range answered %v, want ErrRange", err)
	}
	if err := g.Claim(ctx, "", 1); err == nil {
		t.Error("an empty name passed")
	}
}

// Tokens above 2^53 differ where numbers of Lua do not, and 9 is less than 10 although its text is not.
func TestTokensAreComparedAsNumbers(t *testing.T) {
	g := redisfence.New(open(t, servertest.Redis(t)))
	ctx := context.Background()
	for _, p := range []struct{ first, second uint64 }{{9, 10}, {1<<53 + 1, 1<<53 + 2}, {1<<62 - 1, 1 << 62}} {
		name := "pair"
		if _, err := g.Run(ctx, name, p.second, redisfence.Script("return 1"), nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := g.Claim(ctx, name, p.first); !errors.Is(err, fence.ErrStale) {
			t.Errorf("token %d after %d answered %v, want ErrStale", p.first, p.second, err)
		}
	}
}

func TestGuardedScriptSeesItsOwnKeysAndArguments(t *testing.T) {
	g := redisfence.New(open(t, servertest.Redis(t)))
	script := redisfence.Script("return {#KEYS, #ARGV, KEYS[1], ARGV[2]}")
	v, err := g.Run(context.Background(), "n", 7, script, []string{"a", "b"}, []string{"x", "y"})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := v.([]any)
	if len(got) != 4 || got[0] != int64(2) || got[1] != int64(2) || got[2] != "a" || got[3] != "y" {
		t.Errorf("it saw %v, want 2 keys and 2 arguments, a and y", got)
	}
}

// Of many writers with different tokens, whatever their order, the value is of the largest token among those accepted,
// and nobody is accepted after a larger one.
func TestManyWriters(t *testing.T) {
	server := servertest.Redis(t)
	g := redisfence.New(open(t, server))
	const writers = 64
	var wg sync.WaitGroup
	for token := uint64(1); token <= writers; token++ {
		wg.Go(func() {
			err := g.Set(context.Background(), "stock", token, "by", string(rune('0'+token)))
			if err != nil && !errors.Is(err, fence.ErrStale) {
				t.Errorf("token %d: %v", token, err)
			}
		})
	}
	wg.Wait()
	if by, _ := server.Do("GET", "by"); by != string(rune('0'+writers)) {
		t.Errorf("the last accepted write is %q, want that of the largest token", by)
	}
}

func TestOnACluster(t *testing.T) {
	cluster := servertest.RedisCluster(t, 3, 0)
	conn, err := redisconn.Open(t.Context(), redisconn.Config{Addrs: []string{cluster.Nodes[0].Addr()}, Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	g := redisfence.New(conn)
	ctx := context.Background()
	for _, name := range []string{"stock/{42}", "a}b", "{}x"} {
		if err := g.Claim(ctx, name, 5); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if err := g.Claim(ctx, name, 4); !errors.Is(err, fence.ErrStale) {
			t.Errorf("%q: a stale token answered %v, want ErrStale", name, err)
		}
	}
	if err := g.Set(ctx, "stock/{42}", 6, "left:{42}", "1"); err != nil {
		t.Error(err)
	}
}
