package fence_test

import (
	"testing"

	"github.com/interlock-go/interlock/fence"
)

// Three holders increment a number under a lock that is worth nothing: each may be paused anywhere while the next
// takes it. Every interleaving is run, as docs/models/claim.pml lets a model checker do. No acknowledged increment may
// be lost with claims; and with fenced writes alone, as with none, one must be, or the test shows nothing.
func TestModel_ThreeHolders(t *testing.T) {
	for _, tt := range []struct {
		name           string
		claims, fenced bool
		loses          bool
	}{
		{"claims and fenced writes", true, true, false},
		{"fenced writes alone", false, true, true},
		{"nothing", false, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runs, lost, refused := 0, 0, 0
			var order []int
			var explore func(left [3]int)
			explore = func(left [3]int) {
				done := true
				for c := range left {
					if left[c] > 0 {
						done = false
						next := left
						next[c]--
						order = append(order, c)
						explore(next)
						order = order[:len(order)-1]
					}
				}
				if done {
					value, acked := run(order, tt.claims, tt.fenced)
					runs++
					if value != acked {
						lost++
					}
					if acked < 3 {
						refused++
					}
				}
			}
			explore([3]int{4, 4, 4})
			t.Logf("%d interleavings: %d lose an update, %d refuse somebody", runs, lost, refused)
			if runs != 34650 {
				t.Errorf("%d interleavings, want 12!/(4!)³ = 34650", runs)
			}
			if (lost > 0) != tt.loses {
				t.Errorf("%d interleavings lose an update: want some: %v", lost, tt.loses)
			}
			if tt.fenced && refused == 0 {
				t.Error("nobody was ever refused")
			}
		})
	}
}

// run lets three holders go through lock, claim, read and write in the given order and returns the number they
// incremented and how many of them were told that they had.
func run(order []int, claims, fenced bool) (value, acked int) {
	type holder struct {
		step, seen int
		token      uint64
		refused    bool
	}
	var holders [3]holder
	var tokens uint64
	var mark fence.Mark
	for _, c := range order {
		h := &holders[c]
		h.step++
		if h.refused {
			continue
		}
		switch h.step {
		case 1:
			tokens++
			h.token = tokens
		case 2:
			h.refused = claims && mark.Claim(h.token) != nil
		case 3:
			h.seen = value
		case 4:
			write := func() error { value = h.seen + 1; acked++; return nil }
			if fenced {
				_ = mark.Do(h.token, write)
			} else {
				_ = write()
			}
		}
	}
	return value, acked
}
