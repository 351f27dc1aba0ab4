package redislock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// departures are the ways in which the first in line leaves. Where it has died nobody can tell the
// next one, which learns by one renewal that it is first.
var departures = map[string]func(t *testing.T, s scene, first, next *actor, c driver.Claim){
	"gives up": func(_ *testing.T, _ scene, first, _ *actor, c driver.Claim) { first.leave(c) },
	"is closed": func(t *testing.T, _ scene, first, _ *actor, _ driver.Claim) {
		t.Helper()
		if err := first.session.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	},
	"is broken": func(t *testing.T, _ scene, first, _ *actor, c driver.Claim) {
		t.Helper()
		if err := first.driver.Break(t.Context(), c.Name, driver.PublicID(c.ID), 0, true); err != nil {
			t.Fatal(err)
		}
	},
	"dies": func(t *testing.T, s scene, first, next *actor, c driver.Claim) {
		t.Helper()
		channel := s.look(t, c.Name).channel(c.ID)
		first.kill()
		s.reached(t, c.Name, channel, 0)
		if _, err := next.session.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	},
}

// firstLeavesBehindAnother: the first in line polls for the lock of another program, and nobody
// else does. It leaves, and the next one polls from then on: no session is renewed here.
func firstLeavesBehindAnother(s scene) {
	for how, leave := range departures {
		s.Run(how, func(t *testing.T) {
			t.Parallel()
			b, c := s.actor(t), s.actor(t)
			name := s.name("first")
			if set := s.raw.SetNX(t.Context(), name, "another program's", age).Val(); !set {
				t.Fatal("the name is not free")
			}
			first, next := b.queue(mutex(name)), c.queue(mutex(name))
			waiting := c.waiting(next)
			leave(t, s, b, c, first)
			if n := s.raw.Del(t.Context(), name).Val(); n != 1 {
				t.Fatal("the other program's lock is gone")
			}
			grantOf(t, "who is first in line now is granted the lock", waiting)
		})
	}
}

// firstLeavesBehindTheDead: nor does anybody else look when the time of a holder that has died is
// over, alone or sharing.
func firstLeavesBehindTheDead(s scene) {
	for how, leave := range departures {
		for what, holds := range map[string]func(string) driver.Claim{"a holder": mutex, "a reader": reader} {
			s.Run(how+" behind "+what, func(t *testing.T) {
				t.Parallel()
				a, b, c := s.actor(t), s.actor(t), s.actor(t)
				name := s.name("first")
				mine := a.hold(holds(name))
				first, next := b.queue(mutex(name)), c.queue(mutex(name))
				waiting := c.waiting(next)
				s.fade(t, mine, 500*time.Millisecond)
				leave(t, s, b, c, first)
				grantOf(t, "who is first in line now is granted the lock", waiting)
			})
		}
	}
}

// fade has so little left of the time of a claim that holds.
func (s *stage) fade(t *testing.T, c driver.Claim, left time.Duration) {
	t.Helper()
	ctx := t.Context()
	_, _, claims := sideKeys(c.Name)
	stop := fmt.Sprint(s.raw.Time(ctx).Val().Add(left).UnixMilli())
	set := func(field string, at int) {
		words := strings.SplitN(s.raw.HGet(ctx, claims, field).Val(), " ", at+2)
		words[at] = stop
		if err := s.raw.HSet(ctx, claims, field, strings.Join(words, " ")).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if !c.Kind.Exclusive() {
		set(c.ID, 5) // see the records of the script line
		set("^", 2)
	}
	if err := s.raw.PExpire(ctx, c.Name, left).Err(); err != nil {
		t.Fatal(err)
	}
}
