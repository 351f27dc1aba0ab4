package redislock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redislock"
)

// Who holds a name that nobody else wants is shown to hold since it was granted, by the server's
// clock.
func TestLoneHolderIsShownSinceItsGrant(t *testing.T) {
	t.Parallel()
	server := clocked(t)
	s := newStage(t, server)
	a, name := s.actor(t), s.name("since")
	since := func() time.Time {
		t.Helper()
		l, err := a.driver.Line(t.Context(), name)
		if err != nil || len(l.Claims) != 1 || !l.Claims[0].Held {
			t.Fatalf("%+v, %v: want one who holds", l.Claims, err)
		}
		return l.Claims[0].Since
	}
	last := time.Now().Truncate(time.Millisecond)
	for range 2 {
		mine := a.hold(mutex(name))
		if at := since(); at.Before(last) || at.After(time.Now()) {
			t.Errorf("shown to hold since %v, want it between %v and now", at, last)
		}
		last = since()
		if r, err := a.session.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
			t.Fatalf("renew: %v, lost %v", err, r.Lost)
		}
		if at := since(); !at.Equal(last) {
			t.Errorf("after a renewal shown to hold since %v, before since %v", at, last)
		}
		a.release(mine)
	}
	step(t, server, -time.Hour)
	mine := a.hold(mutex(name))
	if at := since(); !at.IsZero() {
		t.Errorf("after the clock was set back by an hour shown to hold since %v, want that nobody knows", at)
	}
	counter, _, _ := sideKeys(name)
	server.MustDo(t, "DEL", counter)
	if at := since(); !at.IsZero() {
		t.Errorf("after its counter has gone shown to hold since %v, want that nobody knows", at)
	}
	a.release(mine)
}

// Who waits and is not renewed any more, because its process has died or stands still, is shown as
// long as its time is not over.
func TestWhoWaitedAndDiedIsShownNoMore(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	a := s.actor(t)
	for _, kind := range []func(string) driver.Claim{mutex, reader} {
		name := s.name("dead")
		mine := a.hold(mutex(name))
		dead, lives := s.actorWith(t, time.Second, redislock.Options{}), s.actor(t)
		one, other := kind(name), kind(name)
		dead.queue(one)
		lives.queue(other)
		shown := func() (ids []string) {
			l, err := a.driver.Line(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range l.Claims {
				ids = append(ids, h.PublicID)
			}
			return ids
		}
		with := []string{driver.PublicID(mine.ID), driver.PublicID(one.ID), driver.PublicID(other.ID)}
		without := []string{with[0], with[2]}
		eventually(t, "who is not renewed is shown no more", func() bool { return slices.Equal(shown(), without) })
		if n := number(t, server, "LLEN", "il:{"+name+"}:line:"+name); n != 2 {
			t.Errorf("%d stand in line, want both: the one may only have stood still", n)
		}
		eventually(t, "who is renewed again is shown again", func() bool {
			if _, err := dead.session.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			return slices.Equal(shown(), with)
		})
		lives.leave(other)
		dead.leave(one)
		a.release(mine)
	}
}
