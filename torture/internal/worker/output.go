//go:build linux || darwin

package worker

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// output keeps the beginning of what a process says on standard error, where the reason is.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const maxOutput = 1 << 20 // stacks of all goroutines are long

// Write implements io.Writer.
func (t *output) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := maxOutput - t.text.Len(); room > 0 {
		t.text.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// String returns what was said.
func (t *output) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.text.String())
}

var (
	arguments = regexp.MustCompile(`\((0x|\{|\.\.\.).*\)$`)
	offset    = regexp.MustCompile(` \+0x[0-9a-f]+.*$`)
)

// ownStacks returns of the stacks that a Go program prints when it is told to quit those with code
// of this module, the functions and lines of that alone, and each of them once.
func ownStacks(text string) string {
	var out []string
	seen := map[string]bool{}
	for _, stack := range strings.Split(text, "\n\n") {
		lines := strings.Split(stack, "\n")
		var own []string
		for i := 0; i+1 < len(lines); i++ {
			if strings.HasPrefix(lines[i], module) {
				own = append(own, "  "+strings.TrimPrefix(arguments.ReplaceAllString(lines[i], ""), module)+
					" "+offset.ReplaceAllString(strings.TrimSpace(lines[i+1]), ""))
			}
		}
		what := strings.Join(own, "\n")
		if len(own) == 0 || seen[what] {
			continue
		}
		seen[what] = true
		out = append(out, lines[0]+"\n"+what)
	}
	return strings.Join(out, "\n")
}

const module = "github.com/interlock-go/interlock/"
