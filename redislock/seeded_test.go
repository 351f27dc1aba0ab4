package redislock

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/mutant"
)

// Every bug can still be seeded: the script has what the bug takes the place of. Otherwise its test would seem to find the
// bug, and would only have failed to start.
func TestScriptsHaveWhatBugsReplace(t *testing.T) {
	for _, script := range []struct {
		name, text string
		bugs       []mutant.Swap
	}{
		{"take", takeText, takeBugs},
		{"line", lineText, lineBugs},
		{"hold", holdText, holdBugs},
	} {
		for _, b := range script.bugs {
			for i := 0; i < len(b.Texts); i += 2 {
				if !strings.Contains(script.text, b.Texts[i]) {
					t.Errorf("the script %s does not have %q", script.name, b.Texts[i])
				}
			}
		}
	}
}
