package redisconn

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A client that still has a context of ours when the call is over, as to tell its own goroutines,
// hears that it is over and why. Without a reason package context panics, and with it the program.
func TestDeadlineSaysWhyItEnded(t *testing.T) {
	for _, abandons := range []bool{false, true} {
		parent, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		d := untilDeadline(parent)
		d.abandons = abandons
		child, cancelChild := context.WithCancel(d)
		defer cancelChild()
		if err := d.Err(); err != nil {
			t.Errorf("abandons %v: over before its end: %v", abandons, err)
		}
		d.finish()
		select {
		case <-child.Done():
		case <-time.After(10 * time.Second):
			t.Fatalf("abandons %v: a child does not hear that the call is over", abandons)
		}
		if err := d.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("abandons %v: ended for %v, want %v", abandons, err, context.Canceled)
		}
	}
}
