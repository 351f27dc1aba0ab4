package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func TestOptions_RequireNamesWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		personality memlock.Personality
		lacks       interlock.Feature
		names       string
	}{
		{memlock.Personality{NoOrder: true}, interlock.Ordered, "Ordered"},
		{memlock.Personality{NoShared: true}, interlock.Shared, "Shared"},
		{memlock.Personality{NoCount: true}, interlock.Counted, "Counted"},
		{memlock.Personality{Notices: memlock.Lost}, interlock.Events, "Events"},
		{memlock.Personality{NoExpiry: true}, interlock.Expires, "Expires"},
		{memlock.Personality{NoFence: true}, interlock.Fenced, "Fenced"},
		{memlock.Personality{}, interlock.DurableFence, "DurableFence"},
		{memlock.Personality{NoOrder: true, NoFence: true}, interlock.Ordered | interlock.Fenced, "Ordered, Fenced"},
	} {
		all := interlock.Ordered | interlock.Shared | interlock.Counted | interlock.Mixed | interlock.Events | interlock.Expires | interlock.Fenced
		_, err := interlock.New(memlock.NewPersonality(c.personality), &interlock.Options{Require: all | c.lacks})
		if err == nil || !strings.HasSuffix(err.Error(), ": "+c.names) {
			t.Errorf("%+v: %v, want it to end with %q", c.personality, err, c.names)
		}
		has := all &^ c.lacks
		if _, err := interlock.New(memlock.NewPersonality(c.personality), &interlock.Options{Require: has}); err != nil {
			t.Errorf("%+v without it: %v", c.personality, err)
		}
	}
}

func TestOptions_ImpossibleOnesAreRefusedByNew(t *testing.T) {
	for _, c := range []struct {
		o    interlock.Options
		says string
	}{
		{interlock.Options{TTL: -time.Second}, "Options.TTL is -1s"},
		{interlock.Options{Grace: -time.Second}, "Options.Grace is -1s"},
		{interlock.Options{Idle: -time.Second}, "Options.Idle is -1s"},
		{interlock.Options{Patience: -time.Second}, "Options.Patience is -1s"},
		{interlock.Options{MaxWaiters: -1}, "Options.MaxWaiters is -1"},
		{interlock.Options{TTL: time.Millisecond}, "between 10ms and 24h0m0s"},
		{interlock.Options{TTL: math.MaxInt64}, "between 10ms and 24h0m0s"},
		{interlock.Options{TTL: time.Second, Grace: 334 * time.Millisecond}, "TTL/3 = 333.333333ms"},
		{interlock.Options{Grace: time.Millisecond}, "2ms ≤ grace"},
	} {
		store := memlock.New()
		if _, err := interlock.New(store, &c.o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want it to say %q", c.o, err, c.says)
		}
		if n := store.Calls(); n != 0 {
			t.Errorf("%+v: %d calls", c.o, n)
		}
	}
}

// bounded is a store of other bounds of a TTL.
type bounded struct {
	*memlock.Driver
	least, most time.Duration
	asked       chan time.Duration
}

func (d bounded) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	d.asked <- spec.TTL
	return d.Driver.Open(ctx, spec)
}

func (d bounded) Traits() driver.Traits {
	traits := d.Driver.Traits()
	traits.MinTTL, traits.MaxTTL = d.least, d.most
	return traits
}

