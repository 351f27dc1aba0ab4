package redislock_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// What the tests of known failures have in common. Their numbers are those of the catalogue: A of
// clients, L of leases, R of Redis.

// ample is longer than anything takes that works, on a machine that has other things to do.
const ample = 30 * time.Second

// open opens a client of the store at url and closes it at the test's end.
func open(t *testing.T, url string, o *interlock.Options) *interlock.Client {
	t.Helper()
	client, err := interlock.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // what a test did to its server may not let it say goodbye
	return client
}

func ttl(d time.Duration) *interlock.Options { return &interlock.Options{TTL: d} }

// hold takes a name that is free or will be.
func hold(t *testing.T, m interface {
	Lock(ctx context.Context) (*interlock.Lease, error)
},
) *interlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	lease, err := m.Lock(ctx)
	if err != nil {
		t.Fatalf("lock: %v; want it within %v", err, ample)
	}
	return lease
}

func release(t *testing.T, leases ...*interlock.Lease) {
	t.Helper()
	for _, l := range leases {
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
}

// grant is what became of a Lock in the background.
type grant struct {
	*interlock.Lease
	at  time.Time
	err error
}

// asking locks in the background.
func asking(ctx context.Context, m *interlock.Mutex) <-chan grant {
	granted := make(chan grant, 1)
	go func() {
		lease, err := m.Lock(ctx)
		granted <- grant{lease, time.Now(), err}
	}()
	return granted
}

// get waits for what was asked for.
func get(t *testing.T, granted <-chan grant) grant {
	t.Helper()
	return within(t, ample, "what was asked for is granted", granted)
}

// within is get with a limit and words of its own: what says what is to happen.
func within(t *testing.T, limit time.Duration, what string, granted <-chan grant) grant {
	t.Helper()
	g := redistest.Receive(t, limit, what, granted)
	if g.err != nil {
		t.Fatal(g.err)
	}
	return g
}

// told waits until the holder is told that its lease is lost, and returns when that was.
func told(t *testing.T, l *interlock.Lease) time.Time {
	t.Helper()
	redistest.Receive(t, ample/2, "the holder is told", l.Context().Done()) // no lease that a test loses is longer than ten seconds
	at := time.Now()
	if err := context.Cause(l.Context()); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("the lease ended by %v, want %v", err, interlock.ErrLost)
	}
	return at
}

// eventually waits for what nobody announces.
func eventually(t *testing.T, what string, look func() bool) {
	t.Helper()
	redistest.Until(t, ample, "not: "+what, look)
}

func number(t *testing.T, s *servertest.Server, words ...string) int {
	t.Helper()
	n, err := strconv.Atoi(s.MustDo(t, words...))
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return n
}

// waitsFor waits until so many claims wait in line for the name, whose tag is the name itself.
func waitsFor(t *testing.T, s *servertest.Server, name string, n int) {
	t.Helper()
	eventually(t, strconv.Itoa(n)+" in line for "+name, func() bool { return number(t, s, "LLEN", "il:{"+name+"}:line:"+name) == n })
}

// grows checks that a later lease has a larger token, and returns it.
func grows(t *testing.T, what string, before uint64, l *interlock.Lease) uint64 {
	t.Helper()
	if l.Fence() <= before {
		t.Errorf("%s: token %d after %d, want a larger one", what, l.Fence(), before)
	}
	return l.Fence()
}
