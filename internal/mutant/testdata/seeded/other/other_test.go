package other

import "testing"

func TestTwice(t *testing.T) {
	if got := Twice(3); got != 6 {
		t.Errorf("Twice(3) = %d, want 6", got)
	}
}
