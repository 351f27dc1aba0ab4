package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page is what the command writes today.
func TestPage_IsCurrent(t *testing.T) {
	parts, err := readParts(module, "internal/mutant/rows")
	if err != nil {
		t.Fatal(err)
	}
	bugs := bugsOf(t, module)
	if err := complete(parts, bugs); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := writePage(&want, parts, bugs); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(module, "docs", "failures.md"))
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("docs/failures.md differs from what the rows and bugs say now (%v): run make failures", err)
	}
}

func TestComplete_RefusesGaps(t *testing.T) {
	const wrong = "wrong It subtracts.\nright It adds.\n"
	one := []*bug{{id: "A1", row: "A1", at: "b:1"}}
	for name, c := range map[string]struct {
		rows string
		bugs []*bug
		want string // "" for none
	}{
		"a bug":                {"part A\ntitle T\nrow A1\n" + wrong, one, ""},
		"a reason":             {"part A\ntitle T\nrow A1\n" + wrong + "none Nobody can.\n", nil, ""},
		"neither":              {"part A\ntitle T\nrow A1\n" + wrong, nil, "a.rows:3: row A1 has neither a bug nor a line \"none\""},
		"both":                 {"part A\ntitle T\nrow A1\n" + wrong + "none Nobody can.\n", one, "a.rows:3: row A1 has a bug and a line \"none\""},
		"a bug of no row":      {"part A\ntitle T\nrow A2\n" + wrong + "none Nobody can.\n", one, "b:1: bug A1: the catalogue has no row A1"},
		"twice":                {"part A\ntitle T\nrow A1\n" + wrong + "\nrow A1\n" + wrong, one, "a.rows:7: row A1 stands at "},
		"no part":              {"row A1\n" + wrong, one, "a.rows:1: row A1 stands in no part of its letter"},
		"nothing goes wrong":   {"part A\ntitle T\nrow A1\nright It adds.\n", one, "a.rows:3: row A1: want a line \"wrong\""},
		"a test of no package": {"part A\ntitle T\nrow A1\n" + wrong + "test TestAdd\n", one, "a.rows:3: row A1: test \"TestAdd\": want a package and a pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.rows"), []byte(c.rows), 0o600); err != nil {
				t.Fatal(err)
			}
			parts, err := readParts(dir, ".")
			if err == nil {
				err = complete(parts, c.bugs)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
