package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func TestShutdown_WaitersLeaveAndHoldersFinish(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		c := must[*interlock.Client](t)(interlock.New(store, nil))
		l := lock(t.Context(), t, c.Mutex("m"))
		waits := []*attempt{
			background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) }),
			background(func() (*interlock.Lease, error) { return c.Multi([]string{"a", "m"}).Lock(t.Context()) }),
		}
		synctest.Wait()
		down := make(chan error, 2)
		start := time.Now()
		for range 2 { // as often as one likes
			go func() { down <- c.Shutdown(t.Context()) }()
		}
		for _, w := range waits {
			<-w.done
			matches(t, w.err, interlock.ErrClosed)
		}
		if time.Since(start) != 0 {
			t.Errorf("the waiters heard of it after %v", time.Since(start))
		}
		_, err := c.Mutex("new").TryLock(t.Context())
		matches(t, err, interlock.ErrClosed)
		time.Sleep(10 * time.Minute) // the holder is renewed meanwhile
		if l.Err() != nil || len(down) != 0 {
			t.Errorf("holder: %v; Shutdown returned: %t", l.Err(), len(down) > 0)
		}
		release(t, l)
		for range 2 {
			if err := <-down; err != nil {
				t.Error(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Errorf("Close after Shutdown: %v", err)
		}
		for _, name := range []string{"a", "m"} {
			if n := len(claims(t, store, name)); n != 0 {
				t.Errorf("%d claims of %s", n, name)
			}
		}
	})
}

// The next holder gets in when fn has returned, or a grace after its context ended: whichever is
// first.
func TestShutdown_TheNextGetsInWhenFnHasReturnedOrAGraceLater(t *testing.T) {
	const grace, patience = 2 * time.Second, 10 * time.Second
	for _, c := range []struct{ stops, next time.Duration }{
		{0, 0},
		{500 * time.Millisecond, 500 * time.Millisecond},
		{time.Hour, grace},
	} {
		bubble(t, func(t *testing.T) {
			store := memlock.New()
			client := must[*interlock.Client](t)(interlock.New(store, nil))
			other := newClient(t, store.Share(), nil)
			done := make(chan error)
			go func() {
				done <- client.Mutex("m", interlock.Grace(grace)).Do(t.Context(), func(ctx context.Context) error {
					<-ctx.Done()
					matches(t, context.Cause(ctx), interlock.ErrLost, interlock.ErrClosed)
					time.Sleep(c.stops)
					return nil
				})
			}()
			synctest.Wait()
			next := background(func() (*interlock.Lease, error) { return other.Mutex("m").Lock(t.Context()) })
			synctest.Wait()
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			down := make(chan error)
			go func() { down <- client.Shutdown(ctx) }()
			l := next.wait(t)
			if got := time.Since(start); got != patience+c.next {
				t.Errorf("fn takes %v to stop: the next got in after %v, want %v", c.stops, got, patience+c.next)
			}
			matches(t, <-down, context.DeadlineExceeded)
			matches(t, <-done, interlock.ErrLost, interlock.ErrClosed)
			release(t, l)
		})
	}
}

func TestClose_KeepsALeastTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		c := must[*interlock.Client](t)(interlock.New(store, nil))
		other := newClient(t, store.Share(), nil)
		start := time.Now()
		if err := c.Mutex("m", interlock.MinHold(time.Minute)).Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		if time.Since(start) != 0 {
			t.Errorf("Do waited %v", time.Since(start))
		}
		_, err := c.Mutex("m").TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		next := background(func() (*interlock.Lease, error) { return other.Mutex("m").Lock(t.Context()) })
		synctest.Wait()
		time.Sleep(time.Second)
		if err := c.Close(); err != nil || time.Since(start) != time.Minute {
			t.Errorf("closed after %v: %v", time.Since(start), err)
		}
		l := next.wait(t)
		if time.Since(start) != time.Minute {
			t.Errorf("the next got in after %v", time.Since(start))
		}
		release(t, l)
	})
}

