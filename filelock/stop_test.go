//go:build linux || darwin

package filelock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// A stopped waiter does not hold up the releaser, however often he is told: a socket that takes no more drops messages.
func TestStop_OfAWaiterDoesNotBlockTheReleaser(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	w := startWorker(t, task{Do: "wait", Dir: dir, Name: "n", TTL: long})
	first := mutexOf("n")
	acquire(t, s, first)
	w.hear(t, "waiting")
	if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l, err := d.Line(t.Context(), "n")
	if err != nil || len(l.Claims) != 2 {
		t.Fatalf("line %+v, %v", l, err)
	}
	k, err := d.names.get("n")
	if err != nil {
		t.Fatal(err)
	}
	defer d.names.put(k)
	key := sessionsOf(t, d, "n")[1]
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100_000 { // far more than a socket's buffer holds
			d.peers.Tell(key, k.hash, k)
		}
		release(t, s, first)
	}()
	select {
	case <-done:
	case <-time.After(soon):
		t.Error("the releaser waits for a stopped waiter")
	}
	// When it goes on it knows, although the wake-up was dropped.
	if err := w.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-done
	w.hear(t, "held")
}

// A holder who is stopped past his time is out, and learns of it when he goes on; a moment before his time nobody gets in.
func TestStop_OfTheHolder(t *testing.T) {
	dir := storeIn(t)
	const ttl = 500 * time.Millisecond
	d, s := openAt(t, dir, long)
	for _, queue := range []bool{true, false} {
		w := startWorker(t, task{Do: "hold", Dir: dir, Name: "n", TTL: ttl})
		w.hear(t, "held")
		c := mutexOf("n")
		if c.Queue = queue; queue {
			acquire(t, s, c)
		}
		if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		w.stopped(t)
		f, err := d.st.OpenSession(holderOf(t, d, "n"))
		if err != nil {
			t.Fatal(err)
		}
		end, _ := f.Until()
		f.File.Close()
		if queue {
			if _, err := hold(within(t, soon), s, c); err != nil {
				t.Fatal(err)
			}
		} else {
			until(t, soon, "a try after the holder's time", func() bool { return acquire(t, s, c).Held })
		}
		if early := time.Duration(end - machine.BootClock()); early > 0 {
			t.Errorf("granted %v before the time of the stopped holder was over", early)
		}
		if err := w.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		w.hear(t, "lost")
		w.kill()
		release(t, s, c)
	}
}

// A process that hammers the same name is stopped 200 times at random instructions, also while it has the record's
// lock: nobody else's renewal waits for it, and no lease is lost.
func TestStop_OfAStrangerHoldsNoRenewalUp(t *testing.T) {
	dir := storeIn(t)
	const ttl = 5 * time.Second
	_, s := openAt(t, dir, ttl)
	mine := mutexOf("mine")
	acquire(t, s, mine)
	waiting := mutexOf("n")
	w := startWorker(t, task{Do: "hammer", Dir: dir, Name: "n", TTL: long})
	w.hear(t, "ready")
	w2 := startWorker(t, task{Do: "hammer", Dir: dir, Name: "mine", TTL: long})
	w2.hear(t, "ready")
	acquire(t, s, waiting)
	longest := time.Duration(0)
	for i := range 200 {
		victim := w
		if i%2 == 1 {
			victim = w2
		}
		if err := victim.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		r, err := s.Renew(within(t, ttl))
		if err != nil || len(r.Lost) > 0 {
			t.Fatalf("stop %d: renew: %+v, %v", i, r, err)
		}
		longest = max(longest, time.Since(at))
		if err := victim.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond) // to another instruction
	}
	t.Logf("longest renewal %v", longest)
	if longest > ttl/3 {
		t.Errorf("a renewal took %v", longest)
	}
}

// The lock of a record is held by somebody who is stopped: a renewal of a session that stands in the same line does not
// wait for it, and the error of those who must wait says whom for.
func TestStop_InsideTheRecordsLock(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	mine := mutexOf("n")
	acquire(t, s, mine)
	f, err := d.st.OpenRecord(d.Key("n"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Unref()
	if err := f.Lock(t.Context(), d.ctx, d.slow); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Renew(context.Background())
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("renew: %v", err)
		}
	case <-time.After(soon):
		t.Error("a renewal waits for the record's lock")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Release(ctx, mine)
	if err == nil || !strings.Contains(err.Error(), "has the record's lock") {
		t.Errorf("release: %v: want who has the record's lock", err)
	}
	f.Unlock()
	release(t, s, mine)
}

// Somebody is stopped between making a record and writing its first head. Another takes the record for one that was cut to
// nothing, begins it anew and holds; the one who goes on does not wipe that out.
func TestStop_WhileARecordIsMade(t *testing.T) {
	d, s := openAt(t, storeIn(t), long)
	path := d.Key("n")
	fd, err := unix.Open(path, layout.OpenFlags|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	mine := mutexOf("n")
	first, err := hold(within(t, soon), s, mine)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.st.BeginRecord(fd, path); err != nil {
		t.Fatal(err)
	}
	_, s2 := openAt(t, d.st.Dir, long)
	try := mutexOf("n")
	try.Queue = false
	if g := acquire(t, s2, try); g.Held {
		t.Fatalf("two hold: one with token %d, then one with %d", first.Fence, g.Fence)
	}
	release(t, s, mine)
	if g := acquire(t, s2, mutexOf("n")); !g.Held || g.Fence <= first.Fence {
		t.Errorf("the next: %+v, want it held with a token above %d", g, first.Fence)
	}
}

// The driver is closed under calls that are under way, also under one that waits for a stopped stranger: they end, and
// nothing is touched that is closed.
func TestClose_WhileCallsAreUnderWay(t *testing.T) {
	for range 20 {
		dir := storeIn(t)
		d, err := New(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := openSession(t, d, long)
		var calls sync.WaitGroup
		for i := range 4 {
			calls.Go(func() {
				for {
					c := mutexOf(fmt.Sprint("n", i%2))
					if _, err := hold(t.Context(), s, c); err != nil {
						return
					}
					if _, err := s.Release(t.Context(), c); err != nil {
						return
					}
				}
			})
		}
		stuck := mutexOf("stuck")
		acquire(t, s, stuck)
		f, err := d.st.OpenRecord(d.Key("stuck"), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Lock(t.Context(), t.Context(), d.slow); err != nil {
			t.Fatal(err)
		}
		calls.Go(func() {
			if _, err := s.Release(t.Context(), stuck); err == nil {
				t.Error("released under a lock that another has")
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = d.Close(ctx)
		}()
		select {
		case <-closed:
		case <-time.After(soon):
			t.Fatal("Close waits for a stopped stranger")
		}
		calls.Wait()
		cancel()
		f.Unref()
	}
}

// sessionsOf returns whose claims stand in the line of a name.
func sessionsOf(t *testing.T, d *Driver, name string) (keys []layout.SessionKey) {
	t.Helper()
	f, err := d.st.OpenRecord(d.Key(name), false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Unref()
	r, _, err := f.Peek()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Claims {
		keys = append(keys, layout.SessionKey([]byte(c.Session)))
	}
	return keys
}

func holderOf(t *testing.T, d *Driver, name string) layout.SessionKey {
	t.Helper()
	return sessionsOf(t, d, name)[0]
}
