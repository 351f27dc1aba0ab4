package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/worker"
	"github.com/interlock-go/interlock/redislock"
)

// A waiter's SUBSCRIBE is held back. Were its claim in line before, the release would find nobody
// who listens and skip it.
func queuedBeforeSubscribed(s scene) {
	t := s.T
	a, b := s.actor(t), s.actor(t)
	name := s.name("subscribe")
	mine := a.hold(mutex(name))
	heal := b.rest.stall(wire.Requests)
	defer heal()
	theirs := mutex(name)
	answer := b.acquiring(theirs)
	until(t, "the waiter subscribes", func() bool { return b.rest.count().Requests.Held > 0 })
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
		if st := s.sound(t, name); len(st.line) > 0 {
			t.Errorf("the claim stands in line, and nobody could tell it anything\n%s", st)
			break
		}
	}
	a.release(mine)
	heal()
	granted(t, answer)
	s.stands(t, theirs)
}

// Messages and answers come by two connections. The grant is here before the answer to the acquire
// that put the claim in line.
func grantBeforeAnswer(s scene) {
	t := s.T
	for _, claim := range []func(string) driver.Claim{mutex, reader} {
		a, b := s.actor(t), s.actor(t)
		name := s.name("early")
		for range 5 {
			b.crowd(name, a)
			mine := a.hold(mutex(name))
			heal := b.first.stall(wire.Replies)
			theirs := claim(name)
			answer := b.acquiring(theirs)
			until(t, "the claim stands in line", func() bool { return len(s.look(t, name).line) == 1 })
			before := b.rest.count().Replies.Packets
			a.release(mine)
			until(t, "the grant is pushed", func() bool { return b.rest.count().Replies.Packets > before })
			heal()
			if o := answered(t, answer); o.err != nil { // held or waiting, whichever message was read first
				t.Fatal(o.err)
			}
			grantOf(t, "a claim is held whose grant came before the answer that it waits", b.waiting(theirs))
			b.release(theirs)
		}
	}
}

// joining is a claim of b that has joined a line, of which a holds the name, and has no answer to
// that yet. Another one of b, at another name, waits meanwhile: what it hears, by the one
// subscription that b has, was handled after all that came before.
type joining struct {
	scene
	a, b         *actor
	mine, theirs driver.Claim
	answer       <-chan outcome
	heal         func()

	other, second driver.Claim
	told          <-chan outcome
}

func (s scene) joining() *joining {
	t := s.T
	t.Helper()
	j := &joining{scene: s, a: s.actor(t), b: s.actor(t)}
	name := s.name("joining")
	j.b.crowd(name, j.a)
	j.mine, j.other = j.a.hold(mutex(name)), j.a.hold(mutex("{"+name+"}/other"))
	j.second = j.b.queue(mutex(j.other.Name))
	j.told = j.b.waiting(j.second)
	j.heal = j.b.first.stall(wire.Replies)
	t.Cleanup(j.heal)
	j.theirs = mutex(name)
	j.answer = j.b.acquiring(j.theirs)
	until(t, "the claim stands in line", func() bool { return len(s.look(t, name).line) == 1 })
	return j
}

// answered lets the answer come, and returns the claim as one that waits.
func (j *joining) answered() <-chan outcome {
	j.T.Helper()
	j.heal()
	if o := answered(j.T, j.answer); o.err != nil || o.Held {
		j.T.Fatalf("a claim behind another: %+v, %v", o.Grant, o.err)
	}
	return j.b.waiting(j.theirs)
}

// The name is left free for other programs for a moment, and its head is told to come back. That is
// here before the answer to the acquire that put the claim in line, which says that another one
// holds the name for a minute.
func gapBeforeAnswer(s scene) {
	j := s.joining()
	last := time.Now().Add(-time.Hour).UnixMilli()
	_, _, claims := sideKeys(j.mine.Name)
	if err := s.raw.HSet(s.T.Context(), claims, "*", fmt.Sprintf("0 %d 0 0", last)).Err(); err != nil {
		s.T.Fatal(err)
	}
	j.a.release(j.mine)
	j.a.release(j.other)
	granted(s.T, j.told)
	grantOf(s.T, "a claim comes back that was told of a gap before the answer that it waits", j.answered())
}

