package sessions

import "testing"

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
