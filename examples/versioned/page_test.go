package versioned_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/writing-a-driver.md says how long the driver is, without comments and without the table of the tests.
func TestThePageSaysHowLongTheDriverIs(t *testing.T) {
	lines := 0
	for _, file := range []string{"driver.go", "session.go"} {
		for line := range strings.SplitSeq(read(t, file), "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
	}
	said := fmt.Sprintf("about %d lines of code", (lines+5)/10*10)
	if !strings.Contains(read(t, "../../docs/writing-a-driver.md"), said) {
		t.Errorf("the driver has %d lines: the page should say %q", lines, said)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
