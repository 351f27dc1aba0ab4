package redlock_test

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
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock"
)

// With a majority of the masters stopped the end of a client says which releases are not confirmed,
// also where it is just connecting to one of them. With a minority it says that all are free.
func TestCloseAtSilentMasters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		silent int
		cut    bool // the connections to them, so that others are being made
		says   string
	}{
		{1, false, ""},
		{1, true, ""},
		{2, false, `"m0", "m1", "m2", "m3", "m4" and 3 more`},
		{3, true, `"m0", "m1", "m2", "m3", "m4" and 3 more`},
	} {
		t.Run(fmt.Sprintf("%d of 3, cut=%v", c.silent, c.cut), func(t *testing.T) {
			t.Parallel()
			set := startMasters(t, 3)
			var wires []*wire.Wire
			var all []string
			for _, s := range set {
				w := wire.New(t, s.Addr())
				wires, all = append(wires, w), append(all, w.Addr())
			}
			client, err := interlock.Open(t.Context(), urlOf(all), &interlock.Options{TTL: time.Minute, Grace: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 8 {
				if _, err := client.Mutex(fmt.Sprint("m", i)).Lock(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for i, s := range set[:c.silent] {
				if err := s.Pause(); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = s.Resume() }()
				if c.cut {
					wires[i].Cut()
				}
			}
			closed := make(chan error, 1)
			go func() { closed <- client.Close() }()
			err = redistest.Receive(t, 30*time.Second, "the client is closed", closed)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("closed: %v, want that all is free", err)
			case c.says != "" && (!errors.Is(err, interlock.ErrUncertain) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("closed: %v, want that eight releases are not confirmed, and of which names", err)
			}
		})
	}
}

// stuck is a connection that stands still from a moment on, whatever its context says, as that of a
// client which is just connecting to a server that does not answer.
type stuck struct {
	redisconn.Conn
	from  context.Context // which ends then
	until context.Context // of the test
}

func (s stuck) still() {
	if s.from.Err() != nil {
		<-s.until.Done()
	}
}

func (s stuck) Do(ctx context.Context, cmd redisconn.Command) (any, error) {
	s.still()
	return s.Conn.Do(ctx, cmd)
}

func (s stuck) DoAll(ctx context.Context, cmds []redisconn.Command) []redisconn.Reply {
	s.still()
	return s.Conn.DoAll(ctx, cmds)
}

func (s stuck) Close() {
	s.still()
	s.Conn.Close()
}

// The end of a driver waits neither for requests nor for connections that stand still, and closes
// the others.
func TestCloseDoesNotWaitForConnectionsThatStandStill(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	still, stop := context.WithCancel(t.Context())
	var conns []redisconn.Conn
	for _, s := range set {
		conns = append(conns, stuck{redistest.Rueidis(t, s.Addr()), still, t.Context()})
	}
	d, err := redlock.New(t.Context(), conns, nil)
	if err != nil {
		t.Fatal(err)
	}
	redlock.Own(d)
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := acquire(t.Context(), s, mutex("m", false)); err != nil {
		t.Fatal(err)
	}
	stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- d.Close(ctx) }()
	if err := redistest.Receive(t, 30*time.Second, "the driver is closed", closed); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closed: %v, want that a release is not confirmed", err)
	}
}
