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
	words, err := os.ReadFile(filepath.Join(root, "internal", "proof", "final"))
	if err != nil {
		t.Fatal(err)
	}
	final := regexp.MustCompile(strings.ReplaceAll(strings.TrimSpace(string(words)), "\n", "|"))
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
		"    simulation_test.go:62: lock 0: 2 is held of 1":                                                                   true,
		"    multi_test.go:151: 2 holders of a":                                                                               true,
		"    run.go:63: Law08_Expiry is broken: B was let in 200ms before the time of A was over":                             true,
		"    foreign_test.go:233: a writer got in beside the other reader":                                                    true,
		"    foreign_test.go:177: ours got in 1s before the dead holder's lease was over":                                     true,
		"    core_test.go:69: tokens 9, then 7":                                                                               true,
		"    trust_test.go:353: tokens 3 after 4":                                                                             true,
		"    sweep_test.go:70: a token did not grow":                                                                          true,
		"    foreign_test.go:115: 2 of ours hold as well":                                                                     true,
		"    member_test.go:132: after 3s the master that has lost its memory votes: token 9 while 8 is held":                 true,
		"    loss_test.go:204: tokens 3, 2, 1":                                                                                true,
		"    contend_test.go:146: 4 times two were inside":                                                                    true,
		"    failures_r_test.go:179: the next got in 3s before the holder was told":                                           true,
		"    stop_test.go:88: granted 1s before the time of the stopped holder was over":                                      true,
		"    cluster_test.go:95: handoff 3: the next is granted while another holds: {}":                                      true,
		"    crowd_test.go:138: 3 grants while another one held, 0 leases lost; want none of either":                          true,
		"    main_test.go:80: exclusion violated: 3 of 9 entries met another holder":                                          true,
		"    main_test.go:90: tokens went back: those of 2 of 9":                                                              true,
		"    guard_test.go:79: token 9 after 10 answered <nil>, want ErrStale":                                                true,
		"    races_test.go:209: 30 requests of 8 waiters, want one, or two where the server's clock is a moment behind":       false,
		"    kill_test.go:20: not held after 30s":                                                                             false,
		"    redlock_test.go:20: held false, <nil>, want held true":                                                           false,
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
