//go:build linux

package cli_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

// The page of the manual has every command and every flag that the help has, and man reads it
// without a complaint.
func TestManualPage(t *testing.T) {
	t.Parallel()
	interlock := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("interlock", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("interlock %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	c := exec.Command("groff", "-man", "-Tutf8", "-Kutf8", "-ww", "-P-cbou")
	c.Stdin = strings.NewReader(interlock("man"))
	var complaints strings.Builder
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil || complaints.Len() > 0 {
		t.Fatalf("groff: %v\n%s", err, &complaints)
	}
	for _, row := range strings.Split(string(out), "\n") {
		if n := text.StringWidthWithoutEscSequences(row); n > 80 {
			t.Errorf("the page has %d columns: %s", n, row)
		}
	}
	// What was broken at a dash or moved to the next line is one again.
	shown := strings.Join(strings.Fields(string(out)), " ")

	flag := regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z-]+)`)
	command := regexp.MustCompile(`(?m)^  ([a-z]+)  `)
	_, commands, _ := strings.Cut(interlock("--help"), "\nCommands:\n")
	seen := 0
	for _, m := range command.FindAllStringSubmatch(commands, -1) {
		if !strings.Contains(shown, "interlock "+m[1]+" ") {
			t.Errorf("the page has no command %s", m[1])
		}
		for _, f := range flag.FindAllStringSubmatch(interlock(m[1], "--help"), -1) {
			seen++
			if !strings.Contains(shown, f[1]) {
				t.Errorf("the page has no flag %s of %s", f[1], m[1])
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d flags were found in the help: the test reads it wrongly", seen)
	}
	for _, want := range []string{"NAME interlock - run a command under a lock", "EXIT STATUS 0 done.", "65 what stands in the store", "COLUMNS NAME the lock. STATE holds", "redis://HOST:6379/0 Redis, Valkey", "INTERLOCK_HELD Set for", "interlock run backup -- /usr/local/bin/backup"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page does not have %q:\n%s", want, out)
		}
	}
}
