package cli

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// A report fits into 80 columns, tells a terminal nothing that a server said, and marks a level by
// a sign in a colour; elsewhere by a word.
func TestDoctor_Report(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("maxmemory-policy is volatile-lru and a full server throws locks away ", 3)
	r := &interlock.Report{Guarantee: "It does not keep the promises of its page: eviction. " + long, Findings: []interlock.Finding{
		{Title: "latency", Seen: "0.3 ms"},
		{Code: "R3", Title: "eviction", Level: driver.LevelBad, Server: "10.0.0.5:6379", Seen: long, Why: long, Mend: "CONFIG SET maxmemory-policy noeviction"},
		{Code: "R5", Title: "persistence\x1b[2J", Level: driver.LevelWarn, Seen: "appendonly is off\x1b[2J", Why: "x", Mend: "y"},
		{Title: "rights", Level: driver.LevelSkip, Seen: "ACL WHOAMI is not allowed"},
	}}
	for _, c := range []struct {
		t     terminal
		marks []string
	}{
		{terminal{}, []string{" ok   latency", " bad  eviction", " warn persistence", " skip rights"}},
		{terminal{columns: 80}, []string{" ✓ latency", " ✗ eviction", " ! persistence", " - rights"}},
		{terminal{columns: 80, colours: true}, []string{text.FgGreen.Sprint("✓"), text.FgRed.Sprint("✗"), text.FgYellow.Sprint("!"), text.Faint.Sprint("-")}},
	} {
		var out strings.Builder
		c.t.out = &out
		printReport(c.t, "redis://10.0.0.5:6379", r, true)
		for _, want := range append(c.marks, "R3: maxmemory-policy", "10.0.0.5:6379: ", "mend  CONFIG SET maxmemory-policy noeviction\n", "As it stands: It does not keep", "\n1 bad, 1 warning, 1 check was skipped.\n") {
			if !strings.Contains(out.String(), want) {
				t.Errorf("of %d columns: want %q in\n%s", c.t.columns, want, out.String())
			}
		}
		for line := range strings.Lines(out.String()) {
			if width(strings.TrimSuffix(line, "\n")) > 80 || strings.Contains(line, "\x1b[2J") {
				t.Errorf("of %d columns: %q", c.t.columns, line)
			}
		}
		if strings.Contains(out.String(), "R9: ") {
			t.Errorf("a code where nothing is wrong:\n%s", out.String())
		}
	}
}

// All is well only where all was looked at.
func TestDoctor_BrokenOff(t *testing.T) {
	t.Parallel()
	r := &interlock.Report{Guarantee: "not known", Findings: []interlock.Finding{{Title: "latency", Seen: "0.3 ms"}}}
	for _, whole := range []bool{true, false} {
		var out strings.Builder
		printReport(terminal{out: &out}, "redis://10.0.0.5:6379", r, whole)
		if strings.Contains(out.String(), "All is well.") != whole {
			t.Errorf("whole: %v, and it says\n%s", whole, out.String())
		}
	}
}