func TestOptions_TheDefaultTTLIsWithinTheStoresBounds(t *testing.T) {
	for _, c := range []struct{ least, most, want time.Duration }{
		{time.Second, time.Minute, 15 * time.Second},
		{time.Second, 0, 15 * time.Second},
		{time.Second, 6 * time.Second, 6 * time.Second},
		{20 * time.Second, time.Minute, 20 * time.Second},
	} {
		store := bounded{memlock.New(), c.least, c.most, make(chan time.Duration, 1)}
		client, err := interlock.New(store, nil)
		if err != nil {
			t.Errorf("a store that wants from %v to %v: %v", c.least, c.most, err)
			continue
		}
		if _, err := client.Mutex("n").Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if asked := <-store.asked; asked != c.want {
			t.Errorf("a store that wants from %v to %v is asked for %v, want %v", c.least, c.most, asked, c.want)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if _, err := interlock.New(store, &interlock.Options{TTL: c.least - time.Millisecond}); err == nil {
			t.Errorf("a TTL below %v is not refused", c.least)
		}
	}
}

// everyCall makes each call that a name and choices can be used for, and returns how they failed.
func everyCall(ctx context.Context, c *interlock.Client, name string, o ...interlock.LockOption) map[string]error {
	ran := errors.New("fn ran")
	fn := func(context.Context) error { return ran }
	lease := func(_ *interlock.Lease, err error) error { return err }
	m, rw, s := c.Mutex(name, o...), c.RWMutex(name, o...), c.Semaphore(name, 3, o...)
	e, all := c.Election(name, o...), c.Multi([]string{"good", name}, o...)
	_, leaderErr := e.Leader(ctx)
	var observed error
	for _, err := range e.Observe(ctx) {
		observed = err
		break
	}
	return map[string]error{
		"Mutex.Err": m.Err(), "Mutex.Lock": lease(m.Lock(ctx)), "Mutex.TryLock": lease(m.TryLock(ctx)), "Mutex.Do": m.Do(ctx, fn),
		"RWMutex.Err": rw.Err(), "RWMutex.Lock": lease(rw.Lock(ctx)), "RWMutex.TryLock": lease(rw.TryLock(ctx)), "RWMutex.Do": rw.Do(ctx, fn),
		"RWMutex.RLock": lease(rw.RLock(ctx)), "RWMutex.TryRLock": lease(rw.TryRLock(ctx)), "RWMutex.RDo": rw.RDo(ctx, fn),
		"Semaphore.Err": s.Err(), "Semaphore.Acquire": lease(s.Acquire(ctx, 1)), "Semaphore.TryAcquire": lease(s.TryAcquire(ctx, 1)), "Semaphore.Do": s.Do(ctx, 1, fn),
		"Election.Err": e.Err(), "Election.Lead": e.Lead(ctx, fn), "Election.Leader": leaderErr, "Election.Observe": observed,
		"Multi.Err": all.Err(), "Multi.Lock": lease(all.Lock(ctx)), "Multi.TryLock": lease(all.TryLock(ctx)), "Multi.Do": all.Do(ctx, fn),
	}
}

func TestHandles_AreMadeAndCarryWhyTheyCannotBe(t *testing.T) {
	type options []interlock.LockOption
	for _, c := range []struct {
		what, name string
		options    options
		says       string
	}{
		{"empty name", "", nil, "empty name: want 1 to 1024 bytes"},
		{"long name", strings.Repeat("n", 1025), nil, "name of 1025 bytes: want at most 1024"},
		{"not UTF-8", "a\xffb", nil, "is not UTF-8"},
		{"control character", "a\nb", nil, "control character U+000A"},
		{"NUL", "a\x00b", nil, "control character U+0000"},
		{"C1 control character", "a\u0085b", nil, "control character U+0085"},
		{"TTL 0", "n", options{interlock.TTL(0)}, "TTL of 0s: want a positive"},
		{"TTL negative", "n", options{interlock.TTL(-time.Second)}, "TTL of -1s: want a positive"},
		{"TTL below the store's", "n", options{interlock.TTL(time.Millisecond)}, "wants between 10ms and 24h"},
		{"TTL of the wrong unit", "n", options{interlock.TTL(15)}, "wants between 10ms and 24h"},
		{"TTL above the store's", "n", options{interlock.TTL(25 * time.Hour)}, "wants between 10ms and 24h"},
		{"TTL overflowing", "n", options{interlock.TTL(math.MaxInt64)}, "wants between 10ms and 24h"},
		{"grace 0", "n", options{interlock.Grace(0)}, "grace of 0s: want a positive"},
		{"grace negative", "n", options{interlock.Grace(-1)}, "want a positive"},
		{"grace too short", "n", options{interlock.Grace(time.Millisecond)}, "want 2ms ≤ grace"},
		{"grace too long", "n", options{interlock.Grace(8 * time.Second)}, "TTL/3 = 5s"},
		{"grace overflowing", "n", options{interlock.Grace(math.MaxInt64)}, "TTL/3 = 5s"},
		{"wait negative", "n", options{interlock.Wait(-1)}, "want 0 or a positive"},
		{"minimum negative", "n", options{interlock.MinHold(-1)}, "want 0 or a positive"},
		{"maximum 0", "n", options{interlock.MaxHold(0)}, "want a positive"},
		{"maximum within the grace", "n", options{interlock.MaxHold(time.Second)}, "ends a grace before it"},
		{"minimum above maximum", "n", options{interlock.MinHold(9 * time.Second), interlock.MaxHold(8 * time.Second)}, "minimum hold of 9s above the maximum of 8s"},
		{"note too long", "n", options{interlock.Note(strings.Repeat("x", 257))}, "want at most 256 bytes"},
		{"note not UTF-8", "n", options{interlock.Note("\xff")}, "want at most 256 bytes of UTF-8"},
	} {
		t.Run(c.what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store := memlock.New()
				client := newClient(t, store, nil)
				for call, err := range everyCall(t.Context(), client, c.name, c.options...) {
					var e *interlock.Error
					if !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) {
						t.Errorf("%s: %v, want an *Error that says %q", call, err, c.says)
					} else if len(err.Error()) > 300 {
						t.Errorf("%s: an error of %d bytes", call, len(err.Error()))
					}
				}
				if n := store.Calls(); n != 0 {
					t.Errorf("%d calls to the store", n)
				}
			})
		})
	}
}

