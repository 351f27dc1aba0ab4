package cli_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Each help fits into 80 columns, and says what the columns are where there are some.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	help := func(args ...string) string {
		t.Helper()
		c := exec.Command("interlock", append(args, "--help")...)
		c.Env = append(c.Environ(), "COLUMNS=")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("interlock %q --help: %v\n%s", args, err, out)
		}
		for _, row := range strings.Split(string(out), "\n") {
			if n := text.StringWidthWithoutEscSequences(row); n > 80 {
				t.Errorf("interlock %q --help has %d columns: %s", args, n, row)
			}
		}
		return string(out)
	}
	whole := help()
	_, commands, _ := strings.Cut(whole, "\nCommands:\n")
	found := regexp.MustCompile(`(?m)^  ([a-z]+)  `).FindAllStringSubmatch(commands, -1)
	if len(found) < 10 {
		t.Fatalf("%d commands were found in\n%s", len(found), whole)
	}
	for _, m := range found {
		text := help(m[1])
		switch m[1] {
		case "ls", "show", "watch":
			for _, want := range []string{"OWNER   program/user@host:pid", "TOKEN   the fencing token", "ID      what interlock break takes"} {
				if !strings.Contains(text, want) {
					t.Errorf("help of %s does not have %q:\n%s", m[1], want, text)
				}
			}
		}
		if !strings.Contains(text, "--store=URL") || !strings.Contains(strings.Join(strings.Fields(text), " "), "interlock --help has all kinds") {
			t.Errorf("help of %s does not say what a store is:\n%s", m[1], text)
		}
	}
	for _, want := range []string{"file:DIRECTORY", "zk://HOST,HOST,HOST/PATH", "?name=value&name=value", "/docs/backends"} {
		if !strings.Contains(whole, want) {
			t.Errorf("interlock --help does not have %q", want)
		}
	}
}
