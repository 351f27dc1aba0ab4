package redisstore

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoHoldsListensAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listened atomic.Int64
		h := NewHolding(func() { listened.Add(1) })
		defer h.Stop()
		for range 5 {
			h.Began()
		}
		time.Sleep(quiet - time.Millisecond)
		synctest.Wait()
		if listened.Load() != 0 {
			t.Error("it listens at once")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if listened.Load() != 1 {
			t.Errorf("it listens %d times for what began together, want once", listened.Load())
		}
		h.Began()
		time.Sleep(quiet)
		synctest.Wait()
		if listened.Load() != 2 {
			t.Errorf("it listens %d times, want once more for what began later", listened.Load())
		}
	})
}
