package mutant

import (
	"fmt"
	"strings"
)

// Swap is a bug in a text that the compiler does not read, such as a script.
type Swap struct {
	On    bool
	Texts []string // a piece of the text, and what stands there instead; and so on
}

// Seed returns the text with the bugs that are on. It panics if a bug's place is not in the text any more: its test would
// seem to find the bug, and would only have failed to start.
func Seed(text string, bugs []Swap) string {
	for _, b := range bugs {
		for i := 0; b.On && i < len(b.Texts); i += 2 {
			if !strings.Contains(text, b.Texts[i]) {
				panic(fmt.Sprintf("mutant: a bug cannot be seeded: nowhere in the text stands %q", b.Texts[i]))
			}
			text = strings.Replace(text, b.Texts[i], b.Texts[i+1], 1)
		}
	}
	return text
}