// The subscription ends before the answer to the acquire that put the claim in line with its
// channel.
func subscriptionEndsBeforeAnswer(s scene) {
	t, j := s.T, s.joining()
	asked := j.b.rest.calls()
	j.b.rest.each((*wire.Wire).Cut)
	until(t, "the other claim has seen that, and subscribes again", func() bool { return asked.Load() > 0 })
	waiting := j.answered()
	until(t, "a claim can be told whose subscription ended before the answer that it waits", func() bool {
		return s.listeners(t, j.mine.Name, s.look(t, j.mine.Name).channel(j.theirs.ID)) == 1
	})
	j.a.release(j.mine)
	granted(t, waiting)
}

// crowd has the actor see others at a name, so that next time it joins the line by its first
// request.
func (a *actor) crowd(name string, other *actor) {
	a.t.Helper()
	mine := other.hold(mutex(name))
	a.leave(a.queue(mutex(name)))
	other.release(mine)
}

// The grant comes when the claim is known to wait, however late.
func grantAfterAnswer(s scene) {
	t := s.T
	for _, claim := range []func(string) driver.Claim{mutex, reader} {
		a, b := s.actor(t), s.actor(t)
		name := s.name("late")
		mine := a.hold(mutex(name))
		heal := b.rest.stall(wire.Replies)
		defer heal()
		theirs := claim(name)
		answer := b.acquiring(theirs)
		until(t, "the confirmation is on its way", func() bool { return b.rest.count().Replies.Held > 0 })
		heal()
		if o := answered(t, answer); o.err != nil || o.Held {
			t.Fatalf("a claim behind another: %+v, %v", o.Grant, o.err)
		}
		heal = b.rest.stall(wire.Replies)
		defer heal()
		waiting := b.waiting(theirs)
		a.release(mine)
		s.stands(t, theirs)
		heal()
		granted(t, waiting)
	}
}

// The grant never comes. The next renewal tells.
func grantIsLost(s scene) {
	t := s.T
	a, b := s.actor(t), s.actor(t)
	name := s.name("lost")
	mine := a.hold(mutex(name))
	theirs := b.queue(mutex(name))
	b.rest.each(func(w *wire.Wire) { w.Drop(func(d wire.Direction, _ []byte) bool { return d == wire.Replies }) })
	waiting := b.waiting(theirs)
	a.release(mine)
	s.stands(t, theirs)
	if r, err := b.session.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
		t.Fatalf("renew: %+v, %v", r, err)
	}
	granted(t, waiting)
}

// Whoever releases finds that nobody listens for the head of the line and goes on to the next. The
// head comes back when it can, and hears at once that its place is gone.
func subscriptionCutThenRelease(s scene) {
	t := s.T
	a, b, c := s.actor(t), s.actor(t), s.actor(t)
	name := s.name("cut")
	mine := a.hold(mutex(name))
	skipped, next := b.queue(mutex(name)), c.queue(mutex(name))
	bWaits, cWaits := b.waiting(skipped), c.waiting(next)
	channel := s.stands(t, mine, skipped, next).channel(skipped.ID)
	mend := b.rest.cut(t)
	s.reached(t, name, channel, 0)
	a.release(mine)
	granted(t, cWaits)
	s.stands(t, next)
	mend()
	if o := answered(t, bWaits); !errors.Is(o.err, driver.ErrGone) {
		t.Fatalf("a waiter that was skipped: %+v, %v; want %v", o.Grant, o.err, driver.ErrGone)
	}
	b.leave(skipped)
	again := b.queue(mutex(name))
	bWaits = b.waiting(again)
	c.release(next)
	granted(t, bWaits)
	s.stands(t, again)
}

// A waiter whose subscription ends asks again by itself, with a new one, and keeps its place.
func subscriptionCutAndMended(s scene) {
	t := s.T
	a, b, c := s.actor(t), s.actor(t), s.actor(t)
	name := s.name("mended")
	mine := a.hold(mutex(name))
	theirs, next := b.queue(mutex(name)), c.queue(mutex(name))
	bWaits, cWaits := b.waiting(theirs), c.waiting(next)
	before := s.stands(t, mine, theirs, next).channel(theirs.ID)
	b.rest.each((*wire.Wire).Cut)
	until(t, "the waiter has another channel", func() bool {
		channel := s.look(t, name).channel(theirs.ID)
		return channel != before && s.listeners(t, name, channel) == 1
	})
	s.stands(t, mine, theirs, next)
	a.release(mine)
	granted(t, bWaits)
	s.stands(t, theirs, next)
	b.release(theirs)
	granted(t, cWaits)
}

