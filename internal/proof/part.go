//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// part is something that can be proved by itself.
type part struct {
	name    string // in the page
	of      string // the package, by its import path; empty: of none
	command string // runs it again
	run     []string
	rounds  int            // how often it runs, each time in a process of its own
	events  bool           // run prints what go test -json does
	cases   *regexp.Regexp // if it does not: what counts its cases in a line
	patient bool           // a part that is not done in time is not judged: it had a slow machine
}

// limit is how long a part may take.
const limit = 20 * time.Minute

// pkg is a package of the module.
type pkg struct {
	path, name string // github.com/interlock-go/interlock/redlock, ./redlock
	tests      bool
	bugs       bool // seeded bugs
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
		all = append(all, pkg{path: f[0], name: "." + strings.TrimPrefix(f[0], f[1]), tests: f[3] != "[]", bugs: err == nil})
	}
	return all, nil
}

var (
	bugsConvicted = regexp.MustCompile(`^(\d+) of \d+ bugs convicted`)
	modelVariant  = regexp.MustCompile(`^\w+ .* (holds|ends|asserts|deadlocks)$`)
	packageOK     = regexp.MustCompile(`^ok\s`)
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
	test := func(flags ...string) []string {
		return append([]string{"go", "test", "-json", "-race", "-count=1", "-timeout=" + limit.String()}, flags...)
	}
	var all, bugs []part
	for _, k := range packages {
		p := part{name: k.name, of: k.path, command: "make proof PKG=" + k.name, rounds: 1}
		if k.bugs {
			q := p
			q.name, q.run, q.cases = "seeded bugs of "+k.name, []string{".ci/mutants", "-pkg", k.name}, bugsConvicted
			bugs = append(bugs, q)
		}
		p.events = true
		switch {
		case !k.tests:
		case bubbled.MatchString(k.path):
			// What goes wrong in a bubble goes wrong rarely. What the race detector knows of goroutines that have ended adds up,
			// to a gigabyte a round, so each is a process.
			p.name, p.run, p.rounds = k.name+", 20 times", test(k.path), 20
			all = append(all, p)
		default:
			p.run = test(k.path)
			all = append(all, p)
			// Every test beside three busy neighbours on each core; what is compiled before is not compiled beside them.
			p.name, p.run, p.patient = k.name+" on a slow machine", append([]string{"go", "run", "./internal/slow"}, test(k.path)...), true
			all = append(all, p)
		}
	}
	all = append(all, bugs...)
	return append(all,
		part{name: "models", command: "make models", run: []string{".ci/models"}, rounds: 1, cases: modelVariant},
		// Every adapter of every rival compiles and works; no figure is judged.
		part{name: "bench", command: "go -C bench test -count=1 ./...", run: []string{"go", "-C", "bench", "test", "-count=1", "-timeout=15m", "./..."}, rounds: 1, cases: packageOK},
	), nil
}
