package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redislock"
)

// Close at a server that does not answer says what is not confirmed.
func TestCloseAtASilentServerSaysWhatIsNotConfirmed(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	client := open(t, s.URL(), &interlock.Options{TTL: ample, Grace: 100 * time.Millisecond})
	for i := range 8 {
		hold(t, client.Mutex(fmt.Sprint("m", i)))
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	err := client.Close()
	if !errors.Is(err, interlock.ErrUncertain) || !strings.Contains(err.Error(), `"m0", "m1", "m2", "m3", "m4" and 3 more`) {
		t.Errorf("closed: %v, want that eight releases are not confirmed, and of which names", err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
}

// stuck is a connection whose client closes only when it has connected, which it never does.
type stuck struct {
	redisconn.Conn
	until context.Context // of the test
}

func (s stuck) Close() {
	<-s.until.Done()
	s.Conn.Close()
}

// The end of a driver does not wait for a client that is just connecting to a server which does not
// answer.
func TestCloseDoesNotWaitForAConnectionThatIsBeingMade(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	conn := redistest.Connect(t, redistest.NewProxies(t), s.URL())
	d, err := redislock.New(t.Context(), stuck{conn, t.Context()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	redislock.Own(d)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- d.Close(ctx) }()
	if err := redistest.Receive(t, prompt, "the driver is closed", closed); err != nil {
		t.Error(err)
	}
}

// The connections to the server end, and it takes others and greets nobody. The end of a session
// does not wait for one that is being made for a renewal.
func TestCloseDoesNotWaitForAServerThatGreetsNobody(t *testing.T) {
	t.Parallel()
	server, b := servertest.Redis(t), redistest.NewProxies(t)
	conn := redistest.Connect(t, b, "redis://"+server.Addr()+patient)
	d, err := redislock.New(t.Context(), conn, &redislock.Options{Timeout: 90 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: 5 * time.Minute}) // so that no request is given up
	if err != nil {
		t.Fatal(err)
	}
	if g, err := s.Acquire(t.Context(), mutex("m")); err != nil || !g.Held {
		t.Fatalf("%+v, %v", g, err)
	}
	w := b.To(server.Addr())
	defer w.Stall(wire.Both)()
	w.Cut()
	go func() { _, _ = s.Renew(t.Context()) }()
	eventually(t, "a greeting is on its way", func() bool { return w.Count().Requests.Held > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- s.Close(ctx) }()
	if err := redistest.Receive(t, prompt, "the session is closed", closed); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closed: %v, want that nothing is confirmed", err)
	}
}