func TestShutdown_WithoutLeasesSucceedsAlsoWhenItsContextIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			c := must[*interlock.Client](t)(interlock.New(memlock.New(), nil))
			release(t, lock(t.Context(), t, c.Mutex("m")))
			if err := c.Shutdown(over); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestClose_ClosesOnlyWhatOpenOpened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		closed := 0
		d := &closing{Driver: memlock.New(), closed: &closed}
		c := must[*interlock.Client](t)(interlock.New(d, nil))
		release(t, lock(t.Context(), t, c.Mutex("m")))
		if err := c.Close(); err != nil || closed != 0 {
			t.Errorf("%v, the user's driver was closed %d times", err, closed)
		}
		scheme := fmt.Sprint("closing", schemes.Add(1)) // each once, however often the test runs
		driver.Register(scheme, opener(d))
		c = must[*interlock.Client](t)(interlock.Open(t.Context(), scheme+":", nil))
		d.err = errors.New("cannot be closed")
		matches(t, c.Close(), d.err)
		if closed != 1 {
			t.Errorf("what Open opened was closed %d times", closed)
		}
	})
}

var schemes atomic.Int32

type closing struct {
	*memlock.Driver
	closed *int
	err    error
}

func (d *closing) Close(context.Context) error {
	*d.closed++
	return d.err
}

func opener(d driver.Driver) driver.Opener {
	return func(context.Context, *url.URL) (driver.Driver, error) { return d, nil }
}

// A client that holds more than can be released one by one in the time that Close has still closes
// its session, with which all of it goes.
func TestClose_OfManyLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &spy{Driver: memlock.New()}
		d.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
			if op == "release" {
				slow(ctx, 300*time.Millisecond)
			}
			return ctx.Err()
		})
		c := newClient(t, d, nil)
		other := newClient(t, d, nil)
		const many = 1000
		for i := range many {
			hold(t, c, fmt.Sprint("m", i))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		left := 0
		for i := range many {
			if _, err := other.Mutex(fmt.Sprint("m", i)).TryLock(t.Context()); err != nil {
				left++
			}
		}
		if left > 0 {
			t.Errorf("%d of %d are left behind", left, many)
		}
	})
}

// Shutdown and Close are bounded, whatever hangs: a first Lock, a renewal, a release, a clean-up.
func TestClose_AtASilentStore(t *testing.T) {
	through(t, func(t *testing.T, silence func(*memlock.Driver) func()) {
		store := memlock.New()
		c := must[*interlock.Client](t)(interlock.New(store, nil))
		l := hold(t, c, "held")
		cancelled, cancel := context.WithCancel(t.Context())
		resume := silence(store)
		time.AfterFunc(time.Second, cancel)
		if _, err := c.Mutex("cleaned up").Lock(cancelled); err == nil {
			t.Error("locked at a silent store")
		}
		time.Sleep(5 * time.Second) // a renewal hangs, too
		waiting := make(chan error, 2)
		for _, name := range []string{"held", "asked for"} {
			go func() {
				_, err := c.Mutex(name).Lock(t.Context())
				waiting <- err
			}()
		}
		synctest.Wait()
		start := time.Now()
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		for range 2 {
			if err := <-waiting; !errors.Is(err, interlock.ErrClosed) || !time.Now().Equal(start) {
				t.Errorf("a waiter: %v after %v, want ErrClosed at once", err, time.Since(start))
			}
		}
		synctest.Wait()
		if l.Context().Err() == nil || !time.Now().Equal(start) {
			t.Errorf("the lease lives %v after Close", time.Since(start))
		}
		err := <-closed
		if time.Since(start) > 3500*time.Millisecond { // a grace, and 2 s
			t.Errorf("closed after %v", time.Since(start))
		}
		if !errors.Is(err, interlock.ErrUncertain) || !strings.Contains(err.Error(), `"held"`) {
			t.Errorf("closed: %v, want that the release of \"held\" is not confirmed", err)
		}
		if err := l.Release(); !errors.Is(err, interlock.ErrClosed) {
			t.Errorf("release: %v", err)
		}
		synctest.Wait() // and the end of the bubble sees that no goroutine is left
		resume()
	})
}

// What Close names it names once, however many sessions had it.
func TestClose_NamesALockOnce(t *testing.T) {
	through(t, func(t *testing.T, silence func(*memlock.Driver) func()) {
		store := memlock.New()
		c := must[*interlock.Client](t)(interlock.New(store, nil))
		for _, ttl := range []time.Duration{20 * time.Second, 30 * time.Second} {
			must[*interlock.Lease](t)(c.RWMutex("shared", interlock.TTL(ttl)).RLock(t.Context()))
		}
		must[*interlock.Lease](t)(c.RWMutex("shared", interlock.Isolated()).RLock(t.Context()))
		resume := silence(store)
		err := c.Close()
		matches(t, err, interlock.ErrUncertain)
		if n := strings.Count(fmt.Sprint(err), `"shared"`); n != 1 || strings.Count(fmt.Sprint(err), "\n") > 0 {
			t.Errorf("it is named %d times, want once and in one line: %v", n, err)
		}
		synctest.Wait()
		resume()
	})
}

