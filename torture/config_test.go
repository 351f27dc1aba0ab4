//go:build linux || darwin

package torture

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Storms with the default grace have a tenth of the TTL that the store asks for, if it asks for
// more than the usual one.
func TestGraceOfStorms(t *testing.T) {
	for tenth, want := range map[bool]time.Duration{false: time.Second, true: 300 * time.Millisecond} {
		c := Config{tenth: tenth}.fit(driver.Traits{MinTTL: 3 * time.Second})
		if c.TTL != 3*time.Second || c.Grace != want {
			t.Errorf("a tenth: %v; TTL %v, grace %v, want 3s and %v", tenth, c.TTL, c.Grace, want)
		}
	}
}

// What several masters say of when they granted is the time at which that was asked for, and nobody
// is convicted by it.
func TestMastersAreNotAskedSinceWhen(t *testing.T) {
	for store, want := range map[string]bool{"redlock://a,b,c": false, "redis://a": true, "postgres://a/b": true, "file:///a": true} {
		if got := dated(store); got != want {
			t.Errorf("dated(%q) = %v, want %v", store, got, want)
		}
	}
}
