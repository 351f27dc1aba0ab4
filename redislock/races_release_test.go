package redislock_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/redislock"
)

// Nobody else is there: what leaves comes back as the holder at once.
func requeuesAlone(s scene) {
	t := s.T
	a := s.actor(t)
	for range 20 { // names: one that is handed on for long rests for a moment, once a second
		name := s.name("alone")
		mine, next := mutex(name), mutex(name)
		first := a.acquire(mine)
		g, held, err := a.session.(driver.Requeuer).Requeue(t.Context(), mine, next)
		if err != nil || !held || !g.Held {
			t.Fatalf("requeue: %+v, the old claim held: %v, %v; want both held", g, held, err)
		}
		if g.Fence < first.Fence+driver.Stride {
			t.Fatalf("token %d after %d", g.Fence, first.Fence)
		}
		s.stands(t, next)
		a.release(next)
	}
}

// Each holder's value must say that others wait, or its release frees the name and wakes nobody.
func marksEveryHandoff(s scene) {
	t := s.T
	const n = 5
	var actors []*actor
	var line []driver.Claim
	var waiting []<-chan outcome
	name := s.name("marks")
	for i := range n {
		a, c := s.actor(t), mutex(name)
		if i == 0 {
			a.hold(c)
			waiting = append(waiting, nil)
		} else {
			a.queue(c)
			waiting = append(waiting, a.waiting(c))
		}
		actors, line = append(actors, a), append(line, c)
		s.stands(t, line[0], line[1:]...)
	}
	for i := range n - 1 {
		actors[i].release(line[i])
		granted(t, waiting[i+1])
		s.stands(t, line[i+1], line[i+2:]...)
	}
	actors[n-1].release(line[n-1])
}

// A waiter gives up. Before its release arrives it is granted the lock: the release hands that on.
func grantMeetsRelease(s scene) {
	t := s.T
	a, b, c := s.actor(t), s.actor(t), s.actor(t)
	name := s.name("meets")
	mine, unwanted, next := a.hold(mutex(name)), b.queue(mutex(name)), c.queue(mutex(name))
	waiting := c.waiting(next)
	heal := b.first.stall(wire.Requests)
	defer heal()
	released := make(chan outcome, 1)
	go func() {
		held, err := b.session.Release(t.Context(), unwanted)
		released <- outcome{driver.Grant{Held: held}, err}
	}()
	until(t, "the release is on its way", func() bool { return b.first.count().Requests.Held > 0 })
	before := b.rest.count().Replies.Packets
	a.release(mine)
	until(t, "the grant is pushed", func() bool { return b.rest.count().Replies.Packets > before })
	s.stands(t, unwanted, next)
	heal()
	granted(t, released) // it was held until then, so the store says
	granted(t, waiting)
	s.stands(t, next)
}

// The release of the waiter that gave up is lost, and its claim is granted. Released once more it
// hands on: that it was given up here is no answer of the store.
func grantMeetsLostRelease(s scene) {
	t := s.T
	a, c := s.actor(t), s.actor(t)
	b := s.actorWith(t, age, redislock.Options{Timeout: time.Second})
	name := s.name("lost release")
	mine, unwanted, next := a.hold(mutex(name)), b.queue(mutex(name)), c.queue(mutex(name))
	waiting := c.waiting(next)
	b.first.each(func(w *wire.Wire) { w.Drop(func(d wire.Direction, _ []byte) bool { return d == wire.Requests }) })
	released := make(chan error, 1)
	go func() {
		_, err := b.session.Release(t.Context(), unwanted)
		released <- err
	}()
	before := b.rest.count().Replies.Packets
	a.release(mine)
	until(t, "the grant is pushed", func() bool { return b.rest.count().Replies.Packets > before })
	if err := <-released; err == nil {
		t.Fatal("a release that was lost is answered")
	}
	b.first.each(func(w *wire.Wire) { w.Drop(nil); w.Cut() })
	until(t, "the release is answered", func() bool {
		_, err := b.session.Release(t.Context(), unwanted)
		return err == nil
	})
	granted(t, waiting)
	s.stands(t, next)
}