// Eight wait for one that does not renew. When its time is over the head asks, once, and the others
// not at all.
func onlyHeadLooks(s scene) {
	t := s.T
	if testing.Short() {
		t.Skip("a count that depends on when each of them is awake: make proof")
	}
	a := s.actor(t)
	name := s.name("head")
	mine := a.hold(mutex(name))
	const waiters = 8
	var line []driver.Claim
	var all []<-chan outcome
	var actors []*actor
	for range waiters {
		b := s.actor(t)
		line = append(line, b.queue(mutex(name)))
		actors = append(actors, b)
		all = append(all, b.waiting(line[len(line)-1]))
	}
	if err := s.raw.PExpire(t.Context(), name, 500*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	for _, b := range actors {
		if _, err := b.session.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.stands(t, mine, line...)
	var calls int64
	counters := make([]func() int64, 0, waiters)
	for _, b := range actors {
		counters = append(counters, b.first.calls().Load)
	}
	granted(t, all[0])
	s.stands(t, line[0], line[1:]...)
	quiet := time.NewTimer(100 * time.Millisecond)
	defer quiet.Stop()
	<-quiet.C
	for _, n := range counters {
		calls += n()
	}
	if calls > 2 {
		t.Errorf("%d requests of %d waiters, want one, or two where the server's clock is a moment behind", calls, waiters)
	}
	a.leave(mine)
}

// A process that waits is killed. Whoever releases skips it there and then.
func deadInLineIsSkipped(s scene) {
	t := s.T
	a, b, c := s.actor(t), s.actor(t), s.actor(t)
	name := s.name("dead")
	mine := a.hold(mutex(name))
	dead, next := b.queue(mutex(name)), c.queue(mutex(name))
	waiting := c.waiting(next)
	channel := s.stands(t, mine, dead, next).channel(dead.ID)
	b.kill()
	s.reached(t, name, channel, 0)
	a.release(mine)
	grantOf(t, "the one behind the dead process is granted the lock", waiting)
	s.stands(t, next)
}

// A process that waits is stopped. The server cannot tell that from one that is slow, so the
// stopped process is granted the lock and keeps others out until its time is over, and not for
// longer.
func TestStoppedProcessInLineCostsItsTimeAtMost(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s := newStage(t, server)
	const ttl = time.Second
	h := newHeart(t)
	a := s.actor(t)
	name := s.name("stopped")
	mine := a.hold(mutex(name))
	stopped := worker.Start(t, server.URL(), name, ttl)
	defer stopped.Kill()
	until(t, "the other process waits", func() bool { return len(s.look(t, name).waits()) == 1 })
	theirs := s.look(t, name).line[0]
	client, err := interlock.Open(t.Context(), server.URL(), &interlock.Options{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	next := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), ttl+prompt)
		defer cancel()
		lease, err := client.Mutex(name).Lock(ctx)
		if err == nil {
			err = lease.Release()
		}
		next <- err
	}()
	until(t, "the next one waits", func() bool { return len(s.look(t, name).waits()) == 2 })
	stopped.Stop(t)
	a.release(mine)
	if st := s.sound(t, name); st.holder() != theirs {
		t.Fatalf("the process that was stopped is skipped, although its connections stand\n%s", st)
	}
	released := time.Now()
	if err := <-next; err != nil {
		t.Fatal(err)
	}
	if took, limit := time.Since(released), ttl+ttl; took > limit && !h.stopped(released) && !testing.Short() {
		t.Errorf("the next one had the lock after %v, want %v at most", took, limit)
	}
}

// On a Cluster each master counts only its own subscribers: a script that publishes to one
// elsewhere is told that nobody heard. The locks lie on every server here, and no waiter is
// skipped.
func handoffsOnEveryServer(s scene) {
	t := s.T
	a, b := s.actorWith(t, age, redislock.Options{}), s.actor(t)
	for range 6 * len(s.nodes) {
		name := s.name("spread")
		mine := a.hold(mutex(name))
		last := uint64(0)
		for range 5 {
			theirs := b.queue(mutex(name))
			waiting := b.waiting(theirs)
			a.release(mine)
			if g := grantOf(t, "who waits at one of the masters is granted the lock", waiting); g.Fence <= last {
				t.Fatalf("token %d after %d", g.Fence, last)
			} else {
				last = g.Fence
			}
			s.stands(t, theirs)
			mine, a, b = theirs, b, a
		}
		a.release(mine)
	}
}
