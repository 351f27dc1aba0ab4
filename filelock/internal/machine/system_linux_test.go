package machine

import "testing"

func TestClock_TimeNamespaceIsRefused(t *testing.T) {
	for text, ok := range map[string]bool{
		"":                                  true,
		"monotonic 0 0\nboottime 0 0\n":     true,
		"monotonic 5 0\nboottime 0 0\n":     true,
		"monotonic 0 0\nboottime 86400 0\n": false,
		"monotonic 0 0\nboottime -1 5\n":    false,
		"monotonic 0 0\n7 0 1\n":            false,
	} {
		if err := checkOffsets(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
