package redislock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/redislock"
)

// actor is one process as the servers see it: a client with wires of its own and one session, which
// nobody renews.
type actor struct {
	t     *testing.T
	stage *stage

	first, rest *cable
	client      rueidis.Client
	driver      *redislock.Driver
	session     driver.Session
}

func (s *stage) actor(t *testing.T) *actor {
	t.Helper()
	return s.actorWith(t, age, redislock.Options{})
}

func (s *stage) actorWith(t *testing.T, ttl time.Duration, o redislock.Options) *actor {
	t.Helper()
	a := &actor{t: t, stage: s, first: s.newCable(t), rest: s.newCable(t)}
	a.driver, a.client = s.connect(t, a.first, a.rest, o)
	var err error
	a.session, err = a.driver.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl, Owner: driver.Owner{Name: "actor"}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// kill ends the process without a word: all its connections break, and it makes none any more.
func (a *actor) kill() {
	for _, c := range []*cable{a.first, a.rest} {
		c.each((*wire.Wire).Refuse)
		c.each((*wire.Wire).Cut)
	}
	a.client.Close()
}

// claims of each kind, that wait if they must.
func mutex(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
}

func reader(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Read, Weight: 1, Limit: driver.All, Queue: true}
}

// try is the claim as one that does not wait.
func try(c driver.Claim) driver.Claim {
	c.Queue = false
	return c
}

// outcome is the answer to a call.
type outcome struct {
	driver.Grant
	err error
}

func (a *actor) acquire(c driver.Claim) driver.Grant {
	a.t.Helper()
	g, err := a.session.Acquire(a.t.Context(), c)
	if err != nil {
		a.t.Fatalf("acquire: %v", err)
	}
	return g
}

// hold acquires a claim that nobody is in the way of.
func (a *actor) hold(c driver.Claim) driver.Claim {
	a.t.Helper()
	if g := a.acquire(c); !g.Held {
		a.t.Fatalf("%v of %q is not held; in its way: %+v", c.Kind, c.Name, g.Holder)
	}
	return c
}

// queue acquires a claim that somebody is in the way of.
func (a *actor) queue(c driver.Claim) driver.Claim {
	a.t.Helper()
	if g := a.acquire(c); g.Held {
		a.t.Fatalf("%v of %q is held although somebody is in its way", c.Kind, c.Name)
	}
	return c
}

// acquiring acquires in the background.
func (a *actor) acquiring(c driver.Claim) <-chan outcome {
	answer := make(chan outcome, 1)
	go func() {
		g, err := a.session.Acquire(a.t.Context(), c)
		answer <- outcome{g, err}
	}()
	return answer
}

// waiting waits in the background until the claim is held or gone, as the core does.
func (a *actor) waiting(c driver.Claim) <-chan outcome {
	answer := make(chan outcome, 1)
	go func() {
		pause := time.NewTicker(5 * time.Millisecond)
		defer pause.Stop()
		for {
			g, err := a.session.Wait(a.t.Context(), c)
			final := errors.Is(err, driver.ErrGone) || errors.Is(err, driver.ErrBroken) || errors.Is(err, driver.ErrSessionLost) || errors.Is(err, driver.ErrRefused)
			if g.Held || final || a.t.Context().Err() != nil {
				answer <- outcome{g, err}
				return
			}
			if err != nil {
				<-pause.C
			}
		}
	}()
	return answer
}

func (a *actor) release(c driver.Claim) {
	a.t.Helper()
	held, err := a.session.Release(a.t.Context(), c)
	if err != nil || !held {
		a.t.Fatalf("release: held %v, %v; want true", held, err)
	}
}

// leave releases a claim that is not held any more.
func (a *actor) leave(c driver.Claim) {
	a.t.Helper()
	held, err := a.session.Release(a.t.Context(), c)
	if err != nil || held {
		a.t.Fatalf("the release of a claim that is not held: held %v, %v; want false", held, err)
	}
}

// granted sees a call answered promptly with a grant.
func granted(t *testing.T, answer <-chan outcome) driver.Grant {
	t.Helper()
	return grantOf(t, "a call is granted the lock", answer)
}

// grantOf is granted with words of its own: what says what is to happen.
func grantOf(t *testing.T, what string, answer <-chan outcome) driver.Grant {
	t.Helper()
	o := redistest.Receive(t, prompt, what, answer)
	if o.err != nil || !o.Held {
		t.Fatalf("not: %s: answered %+v, %v", what, o.Grant, o.err)
	}
	return o.Grant
}

func answered(t *testing.T, answer <-chan outcome) outcome {
	t.Helper()
	return redistest.Receive(t, prompt, "a call is answered", answer)
}
