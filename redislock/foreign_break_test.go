package redislock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redislock"
)

// meddling is a connection on which something happens between the answer to a GET and whatever is
// sent next.
type meddling struct {
	redisconn.Conn
	meddle func()
}

func (c meddling) Do(ctx context.Context, cmd redisconn.Command) (any, error) {
	v, err := c.Conn.Do(ctx, cmd)
	if len(cmd.Words) > 0 && cmd.Words[0] == "GET" {
		c.meddle()
	}
	return v, err
}

// An operator breaks another program's lock, and that program passes it on while he is looking: the
// new holder keeps it.
func TestBreakOfAForeignLockThatWasPassedOn(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	met := 0
	d, err := redislock.New(t.Context(), meddling{redistest.Rueidis(t, s.Addr()), func() {
		met++
		s.MustDo(t, "SET", "m", "the next one's")
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.MustDo(t, "SET", "m", "the first one's")
	if err := d.Break(t.Context(), "m", driver.PublicID("the first one's"), 0, false); !errors.Is(err, driver.ErrOnlyNow) || met != 0 {
		t.Errorf("break without now: %v after %d looks, want ErrOnlyNow after none", err, met)
	}
	err = d.Break(t.Context(), "m", driver.PublicID("the first one's"), 0, true)
	if !errors.Is(err, driver.ErrRefused) || met != 1 {
		t.Errorf("break: %v after %d looks, want ErrRefused after one", err, met)
	}
	if got := s.MustDo(t, "GET", "m"); got != "the next one's" {
		t.Errorf("the break of a lock that was passed on left %q, want the next one's", got)
	}
}
