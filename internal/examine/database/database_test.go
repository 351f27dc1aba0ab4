package database

import (
	"strings"
	"testing"
)

// Only the versions that have the fault are told of it.
func TestFaulty(t *testing.T) {
	for number, want := range map[int64]string{130023: "", 140000: "before 14.4", 140003: "before 14.4", 140004: "", 150018: "", 0: ""} {
		if got := faulty(number); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%d: %q, want %q", number, got, want)
		}
	}
}
