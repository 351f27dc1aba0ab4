package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/internal/zk"
)

// patience bounds a step of a test.
const patience = 30 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// of is a claim of a kind that is no permit.
func of(kind driver.Kind, name string) driver.Claim {
	c := storetest.Mutex(name)
	if c.Kind = kind; kind == driver.Read {
		c.Weight = 1
	}
	return c
}

func permit(name string, weight, limit int) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Permit, Weight: weight, Limit: limit, Queue: true}
}

// opened is a session of a minute over a wire of its own.
func opened(t *testing.T, s *servertest.Server) (driver.Session, driver.Driver, *line, string) {
	t.Helper()
	d, l := connect(t, s, "")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		go func() {
			defer cancel()
			_ = d.Close(ctx)
		}()
		if !t.Failed() { // or else it may be that nothing of it ends
			<-ctx.Done()
		}
	})
	id := driver.NewID()
	session, err := d.Open(within(t), driver.Spec{ID: id, TTL: time.Minute, Owner: driver.Owner{Name: t.Name()}})
	if err != nil {
		t.Fatal(err)
	}
	return session, d, l, id
}

// renews insists that a session lives and has lost exactly these claims.
func renews(t *testing.T, s driver.Session, lost ...driver.Claim) {
	t.Helper()
	r, err := s.Renew(within(t))
	if err != nil || len(r.Lost) != len(lost) {
		t.Fatalf("Renew: lost %d claims, %v; want %d", len(r.Lost), err, len(lost))
	}
}

// byHand is a session of the servers' as another program has it.
func byHand(t *testing.T, s *servertest.Server) *zk.Client {
	t.Helper()
	c, err := zk.Dial(within(t), zk.Options{Addrs: []string{s.Addr()}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

func do(t *testing.T, c *zk.Client, calls ...*zk.Call) {
	t.Helper()
	if err := c.Do(within(t), calls...); err != nil {
		t.Fatal(err)
	}
	for i, call := range calls {
		if call.Err != nil {
			t.Fatalf("call %d: %v", i+1, call.Err)
		}
	}
}

// children are those of a lock.
func children(t *testing.T, c *zk.Client, dir string) []string {
	t.Helper()
	names := zk.Children(dir, false)
	if err := c.Do(within(t), zk.Sync(dir), names); err != nil || names.Err != nil && names.Code != zk.NoNode {
		t.Fatal(err, names.Err)
	}
	return names.Children
}

// refused insists on an error of ErrRefused that says what is wrong.
func refused(t *testing.T, err error, says string) {
	t.Helper()
	if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v; want that it is refused: %s", err, says)
	}
}
