package sessions

import (
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// More losses than anybody reads are told by a renewal, and nobody is held up.
func TestAnAlarmNeverBlocks(t *testing.T) {
	a, loss := NewAlarm(), driver.Loss{ID: "id", Err: driver.ErrBroken}
	for range 1000 {
		a.Lose(loss)
	}
	select {
	case <-a.Nudge():
	default:
		t.Error("losses that nobody was told of ask for no renewal")
	}
	if l := <-a.Lost(); l != loss {
		t.Errorf("%v is lost, want %v", l, loss)
	}
}