func TestHandles_WhatTheStoreLacksIsUnsupported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.NewPersonality(memlock.Personality{NoShared: true, NoCount: true})
		c := newClient(t, store, nil)
		matches(t, c.RWMutex("n").Err(), errors.ErrUnsupported)
		matches(t, c.Semaphore("n", 3).Err(), errors.ErrUnsupported)
		_, err := c.RWMutex("n").RLock(t.Context())
		matches(t, err, errors.ErrUnsupported)
		_, err = c.Semaphore("n", 3).Acquire(t.Context(), 1)
		matches(t, err, errors.ErrUnsupported)
		if n := store.Calls(); n != 0 {
			t.Errorf("%d calls to the store", n)
		}
		release(t, lock(t.Context(), t, c.Mutex("n")))
	})
}

func TestHandles_TheLongestAndTheOddestNamesAreNames(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), nil)
		for _, name := range []string{strings.Repeat("n", 1024), "ä/%2F ../\\{}*?", "🔒", " "} {
			release(t, lock(t.Context(), t, c.Mutex(name)))
			if got := c.Key(name); got != name {
				t.Errorf("Key(%q) = %q; this store keeps names as they are", name, got)
			}
		}
	})
}

func TestHandles_TheBoundsThemselvesArePossible(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), nil)
		for _, o := range [][]interlock.LockOption{
			{interlock.TTL(10 * time.Millisecond)},
			{interlock.TTL(24 * time.Hour)},
			{interlock.Grace(2 * time.Millisecond)},
			{interlock.Grace(5 * time.Second)},
			{interlock.TTL(time.Second), interlock.MinHold(time.Second), interlock.MaxHold(time.Second)},
			{interlock.MinHold(0)},
			{interlock.Note(strings.Repeat("x", 256))},
			{interlock.Wait(math.MaxInt64), interlock.MaxHold(math.MaxInt64)},
		} {
			m := c.Mutex("n", o...)
			if err := m.Err(); err != nil {
				t.Error(err)
				continue
			}
			l := lock(t.Context(), t, m)
			if err := l.Err(); err != nil {
				t.Error(err)
			}
			release(t, l)
		}
	})
}

func TestGrace_DefaultsToATenthWithinItsBounds(t *testing.T) {
	for _, c := range []struct{ ttl, grace time.Duration }{
		{15 * time.Second, 1500 * time.Millisecond},
		{time.Second, 100 * time.Millisecond},
		{10 * time.Millisecond, 2 * time.Millisecond},
	} {
		bubble(t, func(t *testing.T) {
			store := memlock.New()
			l := lock(t.Context(), t, newClient(t, store, nil).Mutex("n", interlock.TTL(c.ttl)))
			defer l.Release()
			if got := time.Until(l.Until()); got != c.ttl-c.grace {
				t.Errorf("TTL %v: trusted for %v, want %v", c.ttl, got, c.ttl-c.grace)
			}
		})
	}
}

func TestOpen_SaysWhatIsWrongWithAURLAndKeepsItsSecrets(t *testing.T) {
	for _, c := range []struct{ url, says string }{
		{"nosuch://u:hunter2@host/", `unknown scheme "nosuch"`},
		{"nosuch://u:hunter2@host/", "known here are "},
		{"nosuch://u:hunter2@host/", "mem"},
		{"mem:a?ttl=hunter2", `unknown parameter "ttl"`},
		{"mem:a?password=hunter2", `unknown parameter "password"`},
		{"mem://u:hunter2@host/", "want mem: or mem:NAME"},
		{"mem://u:hunter2@host:port/", "cannot read the store's URL"},
		{"mem://u:hunt/er2@host/", "what means something in URLs as %XX"},
		{"mem:a?%zz=hunter2", "parameters of the store's URL are malformed"},
		{"://hunter2", "cannot read the store's URL"},
		{"", "known here are "},
	} {
		_, err := interlock.Open(t.Context(), c.url, nil)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want it to say %q", c.url, err, c.says)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the secret is in %q", c.url, err)
		}
	}
	_, err := interlock.Open(t.Context(), "file:/tmp/nowhere", nil)
	if err == nil || !strings.Contains(err.Error(), `import _ "github.com/interlock-go/interlock/filelock"`) {
		t.Errorf("scheme that is not imported: %v", err)
	}
}

