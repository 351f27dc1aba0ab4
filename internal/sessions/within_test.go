package sessions

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A command has the time that it is given, and no more than its caller has.
func TestWithinIsNotBeyondTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		for d, want := range map[time.Duration]time.Duration{time.Second: time.Second, 3 * time.Second: 2 * time.Second} {
			if at, ends := Within(ctx, d).Deadline(); !ends || time.Until(at) != want {
				t.Errorf("within %v of a caller who has 2s: %v, %v; want %v", d, time.Until(at), ends, want)
			}
		}
		if at, ends := Within(t.Context(), time.Second).Deadline(); !ends || time.Until(at) != time.Second {
			t.Errorf("within a second of a caller who has all time: %v, %v", time.Until(at), ends)
		}
	})
}
