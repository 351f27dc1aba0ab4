package repo

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A test that failed is tried once more, but not where it has seen what no busy machine explains. Such failures are known by
// their words.
func TestFinalFailuresAreKnownByTheirWords(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, ".ci", "short"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(script), "readonly final='")
	words, _, ok := strings.Cut(rest, "'")
	if !ok {
		t.Fatal(".ci/short has no words by which a failure is final")
	}
	final := regexp.MustCompile(strings.ReplaceAll(words, "\n", "|"))
	for line, want := range map[string]bool{
		"WARNING: DATA RACE":                                     true,
		"panic: test timed out after 10m0s":                      true,
		"fatal error: all goroutines are asleep - deadlock!":     true,
		"    core_test.go:61: two holders":                       true,
		"    kill_test.go:27: two hold":                          true,
		"    stage_test.go:47: 2 hold at once":                   true,
		"    clocks_test.go:66: token 12 is granted after 13":    true,
		"    crowd_test.go:64: p1 was granted token 12 after 13": true,
		"    crowd_test.go:85: token 12 was granted twice":       true,
		"    contend_test.go:149: 3 tokens did not grow":         true,
		"    run.go:63: Law04_OnceHeld is broken: after 2s the next in line holds although A was neither released nor broken": true,
		"    run.go:63: Law01_Rule is broken: 2 claims are held together that no order allows, c1 among them":                 true,
		"    run_test.go:70: torture: the locks of this store did not hold":                                                   true,
		"    run.go:63: Law10_Quiet is broken: a free claim cost 3 calls of the store, the budget is 1":                       false,
		"    ends_test.go:40: <nil>; want an error that leaves the outcome open":                                              false,
		"    foreign_test.go:75: redsync holds: context deadline exceeded":                                                    false,
		"    time_test.go:9: not after 30s: the child is dead":                                                                false,
	} {
		if got := final.MatchString(line); got != want {
			t.Errorf("%q: final %t, want %t", line, got, want)
		}
	}
}

// The proof by night has a job for each package, or a few of them: a package that comes later is not forgotten there.
func TestProofByNightHasEveryPackage(t *testing.T) {
	workflow, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "proof.yml"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(workflow), "packages: [")
	jobs, _, ok := strings.Cut(rest, "]")
	if !ok {
		t.Fatal("proof.yml has no list of packages")
	}
	have := map[string]bool{}
	for _, p := range list(t, strings.Fields(strings.ReplaceAll(jobs, ",", " "))...) {
		have[p.ImportPath] = true
	}
	for _, p := range list(t, "./...") {
		if len(p.TestImports)+len(p.XTestImports) > 0 && !have[p.ImportPath] {
			t.Errorf("no job of proof.yml has %s", p.ImportPath)
		}
	}
}
