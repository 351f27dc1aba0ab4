package interlock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// What machines and clocks do to locks, one test each.

// A process that was stopped goes on as if it still held the lock, until its timers come.
func TestO01_FirstCallAfterAStopTellsTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		c := newClient(t, d, nil)
		l := hold(t, c, "m")
		silent := errors.New("stopped")
		d.ahead(func(_ context.Context, op string, _ driver.Claim) error {
			if op == "renew" {
				return silent
			}
			return nil
		})
		interlock.StopTrustTimers(c)
		time.Sleep(13500*time.Millisecond - 1)
		interlock.StopTrustTimers(c) // an earlier renewal may have set them
		live(t, l)
		time.Sleep(time.Nanosecond)
		if err := l.Err(); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("Err at the end of trust, before any timer: %v, want ErrLost", err)
		}
		if l.Context().Err() == nil {
			t.Error("Err has seen the loss, and the context lives")
		}
		d.ahead(nil)
	})
	synctest.Test(t, func(t *testing.T) { // Release is such a first call, too
		d := &spy{Driver: memlock.New()}
		c, b := newClient(t, d, nil), newClient(t, d.Share(), nil)
		l := hold(t, c, "m")
		d.ahead(func(_ context.Context, op string, _ driver.Claim) error {
			if op == "renew" {
				return errors.New("stopped")
			}
			return nil
		})
		interlock.StopTrustTimers(c)
		time.Sleep(15 * time.Second)
		next := hold(t, b, "m")
		if err := l.Release(); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("Release after the stop: %v, want ErrLost", err)
		}
		live(t, next)
		if err := next.Release(); err != nil {
			t.Error(err)
		}
		d.ahead(nil)
	})
}

// sleeper is a clock that a test lets the machine be suspended by. The timers of Go stand still
// meanwhile, as they do.
type sleeper struct{ slept atomic.Int64 }

func (s *sleeper) suspended(time.Duration) time.Duration { return time.Duration(s.slept.Load()) }

func (s *sleeper) suspend(d time.Duration) { s.slept.Add(int64(d)) }

func newSleepingClient(t *testing.T, d driver.Driver, o *interlock.Options) (*interlock.Client, *sleeper) {
	t.Helper()
	s := new(sleeper)
	c := must[*interlock.Client](t)(interlock.NewClientWithClock(d, o, s.suspended))
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c, s
}

// The monotonic clock stands still while the machine is suspended, and the lease's clock with it.
func TestO02_SuspendedTimeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, machine := newSleepingClient(t, memlock.New(), nil)
		l := hold(t, c, "m")
		machine.suspend(time.Minute)
		time.Sleep(time.Millisecond) // a lease asks the system once in a millisecond of running at most
		if err := l.Err(); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("Err a millisecond after a minute of suspension: %v, want ErrLost", err)
		}
		l.Release()
	})
	synctest.Test(t, func(t *testing.T) {
		c, machine := newSleepingClient(t, memlock.New(), nil)
		l := hold(t, c, "m")
		time.Sleep(2500 * time.Millisecond)
		machine.suspend(time.Minute)
		start := time.Now()
		if d := told(t, l).Sub(start); d > time.Second {
			t.Errorf("the context ended %v after the machine woke, want a second at most", d)
		}
		l.Release()
	})
	synctest.Test(t, func(t *testing.T) { // a short nap costs nothing
		c, machine := newSleepingClient(t, memlock.New(), nil)
		l := hold(t, c, "m")
		for range 20 {
			machine.suspend(3 * time.Second)
			time.Sleep(5 * time.Second)
			live(t, l)
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // and one that is longer than anybody's patience blames no store
		store := memlock.New()
		c, machine := newSleepingClient(t, store.Share(), &interlock.Options{Patience: time.Second})
		b := newClient(t, store, nil)
		l := hold(t, b, "m")
		next := granted(t, c, "m")
		time.Sleep(10 * time.Second)
		machine.suspend(time.Hour)
		time.Sleep(10 * time.Second)
		l.Release()
		if at := <-next; at.IsZero() {
			t.Error("the waiter was sent away")
		}
	})
}

// So do the times that a user has set.
func TestO02_HoldsCountSuspendedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, machine := newSleepingClient(t, memlock.New(), nil)
		l := hold(t, c, "m", interlock.TTL(time.Hour), interlock.MaxHold(10*time.Minute))
		time.Sleep(time.Minute)
		machine.suspend(10 * time.Minute)
		start := time.Now()
		if d := told(t, l).Sub(start); d > time.Second || !errors.Is(l.Err(), interlock.ErrMaxHold) {
			t.Errorf("told after %v of %v, want ErrMaxHold within a second of the machine's waking", d, l.Err())
		}
		l.Release()
	})
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		c, machine := newSleepingClient(t, store.Share(), nil)
		b := newClient(t, store, nil)
		l := hold(t, c, "m", interlock.TTL(time.Hour), interlock.MinHold(10*time.Minute))
		if err := l.Release(); err != nil {
			t.Error(err)
		}
		next := granted(t, b, "m")
		time.Sleep(time.Minute)
		machine.suspend(10 * time.Minute)
		start := time.Now()
		if d := (<-next).Sub(start); d > time.Second {
			t.Errorf("the next was granted %v after the machine woke, want a second at most", d)
		}
	})
}

// A machine that is suspended while it asks for a lock wakes with an answer that is an hour old.
func TestO02_SuspendedWhileItAcquires(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := memlock.New()
			theirs := &spy{Driver: store.Share()}
			c, machine := newSleepingClient(t, theirs, nil)
			b := newClient(t, store, nil)
			first := hold(t, b, "m")
			if !waits {
				release(t, first)
			}
			suspended := false
			theirs.behind(func(op string, c driver.Claim, err error) error {
				if asked := map[bool]string{false: "acquire", true: "wait"}[waits]; op == asked && !suspended {
					suspended = true
					machine.suspend(time.Hour)
					store.Forget("m") // its time was over long ago
				}
				return err
			})
			got := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) })
			if waits {
				time.Sleep(time.Second)
				_ = first.Release()
			}
			l := got.wait(t)
			time.Sleep(time.Millisecond)
			if err := l.Err(); err != nil || !suspended {
				t.Errorf("waits %v: reported, though over: %v", waits, err)
			}
			_ = l.Release()
		})
	}
}

// A wall clock decides, and is set. No test can set the clock of its process; that the core does
// not ask it can be read.
func TestO03_NoWallClockDecides(t *testing.T) {
	var files []string
	for _, of := range []string{"*.go", "internal/clock/*.go", "internal/lazyctx/*.go", "internal/report/*.go", "internal/local/*.go", "internal/keepalive/*.go"} {
		some, err := filepath.Glob(of)
		if err != nil || len(some) == 0 {
			t.Fatalf("%s: %d files, %v", of, len(some), err)
		}
		files = append(files, some...)
	}
	wall := regexp.MustCompile(`\.Unix(Nano|Milli|Micro)?\(|\.Round\(|\.Truncate\(|time\.Unix|\.UTC\(|\.In\(`)
	read := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read++
		for n, line := range strings.Split(string(text), "\n") {
			if wall.MatchString(line) && file != "owner.go" { // which says for people when the process began
				t.Errorf("%s:%d has the wall clock: %s", file, n+1, strings.TrimSpace(line))
			}
		}
	}
	if read < 30 {
		t.Errorf("%d files read, want the whole core", read)
	}
}
