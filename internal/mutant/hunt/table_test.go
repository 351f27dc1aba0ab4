package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadTableRefuses(t *testing.T) {
	for what, text := range map[string]string{
		"too few columns":      "A1\tlock\tTestAdd",
		"too many columns":     "A1\tlock\tTestAdd\twhat\tmore",
		"an empty column":      "A1\t\tTestAdd\twhat",
		"a bad expression":     "A1\tlock\tTest(\twhat",
		"a reason with a test": "A1\t-\tTestAdd\twhat",
		"a bug without a test": "A1\tlock\t-\twhat",
	} {
		file := filepath.Join(t.TempDir(), "mutants.txt")
		if err := os.WriteFile(file, []byte("# comment\n\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readTable(file); err == nil || !strings.Contains(err.Error(), ":3") {
			t.Errorf("%s: %v, want an error at line 3", what, err)
		}
	}
}

func TestCompareNamesEveryDisagreement(t *testing.T) {
	bugs := []bug{
		{id: "A1", pkg: "lock", test: "TestA", line: 1},
		{id: "A1", pkg: "lock", test: "TestB", line: 2},
		{id: "A2", pkg: "lock", test: "TestA", line: 3},
		{id: "A3", pkg: "-", test: "-", line: 4},
	}
	seeded := map[string][]string{"A1": {"a.go:1"}, "A3": {"a.go:3"}, "A4": {"a.go:4"}}
	want := []string{
		"line 2: A1 is already on line 1",
		"line 3: A2 is nowhere in the source",
		"line 4: A3 has no test here, but is seeded at a.go:3",
		"a.go:4: A4 is not in the table",
	}
	if got := compare(bugs, seeded); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestMissingRows(t *testing.T) {
	var bugs []bug
	for _, c := range catalogue {
		for n := range c.rows {
			bugs = append(bugs, bug{id: fmt.Sprint(c.letter, n+1)})
		}
	}
	if got := missingRows(bugs); len(got) != 0 {
		t.Errorf("a whole table misses %q", got)
	}
	bugs[2].id = "A3b" // a row with letters counts
	bugs[3].id = "A44" // another row does not
	if got := missingRows(bugs); len(got) != 1 || !strings.HasPrefix(got[0], "A4 ") {
		t.Errorf("missing %q, want A4 alone", got)
	}
}
