package foreigntest

import (
	"errors"
	"testing"
	"time"
)

// MustLock is Lock where nobody else may be in the way for so long.
func (c *Client) MustLock(t testing.TB, wait time.Duration) (value string) {
	t.Helper()
	value, err := c.Lock(wait)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// MustUnlock is Unlock of a lock that is held.
func (c *Client) MustUnlock(t testing.TB) {
	t.Helper()
	if err := c.Unlock(); err != nil {
		t.Fatal(err)
	}
}

// MustNotLock sees that the client is kept out by a holder, whether it tries or waits.
func (c *Client) MustNotLock(t testing.TB, holder string) {
	t.Helper()
	for _, wait := range []time.Duration{0, 100 * time.Millisecond} {
		if _, err := c.Lock(wait); !errors.Is(err, ErrTimeout) {
			t.Errorf("%s, waiting %v while %s holds: %v, want %v", c.Kind(), wait, holder, err, ErrTimeout)
		}
	}
}
