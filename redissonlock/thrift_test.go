//go:build linux || darwin

package redissonlock_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// Of those who wait in one process one asks for all.
func TestOneAsksForAll(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, redistest.Durable...)
	b := redistest.NewProxies(t)
	d := byURL(t, b.To(server.Addr()).Addr())
	holder, waiter := newActor(t, byURL(t, server.Addr()), ages), newActor(t, d, ages)
	mine := holder.takes(driver.Mutex, "crowd")
	const crowd = 8
	var claims []driver.Claim
	var waits []<-chan error
	for range crowd {
		c := waiter.queues(driver.Mutex, mine.Name)
		claims, waits = append(claims, c), append(waits, waiter.waits(c))
	}
	const messages = 10
	before := b.Calls()[0]
	for range messages {
		server.MustDo(t, "PUBLISH", "redisson_lock__channel:{crowd}", "0")
	}
	until(t, "nobody asks after a message", func() bool { return b.Calls()[0] > before })
	holder.releases(mine, true)
	for range crowd { // each gets in, one after the other, with one question and one release
		i := within(t, "one of the crowd", first(waits))
		waiter.releases(claims[i], true)
		waits[i] = nil
	}
	// Two messages may be one question, and one question may come too early for the last message.
	if calls, most := b.Calls()[0]-before, messages+1+3*crowd; calls > most {
		t.Errorf("%d waiters of one process cost %d calls for %d messages and as many turns, want %d at most", crowd, calls, messages, most)
	}
}

// first yields the index of the first channel that has something to say.
func first(from []<-chan error) <-chan int {
	done := make(chan int, 1)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(soon); time.Now().Before(end); <-tick.C {
			for i, c := range from {
				if len(c) > 0 {
					done <- i
					return
				}
			}
		}
	}()
	return done
}

// What is held is renewed a hundred a script, and what is gone or broken among them is named, and
// nothing else.
func TestRenewalsGoTogether(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, redistest.Durable...)
	b := redistest.NewProxies(t)
	d := byURL(t, b.To(server.Addr()).Addr())
	a := newActor(t, d, ages)
	const many = 250
	claims := make([]driver.Claim, many)
	for i := range claims {
		claims[i] = claimOf([]driver.Kind{driver.Mutex, driver.Write, driver.Read}[i%3], fmt.Sprint("renewed/", i))
		g := a.holds(claims[i])
		if i == 0 { // the first use of the script costs a call more
			if _, err := a.s.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if i == 7 {
			if err := d.(driver.Inspector).Break(t.Context(), claims[i].Name, driver.PublicID(claims[i].ID), g.Fence, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, words := range [][]string{{"DEL", claims[120].Name}, {"PEXPIRE", claims[9].Name, "20000"}} {
		server.MustDo(t, words...)
	}
	before := b.Calls()[0]
	r, err := a.s.Renew(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if calls := b.Calls()[0] - before; calls > 3 {
		t.Errorf("the renewal of %d claims cost %d calls, want 3", many, calls)
	}
	lost := map[string]error{}
	for _, l := range r.Lost {
		lost[l.ID] = l.Err
	}
	if len(lost) != 2 || len(r.Lost) != 2 || lost[claims[7].ID] == nil || lost[claims[120].ID] == nil {
		t.Errorf("lost are %d claims, want the broken one and the deleted one", len(r.Lost))
	}
	if left, err := server.Do("PTTL", claims[9].Name); err != nil || len(left) != 5 || left < "5" {
		t.Errorf("a renewed claim ends in %s ms, %v: want about %v", left, err, ages)
	}
}

// Entered again in this process, a lock is still held once in Redis.
func TestReentryIsCountedHere(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	client := m.open(t, ages)
	lock := client.Mutex("again", interlock.Reentrant())
	first, err := lock.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := lock.Lock(first.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*interlock.Lease{second, first} {
		if held := strings.Fields(m.do(t, "again", "HVALS", "again")); !slices.Equal(held, []string{"1"}) {
			t.Errorf("the holds are %q, want one", held)
		}
		released(t, l)
	}
	if n := m.do(t, "again", "EXISTS", "again"); n != "0" {
		t.Error("the key is there when the last has released")
	}
}

// Many readers leave one after the other. None of them has the server look at the times of all that
// are left, where these are the same.
func TestReadersLeaveWithoutALookAtAll(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, redistest.Durable...)
	a := newActor(t, byURL(t, server.Addr()), ages)
	const readers, name = 100, "readers"
	var claims []driver.Claim
	for range readers {
		claims = append(claims, a.takes(driver.Read, name))
	}
	end := fmt.Sprint(time.Now().Add(ages).UnixMilli())
	times := strings.Fields(server.MustDo(t, "KEYS", "{"+name+"}:*:rwlock_timeout:1"))
	if len(times) != readers {
		t.Fatalf("%d readers have a time of their own, want %d", len(times), readers)
	}
	for _, key := range append(times, name) {
		server.MustDo(t, "PEXPIREAT", key, end)
	}
	server.MustDo(t, "CONFIG", "RESETSTAT")
	for _, c := range claims {
		a.releases(c, true)
	}
	_, calls, _ := strings.Cut(server.MustDo(t, "INFO", "commandstats"), "cmdstat_pttl:calls=")
	calls, _, _ = strings.Cut(calls, ",")
	// Three looks each; but where the server stood still between two looks the second time is the
	// shorter one, and then it looks on. To look at all that are left would be 50 more each.
	if n, err := strconv.Atoi(calls); err != nil || n > 10*readers {
		t.Errorf("%d readers left, and the server looked at %d times, %v; want %d at most", readers, n, err, 10*readers)
	}
}
