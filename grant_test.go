package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// A9: the owner is a value that the caller supplies, and that others guess.
func TestA09_TheLabelIsNoSecretAndNoIdentity(t *testing.T) {
	for _, label := range []string{"m", "worker", "", strings.Repeat("x", 2000), "a\"b\\c", "\xff"} {
		bubble(t, func(t *testing.T) {
			d := &spy{Driver: memlock.New()}
			o := &interlock.Options{Owner: label}
			a, b := newClient(t, d, o), newClient(t, d, o)
			release(t, lock(t.Context(), t, a.Mutex("m")))
			release(t, lock(t.Context(), t, b.Mutex("m")))
			ids := map[string]bool{}
			for _, call := range d.made("acquire") {
				if id := call.claim.ID; len(id) != 22 || ids[id] {
					t.Fatalf("ID %q: want 128 random bits in 22 characters, new each time", id)
				}
				ids[call.claim.ID] = true
			}
			l := lock(t.Context(), t, a.Mutex("m"))
			_, err := b.Mutex("m").TryLock(t.Context())
			matches(t, err, interlock.ErrHeld)
			for id := range ids {
				if strings.Contains(err.Error(), id) || strings.Contains(fmt.Sprintf("%+v", claims(t, d.Driver, "m")), id) {
					t.Error("a secret is shown")
				}
			}
			release(t, l)
		})
	}
}

// A5: success is reported although the lease is over already, because the reply was under way for
// longer than it.
func TestA05_AnAnswerThatComesTooLateIsNoLease(t *testing.T) {
	for _, late := range []time.Duration{13 * time.Second, 14 * time.Second, 15 * time.Second, 40 * time.Second} {
		bubble(t, func(t *testing.T) {
			store := memlock.New()
			c := newClient(t, store, &interlock.Options{Patience: time.Hour})
			if err := c.Health(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(late, store.StallReplies())
			l := lock(t.Context(), t, c.Mutex("m"))
			if err := l.Err(); err != nil {
				t.Errorf("a reply %v late: got a lease that is over: %v", late, err)
			}
			if left := time.Until(l.Until()); left < 1500*time.Millisecond {
				t.Errorf("a reply %v late: a lease with %v of trust left, want its grace of 1.5s at least", late, left)
			}
			if n := len(claims(t, store, "m")); n != 1 {
				t.Errorf("%d claims", n)
			}
			release(t, l)
		})
	}
}

// A6: the release of one attempt deletes the next, which has the same value.
func TestA06_EveryAttemptHasAnIDOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.New()
		granted := make(chan struct{})
		var acquires atomic.Int32
		d := &spy{Driver: store}
		d.behind(func(op string, _ driver.Claim, err error) error {
			if op == "acquire" && acquires.Add(1) == 1 {
				return errors.New("connection reset") // after the store has done it
			}
			return err
		})
		first := ""
		d.ahead(func(_ context.Context, op string, c driver.Claim) error {
			if op == "acquire" && first == "" {
				first = c.ID
			}
			if op == "release" && c.ID == first {
				<-granted // the first attempt's release is overtaken by the second attempt
			}
			return nil
		})
		c := newClient(t, d, &interlock.Options{TTL: 10 * time.Second})
		attempt := background(func() (*interlock.Lease, error) { return c.Mutex("m").Lock(t.Context()) })
		time.Sleep(time.Second)
		close(granted)
		l := attempt.wait(t)
		time.Sleep(time.Minute)
		if n := len(claims(t, store, "m")); n != 1 || l.Err() != nil {
			t.Errorf("a minute after the first attempt was released: %d claims, %v, want the second's", n, l.Err())
		}
		release(t, l)
		seen := map[string]bool{}
		for _, call := range d.made("acquire") {
			if seen[call.claim.ID] {
				t.Errorf("two attempts with the ID %s", call.claim.ID)
			}
			seen[call.claim.ID] = true
		}
	})
}
