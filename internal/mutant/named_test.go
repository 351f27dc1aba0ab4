package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var testFunc = regexp.MustCompile(`(?m)^func (Test\w*)\(t \*testing\.T\)`)

// Tests that a row names beside those of its bugs are run by nobody here, so that one which is renamed would be missed by
// nobody. Of a pattern with subtests the first part is looked for.
func TestRows_NameTestsThatExist(t *testing.T) {
	parts, err := readParts(module, "internal/mutant/rows")
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) == 0 {
		t.Fatal("there are no rows")
	}
	known := map[string]string{} // the tests of a package, a line each
	for _, p := range parts {
		for _, r := range p.rows {
			for _, named := range r.tests {
				if known[named.pkg] == "" {
					known[named.pkg] = testsOf(t, filepath.Join(module, named.pkg))
				}
				first, _, _ := strings.Cut(named.test, "/")
				pattern, err := regexp.Compile("(?m)^.*" + strings.Trim(first, "^$") + ".*$")
				if err != nil || !pattern.MatchString(known[named.pkg]) {
					t.Errorf("%s: row %s names %s, which is no test there", r.at, r.id, named)
				}
			}
		}
	}
}

// So would one that a bug names, until the proof hunts it.
func TestBugs_NameTestsThatExist(t *testing.T) {
	bugs, err := readBugs(module)
	if err != nil {
		t.Fatal(err)
	}
	if len(bugs) == 0 {
		t.Fatal("there are no bugs")
	}
	known := map[string]string{}
	for _, b := range bugs {
		if known[b.pkg] == "" {
			known[b.pkg] = testsOf(t, filepath.Join(module, b.pkg))
		}
		first, _, _ := strings.Cut(b.test, "/")
		pattern, err := regexp.Compile("(?m)^.*" + strings.Trim(first, "^$") + ".*$")
		if err != nil || !pattern.MatchString(known[b.pkg]) {
			t.Errorf("%s: bug %s names %s, which is no test of %s", b.at, b.id, b.test, b.pkg)
		}
	}
}

// testsOf lists the test functions of a folder.
func testsOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			names.Write(m[1])
			names.WriteByte('\n')
		}
	}
	return names.String()
}
