package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "../.."

// What users build has neither a switch nor a line of a bug in it. That the test would see one is shown by a build with
// the bugs of a package, which has Go and Lua: with those of the core everything would be compiled anew.
func TestBuild_HasNothingOfBugs(t *testing.T) {
	bugs := bugsOf(t, module)
	dir := t.TempDir()
	some := slices.DeleteFunc(slices.Clone(bugs), func(b *bug) bool { return b.pkg != "redislock" })
	overlay, err := seed(module, dir, some)
	if err != nil {
		t.Fatal(err)
	}
	plain, changed := traces(t, bugs, "-o", filepath.Join(dir, "plain")), traces(t, bugs, "-overlay", overlay, "-o", filepath.Join(dir, "changed"))
	if len(plain) > 0 {
		t.Errorf("interlock has in it %q", plain)
	}
	if len(changed) < 10 {
		t.Errorf("built with the bugs of a package, interlock has in it %q only: this test would not see them", changed)
	}
}

// traces builds the command and returns what it has of bugs: names of symbols, and lines of embedded texts.
func traces(t *testing.T, bugs []*bug, flags ...string) (found []string) {
	t.Helper()
	file := flags[len(flags)-1]
	build := exec.Command("go", append(append([]string{"build"}, flags...), "./cmd/interlock")...)
	build.Dir = module
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	words := []string{variable, "seededBug", "seededText", "internal/mutant"}
	scripts := map[string][]byte{} // as they are
	var lines []string             // what bugs make of them
	for _, b := range bugs {
		for _, e := range b.edits {
			if strings.HasSuffix(e.file, ".go") {
				continue
			}
			file := filepath.Join(module, b.pkg, e.file)
			if scripts[file], err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, e.new...)
		}
	}
	for _, line := range lines {
		line = strings.TrimSpace(line)
		in := func(text []byte) bool { return bytes.Contains(text, []byte(line)) }
		if !slices.ContainsFunc(slices.Collect(maps.Values(scripts)), in) {
			words = append(words, line)
		}
	}
	for _, w := range words {
		if bytes.Contains(binary, []byte(w)) {
			found = append(found, w)
		}
	}
	return found
}
