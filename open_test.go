package interlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// coming is a store that fails with each of these errors, one try after the other, and with the
// last one again and again; nil is that it opens.
type coming struct {
	fails []error
	hangs bool // and says so when its context ends
	tries int
}

// url is that of a store whose opener this is.
func (c *coming) url() string {
	scheme := fmt.Sprint("coming", schemes.Add(1))
	driver.Register(scheme, func(ctx context.Context, _ *url.URL) (driver.Driver, error) {
		err := c.fails[min(c.tries, len(c.fails)-1)]
		c.tries++
		if c.hangs {
			<-ctx.Done()
			err = fmt.Errorf("%w: %w", err, ctx.Err())
		}
		if err != nil {
			return nil, err
		}
		return memlock.New(), nil
	})
	return scheme + ":"
}

func notThere(what string) error { return fmt.Errorf("%s: %w", what, driver.ErrNotSent) }

// Whoever starts before its store, or while that restarts, has a client as soon as the store is
// there.
func TestOpen_WaitsForAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &coming{fails: []error{notThere("refused"), notThere("loading"), notThere("a replica"), nil}}
		start := time.Now()
		c, err := interlock.Open(t.Context(), store.url(), nil)
		if err != nil {
			t.Fatalf("a store that is there at the fourth try: %v", err)
		}
		if store.tries != 4 || time.Since(start) == 0 {
			t.Errorf("%d tries in %v, want 4 with pauses", store.tries, time.Since(start))
		}
		release(t, lock(t.Context(), t, c.Mutex("m")))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What more tries do not change is told by the first one, at once, as it is.
func TestOpen_TellsAtOnce(t *testing.T) {
	for what, err := range map[string]error{
		"refused":               fmt.Errorf("the password: %w", driver.ErrRefused),
		"refused, and not sent": fmt.Errorf("%w: %w", driver.ErrRefused, driver.ErrNotSent),
		"unable":                fmt.Errorf("%w: %w: the disk is full", driver.ErrNotSent, driver.ErrUnable),
		"unsupported":           fmt.Errorf("%w: %w", driver.ErrNotSent, errors.ErrUnsupported),
		"of no kind":            errors.New("driver: unknown parameter"),
		"a certificate":         fmt.Errorf("%w: %w", driver.ErrNotSent, &tls.CertificateVerificationError{Err: errors.New("expired")}),
		"no TLS":                fmt.Errorf("%w: %w", driver.ErrNotSent, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}),
		"an alert":              fmt.Errorf("%w: %w", driver.ErrNotSent, &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}),
	} {
		synctest.Test(t, func(t *testing.T) {
			store, start := &coming{fails: []error{err}}, time.Now()
			_, got := interlock.Open(t.Context(), store.url(), nil)
			if !errors.Is(got, err) || store.tries != 1 || time.Since(start) != 0 {
				t.Errorf("%s: %v after %d tries and %v, want it after one and at once", what, got, store.tries, time.Since(start))
			}
		})
	}
	unable := &coming{fails: []error{fmt.Errorf("%w: %w", driver.ErrNotSent, driver.ErrUnable)}}
	if _, err := interlock.Open(t.Context(), unable.url(), nil); !errors.Is(err, interlock.ErrUnavailable) {
		t.Errorf("a store that is unable: %v, want %v", err, interlock.ErrUnavailable)
	}
	impossible := &coming{fails: []error{nil}}
	if _, err := interlock.Open(t.Context(), impossible.url(), &interlock.Options{TTL: -1}); err == nil || impossible.tries > 0 {
		t.Errorf("an option that cannot be: %v after %d tries, want it before", err, impossible.tries)
	}
}

