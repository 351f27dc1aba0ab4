package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock"
)

// meddling is a connection on which something happens when a reply tells of a value, before
// whatever is sent next.
type meddling struct {
	redisconn.Conn
	value  string
	meddle func()
}

func (c meddling) Do(ctx context.Context, cmd redisconn.Command) (any, error) {
	v, err := c.Conn.Do(ctx, cmd)
	if strings.Contains(fmt.Sprint(v), c.value) {
		c.meddle()
	}
	return v, err
}

// An operator breaks another program's lock, and that program passes it on while he is looking: the
// new holder keeps it everywhere.
func TestBreakOfAForeignLockThatWasPassedOn(t *testing.T) {
	t.Parallel()
	const first, next = "the-first-one's", "the-next-one's"
	set := startMasters(t, 3)
	var conns []redisconn.Conn
	met := make(chan *servertest.Server, 100)
	for _, s := range set {
		s.MustDo(t, "SET", "m", first)
		conns = append(conns, meddling{redistest.Rueidis(t, s.Addr()), first, func() {
			s.MustDo(t, "SET", "m", next)
			met <- s
		}})
	}
	d, err := redlock.New(t.Context(), conns, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(context.Background()) }()
	if err := d.Break(t.Context(), "m", driver.PublicID(first), 0, true); !errors.Is(err, driver.ErrRefused) || len(met) < 2 {
		t.Errorf("break: %v when it was passed on at %d masters, want ErrRefused and two at least", err, len(met))
	}
	for range len(met) { // at another one the break may have come first
		if got := (<-met).MustDo(t, "GET", "m"); got != next {
			t.Errorf("the break of a lock that was passed on left %q, want %q", got, next)
		}
	}
}
