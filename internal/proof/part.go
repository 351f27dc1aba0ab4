//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// part is something that can be proved by itself.
type part struct {
	name    string // in the page
	of      string // the package, by its import path; empty: of none
	module  string // one beside this one, by its folder
	command string // runs it again
	run     []string
	env     []string       // NAME=value, besides those of this process
	rounds  int            // how often it runs, each time in a process of its own
	events  bool           // run prints what go test -json does
	cases   *regexp.Regexp // if it does not: what counts its cases in a line, or all until then, in a group named total
	patient bool           // a part that is not done in time is not judged: it had a slow machine
}

// limit is how long a part may take, fuzzTime how long a target is fuzzed.
const (
	limit    = 20 * time.Minute
	fuzzTime = 2 * time.Minute
)

// pkg is a package of the module.
type pkg struct {
	path, name string // github.com/interlock-go/interlock/redlock, ./redlock
	tests      bool
	bugs       bool     // seeded bugs
	fuzz       []string // targets
	shares     []share  // of its tests
}

// golist returns the packages that match the patterns.
func golist(ctx context.Context, patterns ...string) ([]pkg, error) {
	c := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{.ImportPath}}\t{{with .Module}}{{.Path}}{{end}}\t{{.Dir}}\t{{or .TestGoFiles .XTestGoFiles}}"}, patterns...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(patterns, " "), err)
	}
	var all []pkg
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		_, err := os.Stat(filepath.Join(f[2], "testdata", "bugs"))
		k := pkg{path: f[0], name: "." + strings.TrimPrefix(f[0], f[1]), tests: f[3] != "[]", bugs: err == nil}
		if k.shares, err = shares(filepath.Join(f[2], "testdata", "proof")); err != nil {
			return nil, err
		}
		if k.fuzz, err = targets(f[2]); err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// targets returns the fuzz targets in a folder.
func targets(dir string) (all []string, _ error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range fuzzTarget.FindAllSubmatch(text, -1) {
			all = append(all, string(m[1]))
		}
	}
	return all, nil
}

var (
	bugsConvicted = regexp.MustCompile(`^(\d+) of \d+ bugs convicted`)
	modelVariant  = regexp.MustCompile(`^\w+ .* (holds|ends|asserts|deadlocks)$`)
	packageOK     = regexp.MustCompile(`^ok\s`)
	inputs        = regexp.MustCompile(`^fuzz: elapsed: .*, execs: (?P<total>\d+)`)
)

// list returns all parts, in the order in which they run.
func list(ctx context.Context, bubbles string) ([]part, error) {
	packages, err := golist(ctx, "./...")
	if err != nil {
		return nil, err
	}
	bubbled, err := regexp.Compile(bubbles)
	if err != nil {
		return nil, err
	}
	var all, bugs []part
	for _, k := range packages {
		p := part{name: k.name, of: k.path, command: "make proof PKG=" + k.name, rounds: 1}
		if k.bugs {
			q := p
			q.name, q.run, q.cases = "seeded bugs of "+k.name, []string{".ci/mutants", "-pkg", k.name}, bugsConvicted
			bugs = append(bugs, q)
		}
		if k.tests {
			all = append(all, tests(k, p, bubbled.MatchString(k.path))...)
		}
		for _, target := range k.fuzz { // go test fuzzes one at a time, and leaves what fails in testdata/fuzz
			q := p
			q.name, q.cases = k.name+", "+target, inputs
			q.run = []string{"go", "test", "-run=^$", "-fuzz=^" + target + "$", "-fuzztime=" + fuzzTime.String(), "-fuzzminimizetime=1s", k.path}
			all = append(all, q)
		}
	}
	for _, module := range []string{"cmd/interlock-lab", "contrib/certmagic", "contrib/clientgo", "contrib/gocron", "contrib/interlockotel", "contrib/interlockprom", "deploy/test", "examples/coupons", "examples/recipes", "fence/sqlite", "web/browsertest"} {
		all = append(all, part{
			name: module, module: module, command: "make proof PKG=" + module, rounds: 1, events: true,
			run: []string{"go", "-C", module, "test", "-json", "-count=1", "-race", "-timeout=" + limit.String(), "./..."},
		})
		if _, err := os.Stat(filepath.Join(module, "testdata", "bugs")); err == nil {
			bugs = append(bugs, part{
				name: "seeded bugs of ./" + module, module: module, command: "make proof PKG=" + module, rounds: 1,
				run: []string{".ci/mutants", "-pkg", "./" + module}, cases: bugsConvicted,
			})
		}
	}
	all = append(all, bugs...)
	return append(all,
		part{name: "models", command: "make models", run: []string{".ci/models"}, rounds: 1, cases: modelVariant},
		// Every adapter of every rival compiles and works; no figure is judged.
		part{name: "bench", command: "go -C bench test -count=1 ./...", run: []string{"go", "-C", "bench", "test", "-count=1", "-timeout=15m", "./..."}, rounds: 1, cases: packageOK},
	), nil
}

// tests returns the parts that run the tests of a package: one for each share of them, and one for the rest.
func tests(k pkg, p part, bubble bool) (all []part) {
	rest := share{race: true, slow: true}
	var taken []string
	for _, s := range k.shares {
		taken = append(taken, s.tests)
	}
	if len(taken) > 0 {
		rest.flags = []string{"-skip=" + strings.Join(taken, "|")}
	}
	for _, s := range slices.Concat([]share{rest}, k.shares) {
		q := p
		q.events, q.env = true, s.env
		if s.name != "" {
			q.name += ", " + s.name
		}
		q.run = []string{"go", "test", "-json", "-count=1", "-timeout=" + limit.String()}
		if s.race {
			q.run = append(q.run, "-race")
		}
		q.run = append(append(q.run, s.flags...), k.path)
		if bubble {
			// What goes wrong in a bubble goes wrong rarely. What the race detector knows of goroutines that have ended adds up,
			// to a gigabyte a round, so each is a process.
			q.name, q.rounds = q.name+", 20 times", 20
			all = append(all, q)
			continue
		}
		all = append(all, q)
		if s.slow {
			// Every test beside three busy neighbours on each core; what is compiled before is not compiled beside them.
			q.name, q.run, q.patient = q.name+" on a slow machine", append([]string{"go", "run", "./internal/slow"}, q.run...), true
			all = append(all, q)
		}
	}
	return all
}
