package redisstore

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// More losses than anybody reads are told by a renewal, and nobody is held up.
func TestAnAlarmNeverBlocks(t *testing.T) {
	a := NewAlarm()
	for range 1000 {
		a.Lose("id")
	}
	select {
	case <-a.Nudge():
	default:
		t.Error("losses that nobody was told of ask for no renewal")
	}
	if id := <-a.Lost(); id != "id" {
		t.Errorf("%q is lost, want id", id)
	}
}

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