// An acquire is held up in the network until its client has given it up, has released the claim by
// another connection and has been answered. Then it arrives: it takes the lock for nobody, and must
// not keep it.
func stragglerAfterRelease(s scene) {
	t := s.T
	for range 5 {
		t.Run("round", func(t *testing.T) {
			t.Parallel()
			straggle(scene{t, s.stage})
		})
	}
}

func straggle(s scene) {
	t := s.T
	b := s.actorWith(t, age, redislock.Options{Timeout: time.Second})
	name := s.name("straggler")
	b.release(b.hold(mutex(name))) // so the server knows the script
	before := s.look(t, name).counter
	heal := b.first.stall(wire.Requests)
	defer heal()
	c := mutex(name)
	if g, err := b.session.Acquire(t.Context(), c); err == nil {
		t.Fatalf("an acquire that is held up: %+v", g)
	}
	until(t, "the release is answered", func() bool { // the client may need some tries to see that its connection is dead
		held, err := b.session.Release(t.Context(), c)
		return err == nil && !held
	})
	heal()
	until(t, "the straggler arrives", func() bool { return s.look(t, name).counter > before })
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Second); s.look(t, name).value != ""; <-tick.C {
		if time.Now().After(end) {
			t.Fatal("a second after the network healed a claim that was released holds the lock")
		}
	}
}

// A holder ran out of time and comes to release what another holds by now.
func lateRelease(s scene) {
	t := s.T
	for _, crowded := range []bool{false, true} {
		a, b, c := s.actor(t), s.actor(t), s.actor(t)
		name := s.name("expired")
		late := a.hold(mutex(name))
		if err := s.raw.Del(t.Context(), name).Err(); err != nil {
			t.Fatal(err)
		}
		theirs := b.hold(mutex(name))
		var line []driver.Claim
		if crowded {
			line = append(line, c.queue(mutex(name)))
		}
		before := s.stands(t, theirs, line...)
		a.leave(late)
		a.leave(late)
		if after := s.stands(t, theirs, line...); after.value != before.value {
			t.Errorf("the value became %q, and was %q", after.value, before.value)
		}
		b.release(theirs)
	}
}

// A try finds that the holder has run out of time, and others in line: it overtakes nobody, and the
// head holds by that very call.
func tryAtExpiredHolder(s scene) {
	t := s.T
	for _, kind := range []func(string) driver.Claim{mutex, reader} {
		a, b, c, d := s.actor(t), s.actor(t), s.actor(t), s.actor(t)
		name := s.name("try")
		a.hold(mutex(name))
		head, next := b.queue(mutex(name)), c.queue(mutex(name))
		if err := s.raw.Del(t.Context(), name).Err(); err != nil {
			t.Fatal(err)
		}
		if g := d.acquire(try(kind(name))); g.Held {
			t.Fatal("a try overtakes a line")
		}
		s.stands(t, head, next)
		granted(t, b.waiting(head))
	}
}

// lineHasAnEnd: where two take turns, one leaves the line as the other joins it. The line goes on
// having an end after each turn, and so does the name, or they stay for ever when both have died.
func lineHasAnEnd(s scene) {
	a, b := s.actor(s.T), s.actor(s.T)
	name := s.name("turns")
	holds, waits := a.hold(mutex(name)), b.queue(mutex(name))
	for turn := range 10 {
		next := mutex(name)
		if _, held, err := a.session.(driver.Requeuer).Requeue(s.Context(), holds, next); !held || err != nil {
			s.Fatalf("turn %d: held %v, %v", turn, held, err)
		}
		granted(s.T, b.waiting(waits))
		if st := s.look(s.T, name); st.endless || st.forever || len(st.line) != 1 {
			s.Fatalf("after turn %d: the line %v, without an end: %v; the name, without one: %v", turn, st.line, st.endless, st.forever)
		}
		a, b, holds, waits = b, a, waits, next
	}
}