// Sessions are closed side by side: one of whose Close nothing is heard takes no time from the
// others.
func TestClose_ClosesSessionsTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const many = 50
		d := &spy{Driver: memlock.New()}
		var begun atomic.Int32
		all := make(chan struct{})
		d.ahead(func(ctx context.Context, op string, _ driver.Claim) error {
			switch op {
			case "release": // so that the sessions have something to give back
				<-ctx.Done()
				return ctx.Err()
			case "close":
				if begun.Add(1) == many {
					close(all)
				}
				select {
				case <-all:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		c := must[*interlock.Client](t)(interlock.New(d, nil))
		for i := range many {
			lock(t.Context(), t, c.Mutex(fmt.Sprint("m", i), interlock.Isolated()))
		}
		if err := c.Close(); err != nil {
			t.Errorf("%v, after %d of %d had begun", err, begun.Load(), many)
		}
	})
}

// A Release that is under way at a store that does not answer takes its time from that of Close:
// both together are bounded, too.
func TestClose_WhileAReleaseIsNotAnswered(t *testing.T) {
	through(t, func(t *testing.T, silence func(*memlock.Driver) func()) {
		store := memlock.New()
		c := must[*interlock.Client](t)(interlock.New(store, nil))
		l := hold(t, c, "m")
		resume := silence(store)
		released := make(chan error, 1)
		start := time.Now()
		go func() { released <- l.Release() }()
		time.Sleep(time.Second / 10)
		err := c.Close()
		if took := time.Since(start); took > 2*time.Second+time.Second/10 {
			t.Errorf("closed %v after the release began, want 2 s", took)
		}
		if !errors.Is(err, interlock.ErrUncertain) || !strings.Contains(err.Error(), `"m"`) {
			t.Errorf("closed: %v, want that the release of \"m\" is not confirmed", err)
		}
		if err := <-released; !errors.Is(err, interlock.ErrUncertain) {
			t.Errorf("release: %v", err)
		}
		synctest.Wait()
		resume()
	})
}

// The same while the first session is being opened.
func TestClose_WhileASessionIsOpened(t *testing.T) {
	through(t, func(t *testing.T, silence func(*memlock.Driver) func()) {
		store := memlock.New()
		c := must[*interlock.Client](t)(interlock.New(store, nil))
		resume := silence(store)
		waiting := make(chan error, 2)
		for _, o := range [][]interlock.LockOption{nil, {interlock.Isolated()}} {
			go func() {
				_, err := c.Mutex("m", o...).Lock(t.Context())
				waiting <- err
			}()
		}
		time.Sleep(time.Second)
		start := time.Now()
		if err := c.Close(); err != nil || time.Since(start) > 2*time.Second {
			t.Errorf("closed after %v: %v", time.Since(start), err)
		}
		for range 2 {
			if err := <-waiting; !errors.Is(err, interlock.ErrClosed) || time.Since(start) > 2*time.Second {
				t.Errorf("a waiter: %v after %v, want ErrClosed at once", err, time.Since(start))
			}
		}
		resume()
		synctest.Wait()
	})
}

// The store does not answer, and its driver does not come back from a release when that is given
// up, as one that is connecting. The end of the client does not wait for it.
func TestShutdown_DoesNotWaitForAReleaseThatIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const grace = 10 * time.Millisecond
		d := &spy{Driver: memlock.New()}
		c := must[*interlock.Client](t)(interlock.New(d, &interlock.Options{Grace: grace}))
		lock(t.Context(), t, c.Mutex("m"))
		d.ahead(func(_ context.Context, op string, _ driver.Claim) error {
			if op == "release" {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		start := time.Now()
		_ = c.Close() // its session takes the claim along
		if took := time.Since(start); took > 2*time.Second+grace {
			t.Errorf("closed after %v, want 2 s at most, and the grace", took)
		}
		time.Sleep(10 * time.Second)
	})
}
