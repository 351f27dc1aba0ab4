package rowline

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// crowded is a server that takes many out of a line by one request.
type crowded struct{ *server }

func (f crowded) ReleaseBatch(ctx context.Context, name string, all []Member, _ time.Duration) (was []bool, twice bool, err error) {
	was, err = request(ctx, f.server, "leave", func() (was []bool, err error) {
		l := f.lineOf(name)
		for _, c := range all {
			_, held := l.Leave(c.ID)
			was = append(was, held)
		}
		f.settle(l, nil)
		return was, nil
	})
	return was, f.twice, err
}

// crowd is a line in which many sessions of one driver wait, a claim each, behind one that is held
// for a minute.
type crowd struct {
	*server
	holder *Session
	held   driver.Claim
	all    []*Session
	line   []driver.Claim
}

func newCrowd(t *testing.T, many int) crowd {
	t.Helper()
	f := newServer()
	c := crowd{server: f, holder: f.open(t, true), held: mutex("line")}
	f.ttl[c.holder.id], f.until[c.holder.id] = time.Minute, time.Now().Add(time.Minute)
	asks(t, c.holder, c.held, true)
	d := New(Config{Store: crowded{f}, Notifier: f, Package: "test", Timeout: 4 * time.Second, MinTTL: time.Second, MaxName: 10})
	t.Cleanup(d.cancel)
	for i := range many {
		s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		c.all, c.line = append(c.all, s.(*Session)), append(c.line, mutex("line"))
		asks(t, c.all[i], c.line[i], false)
	}
	return c
}

// leaves is the end, when all who waited have left.
func (c crowd) leaves(t *testing.T) {
	t.Helper()
	leaves(t, c.holder, c.held, true)
	c.nobody(t, "line")
	closes(t, c.holder, c.all[0])
}

// Who gives up while another one leaves the line goes with all others who do, by one request. One
// that was let in meanwhile, and has not heard of it, is told that it held.
func TestACrowdLeavesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCrowd(t, 150)
		steps := f.count("step")
		f.set(func() { f.there = time.Second })
		var givingUp sync.WaitGroup
		giveUp := func(i int, was bool) {
			givingUp.Go(func() { leaves(t, f.all[i], f.line[i], was) })
		}
		giveUp(1, false)
		synctest.Wait()
		f.set(func() {
			f.mute = true
			f.lines["line"].Leave(f.held.ID)
			f.settle(f.lines["line"], nil)
		})
		for i := 2; i < len(f.line); i++ {
			giveUp(i, false)
		}
		synctest.Wait()
		giveUp(0, true) // by the last of the requests, or somebody else would be let in
		givingUp.Wait()
		if n, leave := f.count("step")-steps, f.count("leave"); n != 1 || leave != 2 {
			t.Errorf("150 leave by %d requests, and then %d for all others, want 1 and 2: 100 go at a time", n, leave)
		}
		f.nobody(t, "line")
		closes(t, f.holder, f.all[0])
	})
}

// Who waits no longer for the request of others has asked nothing, and whose own is under way says
// so. A Release after either goes on.
func TestWhoLeavesInACrowdMayGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCrowd(t, 3)
		f.set(func() { f.there = 2 * time.Second })
		var others sync.WaitGroup
		others.Go(func() { leaves(t, f.all[0], f.line[0], false) })
		synctest.Wait()
		brief := func(i int, d time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			_, err := f.all[i].Release(ctx, f.line[i])
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Release: %v, want the caller's end", err)
			}
			return err
		}
		others.Go(func() {
			if err := brief(1, time.Second); !errors.Is(err, driver.ErrNotSent) {
				t.Errorf("Release: %v, want that nothing was sent", err)
			}
		})
		others.Go(func() {
			if err := brief(2, 3*time.Second); errors.Is(err, driver.ErrNotSent) {
				t.Errorf("Release: %v, although it was sent", err)
			}
		})
		others.Wait()
		if n := len(f.lines["line"].Claims); n != 3 {
			t.Errorf("%d stand in line while a request is under way, want the holder, one that goes by it, and one that did not ask", n)
		}
		leaves(t, f.all[2], f.line[2], false)
		leaves(t, f.all[1], f.line[1], false)
		if n := f.count("leave"); n != 1 {
			t.Errorf("%d requests for others, want 1", n)
		}
		f.leaves(t)
	})
}

// An error of the request is that of each.
func TestACrowdThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCrowd(t, 3)
		cut := errors.New("the connection has ended")
		f.set(func() { f.there, f.fails = time.Second, cut })
		var givingUp sync.WaitGroup
		for i, s := range f.all {
			givingUp.Go(func() {
				if was, err := s.Release(t.Context(), f.line[i]); was || !errors.Is(err, cut) {
					t.Errorf("Release: was held %v, %v; want that nobody knows", was, err)
				}
			})
		}
		givingUp.Wait()
		f.set(func() { f.there, f.fails = 0, nil })
		for i, s := range f.all {
			leaves(t, s, f.line[i], false)
		}
		f.leaves(t)
	})
}