func TestOpen_ClosesAStoreThatLacksWhatIsRequired(t *testing.T) {
	if _, err := interlock.Open(t.Context(), "mem:", &interlock.Options{Require: interlock.DurableFence}); err == nil || !strings.Contains(err.Error(), "DurableFence") {
		t.Error(err)
	}
	c := must[*interlock.Client](t)(interlock.Open(t.Context(), "mem:options", &interlock.Options{TTL: time.Second, Grace: 2 * time.Millisecond}))
	release(t, lock(t.Context(), t, c.Mutex("n")))
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestOptions_TheOwnerIsWhoPeopleSee(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ option, want string }{
			{"", fmt.Sprintf("%s/%s/%d", host, filepath.Base(os.Args[0]), os.Getpid())},
			{"billing", "billing"},
		} {
			l := lock(t.Context(), t, newClient(t, store, &interlock.Options{Owner: c.option}).Mutex("m"))
			o := claims(t, store, "m")[0].Owner
			if o.Name != c.want || o.Host != host || o.PID != os.Getpid() || o.Program != filepath.Base(os.Args[0]) {
				t.Errorf("%+v, want the name %s", o, c.want)
			}
			if encoded := string(o.Encode()); len(os.Args) > 1 && strings.Contains(encoded, os.Args[1]) {
				t.Errorf("%s shows the program's arguments", encoded)
			}
			release(t, l)
		}
	})
}

func TestOptions_HugeOnesNeverWrapAround(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		c := newClient(t, store, &interlock.Options{Patience: math.MaxInt64, Idle: math.MaxInt64, MaxWaiters: math.MaxInt})
		time.Sleep(time.Minute)
		release(t, lock(t.Context(), t, c.Mutex("m")))
		time.Sleep(time.Minute)
		resume := store.Stall()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		_, err := c.Mutex("m").Lock(ctx)
		matches(t, err, interlock.ErrUnavailable, context.DeadlineExceeded)
		if time.Since(start) != time.Hour {
			t.Errorf("the patience ended after %v", time.Since(start))
		}
		resume()
		release(t, lock(t.Context(), t, c.Mutex("m")))
	})
}

// A grace that was asked for is had or refused: a lock with a TTL of its own does not get another
// one instead.
func TestOptions_GraceBesideATTLOfItsOwn(t *testing.T) {
	c := newClient(t, memlock.New(), &interlock.Options{TTL: time.Minute, Grace: 5 * time.Second})
	if err := c.Mutex("m", interlock.TTL(10*time.Second)).Err(); err == nil || !strings.Contains(err.Error(), "grace of 5s with a TTL of 10s") {
		t.Errorf("a grace of 5 s with a TTL of 10 s: %v", err)
	}
	if err := c.Mutex("m", interlock.TTL(10*time.Second), interlock.Grace(time.Second)).Err(); err != nil {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), &interlock.Options{TTL: time.Minute, Grace: 5 * time.Second})
		l := hold(t, c, "m", interlock.TTL(30*time.Second))
		if d := time.Until(l.Until()); d != 25*time.Second {
			t.Errorf("a TTL of 30 s less a grace of 5 s is %v", d)
		}
		release(t, l)
	})
}

// patientStore is a store without a longest TTL.
type patientStore struct{ driver.Driver }

func (p patientStore) Traits() driver.Traits {
	t := p.Driver.Traits()
	t.MaxTTL = 0
	return t
}

func TestOptions_TTLThatAStoreDoesNotTake(t *testing.T) {
	for _, c := range []struct {
		store driver.Driver
		want  string
	}{
		{memlock.New(), "TTL of 1ms: this store wants between 10ms and 24h0m0s"},
		{patientStore{memlock.New()}, "TTL of 1ms: this store wants 10ms or more"},
	} {
		client := newClient(t, c.store, nil)
		if err := client.Mutex("m", interlock.TTL(time.Millisecond)).Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q in it", err, c.want)
		}
	}
}