// Whoever gives up says for how long it was tried and what was met, at the moment that was chosen.
func TestOpen_PatienceEnds(t *testing.T) {
	const minute = time.Minute
	for _, c := range []struct {
		name      string
		o         *interlock.Options
		took      time.Duration
		says      string
		hangs     bool
		leastMost [2]int // tries
	}{
		{"no options", nil, 15 * time.Second, "no answer within 15s, asked ", false, [2]int{15, 40}},
		{"a short TTL", &interlock.Options{TTL: time.Second}, 15 * time.Second, "no answer within 15s", false, [2]int{15, 40}},
		{"a long TTL", &interlock.Options{TTL: minute}, minute, "no answer within 1m0s", false, [2]int{60, 130}},
		{"a patience", &interlock.Options{TTL: minute, Patience: 3 * time.Second}, 3 * time.Second, "no answer within 3s", false, [2]int{5, 15}},
		{"hardly any", &interlock.Options{Patience: time.Millisecond}, time.Millisecond, "no answer within 1ms, asked once: ", false, [2]int{1, 1}},
		{"of a store that hangs", &interlock.Options{Patience: time.Second}, 15 * time.Second, "no answer within 15s, asked once: ", true, [2]int{1, 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, start := &coming{fails: []error{notThere("10.0.0.7:6379: refused")}, hangs: c.hangs}, time.Now()
			_, err := interlock.Open(t.Context(), store.url(), c.o)
			if !errors.Is(err, interlock.ErrUnavailable) || !errors.Is(err, driver.ErrNotSent) || errors.Is(err, context.DeadlineExceeded) ||
				!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), ": 10.0.0.7:6379: refused: not sent") {
				t.Errorf("%s: %v, want that it is unavailable and %q", c.name, err, c.says)
			}
			if took := time.Since(start); took != c.took || store.tries < c.leastMost[0] || store.tries > c.leastMost[1] {
				t.Errorf("%s: %d tries in %v, want %v in %v", c.name, store.tries, took, c.leastMost, c.took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // as long as the largest number of options goes
		store := &coming{fails: []error{notThere("x"), nil}}
		c, err := interlock.Open(t.Context(), store.url(), &interlock.Options{Patience: math.MaxInt64})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	})
}

// The context ends the opening, also of a store that hangs, and the error is that of the context as
// well.
func TestOpen_ItsContextEnds(t *testing.T) {
	why := errors.New("the service stops")
	for what, c := range map[string]struct {
		bound func(context.Context) (context.Context, context.CancelFunc)
		is    []error
		says  string
	}{
		"deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 5*time.Second)
		}, []error{context.DeadlineExceeded}, "context deadline exceeded after 5s, asked "},
		"cause": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, 5*time.Second, why)
		}, []error{context.DeadlineExceeded, why}, "the service stops, asked "},
		"cancelled": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(5*time.Second, cancel)
			return ctx, cancel
		}, []error{context.Canceled}, "context canceled after 5s, asked "},
	} {
		for _, hangs := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := c.bound(t.Context())
				defer cancel()
				store, start := &coming{fails: []error{notThere("refused")}, hangs: hangs}, time.Now()
				_, err := interlock.Open(ctx, store.url(), &interlock.Options{Patience: time.Hour})
				for _, want := range append(c.is, interlock.ErrUnavailable, driver.ErrNotSent) {
					matches(t, err, want)
				}
				if took := time.Since(start); took != 5*time.Second || !strings.Contains(err.Error(), c.says) || hangs != (store.tries == 1) {
					t.Errorf("%s, hangs %v: %v after %v and %d tries, want %q after 5s", what, hangs, err, took, store.tries, c.says)
				}
			})
		}
	}
}

// A try that takes longer than the patience is waited for: the store has its own time for that. One
// that follows has what is left.
func TestOpen_ATryHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries, scheme := 0, fmt.Sprint("slow", schemes.Add(1))
		driver.Register(scheme, func(ctx context.Context, _ *url.URL) (driver.Driver, error) {
			tries++
			select {
			case <-time.After(3 * time.Second):
				return nil, notThere("silent")
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		for _, c := range []struct {
			patience, took time.Duration
			tries          int
			says           string
		}{
			{time.Second, 3 * time.Second, 1, "no answer within 3s, asked once: silent"},
			{5 * time.Second, 5 * time.Second, 2, "no answer within 5s, asked 2 times: silent"},
		} {
			tries = 0
			start := time.Now()
			_, err := interlock.Open(t.Context(), scheme+":", &interlock.Options{Patience: c.patience})
			matches(t, err, interlock.ErrUnavailable)
			if took := time.Since(start); took != c.took || tries != c.tries || !strings.Contains(err.Error(), c.says) {
				t.Errorf("patience %v: %v after %v and %d tries; want %q after %v and %d", c.patience, err, took, tries, c.says, c.took, c.tries)
			}
		}
	})
}
