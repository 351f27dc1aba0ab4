//go:build linux || darwin

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/foreigntest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// The one that other libraries for Go come closest to, over the same five masters: it holds and
// ours waits, and the other way round.
func TestRedsyncAndOursExcludeEachOther(t *testing.T) {
	set := startMasters(t, 5)
	client := openClient(t, set)
	theirs := foreigntest.Start(t, foreigntest.Redsync, addrs(set), "held by redsync", time.Minute)
	meet(t, client, theirs, theirs.Key())
	for i, s := range set { // a release returns when a majority has answered
		until(t, 30*time.Second, fmt.Sprintf("let go by master %d when nobody holds it", i+1), func() bool { return s.MustDo(t, "EXISTS", theirs.Key()) == "0" })
	}
}

// Where a minority of the masters is gone, the majority that is left decides between them all the
// same.
func TestRedsyncAndOursOnWhatIsLeft(t *testing.T) {
	set := startMasters(t, 5)
	client := openClient(t, set)
	theirs := foreigntest.Start(t, foreigntest.Redsync, addrs(set), "left", time.Minute)
	for _, s := range set[:2] {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	meet(t, client, theirs, theirs.Key())
}

// rivals are parties of several libraries that all want one lock over several masters, all the
// time. Whoever holds it reads a number of a server beside them, and writes it back with one more:
// two at once lose a turn of the number, and are seen inside together as well.
type rivals struct {
	guard  *servertest.Server
	inside atomic.Int32

	mu    sync.Mutex
	turns map[string]int
	token uint64 // of the last turn of ours
	ill   []error
}

func (r *rivals) fails(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ill = append(r.ill, fmt.Errorf(format, args...))
}

// joins has a party without turns be seen at the end.
func (r *rivals) joins(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns[name] += 0
}

// turn is one hold of a party. Foreign ones have no token.
func (r *rivals) turn(name string, token uint64, unlock func() error) {
	if n := r.inside.Add(1); n != 1 {
		r.fails("%s: %d hold at once", name, n)
	}
	if err := r.count(); err != nil {
		r.fails("%s: %w", name, err)
	}
	r.mu.Lock()
	last := r.token
	r.token = max(r.token, token)
	r.turns[name]++
	r.mu.Unlock()
	if token > 0 && token <= last {
		r.fails("%s: token %d after %d", name, token, last)
	}
	r.inside.Add(-1)
	if err := unlock(); err != nil {
		r.fails("%s: %w", name, err)
	}
}

// count reads and writes in two steps.
func (r *rivals) count() error {
	text, err := r.guard.Do("GET", "turns")
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(text) // none at first
	_, err = r.guard.Do("SET", "turns", strconv.Itoa(n+1))
	return err
}

// foreign lets a client of another library take part until the contest is over.
func (r *rivals) foreign(over context.Context, theirs *foreigntest.Client) {
	end, _ := over.Deadline()
	for over.Err() == nil {
		_, err := theirs.Lock(max(0, time.Until(end)))
		switch {
		case err == nil:
			r.turn(string(theirs.Kind()), 0, theirs.Unlock)
		case errors.Is(err, foreigntest.ErrTimeout):
			<-over.Done() // some give up when the time left is shorter than their pause
		default:
			r.fails("%s: %w", theirs.Kind(), err)
			return
		}
	}
}

func (r *rivals) ours(over context.Context, who string, m *interlock.Mutex) {
	for over.Err() == nil {
		lease, err := m.Lock(over)
		if err != nil {
			if over.Err() == nil {
				r.fails("%s: %w", who, err)
			}
			return
		}
		r.turn(who, lease.Fence(), lease.Release)
	}
}

// enough is how often everybody gets the lock before the contest is over: after longest at the
// latest, and after shortest at the soonest.
const (
	enough            = 5
	shortest, longest = 5 * time.Second, time.Minute
)

// settled reports whether everybody had enough turns.
func (r *rivals) settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.turns {
		if n < enough {
			return false
		}
	}
	return true
}

// Three parties want one lock over five masters: redsync, node-redlock, and eight clients of ours
// with eight goroutines each, who hand the lock to each other by themselves. Nobody starves, never
// do two hold it, and our tokens grow: whether ours have seen the others, or were told of them and
// have not.
func TestRivals(t *testing.T) {
	if testing.Short() {
		t.Skip("a contest: make proof")
	}
	for _, told := range []bool{false, true} {
		t.Run(map[bool]string{false: "seen", true: "told"}[told], func(t *testing.T) {
			t.Parallel()
			contest(t, told)
		})
	}
}

func contest(t *testing.T, told bool) {
	t.Helper()
	set := startMasters(t, 5)
	r := &rivals{guard: servertest.Redis(t), turns: map[string]int{}}
	theirs := []*foreigntest.Client{
		foreigntest.Start(t, foreigntest.Redsync, addrs(set), "wanted", time.Minute),
		foreigntest.Start(t, foreigntest.Redlock5, addrs(set), "wanted", time.Minute),
	}
	url := urlOf(addrs(set))
	if told {
		url += "?shared=true"
	} else {
		meet(t, openClient(t, set), theirs[0], "wanted")
	}
	var mutexes []*interlock.Mutex
	for range 8 {
		client, err := interlock.Open(t.Context(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		mutexes = append(mutexes, client.Mutex("wanted"))
	}
	over, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	began := time.Now()
	var group sync.WaitGroup
	for _, c := range theirs {
		r.joins(string(c.Kind()))
		group.Go(func() { r.foreign(over, c) })
	}
	for i, m := range mutexes {
		for j := range 8 {
			who := fmt.Sprintf("goroutine %d of our client %d", j+1, i+1)
			r.joins(who)
			group.Go(func() { r.ours(over, who, m) })
		}
	}
	for over.Err() == nil && (time.Since(began) < shortest || !r.settled()) {
		select {
		case <-over.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	cancel()
	group.Wait()
	for _, err := range r.ill[:min(len(r.ill), 10)] {
		t.Error(err)
	}
	var all []int
	sum := 0
	for who, n := range r.turns {
		all, sum = append(all, n), sum+n
		if n < enough {
			t.Errorf("%s got the lock %d times, want %d at least", who, n, enough)
		}
	}
	slices.Sort(all)
	t.Logf("redsync %d, node-redlock %d, all %d turns; each: %v", r.turns[string(foreigntest.Redsync)], r.turns[string(foreigntest.Redlock5)], sum, all)
	if got := r.guard.MustDo(t, "GET", "turns"); got != strconv.Itoa(sum) {
		t.Errorf("the number counts %s of %d turns: some held it at once", got, sum)
	}
}
