package main

import (
	"strings"
	"testing"
	"time"
)

// One hunt over a module in which every kind of end is known beforehand.
func TestHuntTellsConvictionFromEscape(t *testing.T) {
	seeded := "testdata/seeded"
	table, err := readTable(seeded + "/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	bugs := append(table,
		bug{id: "no test", pkg: "lock", test: "TestNothing"},
		bug{id: "fails clean", pkg: "lock", test: "TestFailsAlways"},
		bug{id: "no package", pkg: "nowhere", test: "TestAdd"},
		bug{id: "a reason", pkg: "-", test: "-"},
	)
	var out strings.Builder
	h := hunter{root: seeded, limit: 2 * time.Second, parallel: 2, out: &out}
	escaped, err := h.run(t.Context(), bugs)
	if err != nil {
		t.Fatal(err)
	}
	if escaped != 5 {
		t.Errorf("%d bugs escaped, want 5", escaped)
	}
	for id, want := range map[string]string{
		"A1":          "(fails)",
		"A2":          "the test passes with the bug",
		"A3":          "(hangs)",
		"A4":          "(fails)", // a panic in a test is reported as its failure
		"A5":          "ended without a failed test",
		"no test":     `no test matches "TestNothing"`,
		"fails clean": "the test fails without the bug",
		"no package":  "nowhere",
	} {
		if line := lineOf(out.String(), id); !strings.Contains(line, want) {
			t.Errorf("%s: %q does not contain %q", id, line, want)
		}
	}
	if line := lineOf(out.String(), "a reason"); line != "" {
		t.Errorf("a line without a test was hunted: %q", line)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func lineOf(out, id string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "convicted ") && strings.Contains(line, " "+id+" ") {
			return line
		}
	}
	return ""
}

func TestHuntFailsAsACommand(t *testing.T) {
	args := []string{"-root", "testdata/seeded", "-table", "mutants.txt"}
	if err := hunt(t.Context(), append(args, "-list")); err != nil {
		t.Errorf("a table that agrees with its source: %v", err)
	}
	err := hunt(t.Context(), append(args, "-list", "-complete"))
	if err == nil || !strings.Contains(err.Error(), "78 faults") { // of the 83 rows, five are there
		t.Errorf("a table without most rows: %v", err)
	}
	if err := hunt(t.Context(), append(args, "-id", "A2", "-race=false")); err == nil {
		t.Error("a bug that escapes: no error")
	}
	if err := hunt(t.Context(), append(args, "-id", "Z1")); err == nil {
		t.Error("a bug that is not in the table: no error")
	}
}
