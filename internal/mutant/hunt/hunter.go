package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A hunter runs the tests. Each package's test binary is built once, with every bug of the package in it and none turned
// on; each test then runs twice, without and with its bug.
type hunter struct {
	root     string
	limit    time.Duration
	race     bool
	parallel int
	out      io.Writer

	temp  string
	built map[string]binary
	mu    sync.Mutex // guards clean and runs
	clean map[string]func() (time.Duration, error)
	runs  int
}

// A binary is the tests of one package and the folder that they expect to run in, or why there is none.
type binary struct {
	file, dir string
	err       error
}

// patience is how much longer than without its bug a test may take before it counts as one that hangs.
const patience = 20 * time.Second

// An outcome is what became of one bug.
type outcome struct {
	bug
	err  error  // nil: convicted
	how  string // what convicted it
	took time.Duration
	tail string // of the output, when not convicted
}

// run hunts all bugs and returns how many escaped. An error means that the hunt itself failed.
func (h *hunter) run(ctx context.Context, bugs []bug) (escaped int, err error) {
	bugs = slices.DeleteFunc(slices.Clone(bugs), bug.reasonOnly)
	if h.temp, err = os.MkdirTemp("", "hunt"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(h.temp)
	h.clean = map[string]func() (time.Duration, error){}
	h.build(ctx, bugs)

	start := time.Now()
	jobs := make(chan bug)
	results := make(chan outcome)
	var workers sync.WaitGroup
	for range h.parallel {
		workers.Go(func() {
			for b := range jobs {
				results <- h.try(ctx, b)
			}
		})
	}
	go func() {
		for _, b := range bugs {
			jobs <- b
		}
		close(jobs)
		workers.Wait()
		close(results)
	}()
	for v := range results {
		if v.err != nil {
			escaped++
		}
		h.report(v)
	}
	fmt.Fprintf(h.out, "%d of %d bugs convicted in %.1fs\n", len(bugs)-escaped, len(bugs), time.Since(start).Seconds())
	return escaped, ctx.Err()
}

func (h *hunter) report(v outcome) {
	if v.err == nil {
		fmt.Fprintf(h.out, "convicted      %-8s %5.1fs  %s %s (%s)\n", v.id, v.took.Seconds(), v.pkg, v.test, v.how)
		return
	}
	fmt.Fprintf(h.out, "NOT convicted  %-8s %5.1fs  %s %s: %v\n    the bug: %s\n", v.id, v.took.Seconds(), v.pkg, v.test, v.err, v.what)
	for line := range strings.Lines(v.tail) {
		fmt.Fprintf(h.out, "    | %s", line)
	}
}

// build makes the test binary of each package that the bugs name.
func (h *hunter) build(ctx context.Context, bugs []bug) {
	h.built = map[string]binary{}
	for _, b := range bugs {
		if _, ok := h.built[b.pkg]; ok {
			continue
		}
		start := time.Now()
		bin := binary{file: filepath.Join(h.temp, fmt.Sprintf("%d.test", len(h.built)))}
		bin.dir, bin.err = h.compile(ctx, b.pkg, bin.file)
		h.built[b.pkg] = bin
		fmt.Fprintf(h.out, "built %s in %.1fs\n", b.pkg, time.Since(start).Seconds())
	}
}

// compile writes the tests of pkg to file and returns the folder of the package.
func (h *hunter) compile(ctx context.Context, pkg, file string) (dir string, _ error) {
	dir, err := h.output(ctx, "go", "list", "-f", "{{.Dir}}", pattern(pkg))
	if err != nil {
		return "", err
	}
	args := []string{"test", "-c", "-tags", "mutant", "-o", file}
	if h.race {
		args = append(args, "-race")
	}
	if _, err := h.output(ctx, "go", append(args, pattern(pkg))...); err != nil {
		return "", err
	}
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("package %s has no tests", pkg)
	}
	return strings.TrimSpace(dir), nil
}

// pattern lets the table name a package by its folder below the root or by its import path.
func pattern(pkg string) string {
	if first, _, _ := strings.Cut(pkg, "/"); strings.Contains(first, ".") {
		return pkg
	}
	return "./" + pkg
}

func (h *hunter) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = h.root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// try convicts one bug, or says why it could not.
func (h *hunter) try(ctx context.Context, b bug) (v outcome) {
	v = outcome{bug: b}
	start := time.Now()
	defer func() { v.took = time.Since(start) }()

	if v.err = h.built[b.pkg].err; v.err != nil {
		return v
	}
	clean, err := h.passesClean(ctx, b)
	if err != nil {
		v.err = err
		return v
	}
	start = time.Now()
	for n := 1; ; n++ {
		out, err := h.test(ctx, b, b.id, min(h.limit, 3*clean+patience))
		v.how, v.err = judge(out, err)
		switch {
		case errors.Is(v.err, errPasses) && n < chances:
			continue
		case v.err != nil:
			v.tail = tail(out, 20)
		case n > 1:
			v.how = fmt.Sprintf("%s, at try %d", v.how, n)
		}
		return v
	}
}

// chances is how often a test is tried with its bug before that has escaped. Some bugs are races, and this machine runs
// several tests at a time: once in a hundred times the right moment does not come. The report says when it took more
// than one.
const chances = 3

// passesClean runs the bug's test without the bug, once for all bugs that the test is named for, and returns how long it
// took.
func (h *hunter) passesClean(ctx context.Context, b bug) (time.Duration, error) {
	key := b.pkg + " " + b.test
	h.mu.Lock()
	once := h.clean[key]
	if once == nil {
		once = sync.OnceValues(func() (time.Duration, error) {
			start := time.Now()
			out, err := h.test(ctx, b, "", h.limit)
			for n := 1; err != nil && n < chances && ctx.Err() == nil; n++ { // it may have had too little of the machine
				start = time.Now()
				out, err = h.test(ctx, b, "", h.limit)
			}
			if err != nil {
				return 0, fmt.Errorf("the test fails without the bug: %w\n%s", err, tail(out, 40))
			}
			if !ran.MatchString(out) {
				return 0, fmt.Errorf("no test matches %q", b.test)
			}
			return time.Since(start), nil
		})
		h.clean[key] = once
	}
	h.mu.Unlock()
	return once()
}

// test runs the tests that the bug's line names, in a folder for temporary files of their own, and leaves none of the
// processes that they started. A test that hangs is ended by its own limit, which shows where it hangs; one that does
// not even react to that is killed a little later.
func (h *hunter) test(ctx context.Context, b bug, id string, limit time.Duration) (string, error) {
	h.mu.Lock()
	h.runs++
	temp := filepath.Join(h.temp, strconv.Itoa(h.runs))
	h.mu.Unlock()
	if err := os.Mkdir(temp, 0o700); err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)

	ctx, cancel := context.WithTimeoutCause(ctx, limit+15*time.Second, errHangs)
	defer cancel()
	bin := h.built[b.pkg]
	cmd := exec.CommandContext(ctx, bin.file, "-test.run", b.test, "-test.v", "-test.count=1", "-test.timeout", limit.String())
	cmd.Dir = bin.dir
	setting := "TMPDIR=" + temp
	cmd.Env = append(os.Environ(), "INTERLOCK_MUTANT="+id, setting)
	cmd.WaitDelay = time.Second
	lead(cmd)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	sweep(cmd, setting)
	if err != nil && errors.Is(context.Cause(ctx), errHangs) {
		err = errHangs
	}
	return out.String(), err
}

var (
	errHangs  = errors.New("the test hangs and does not react to its own limit")
	errPasses = errors.New("the test passes with the bug")

	ran     = regexp.MustCompile(`(?m)^\s*--- PASS: `)
	failed  = regexp.MustCompile(`(?m)^\s*--- FAIL: `)
	timeout = regexp.MustCompile(`(?m)^panic: test timed out after `)
	crashed = regexp.MustCompile(`(?m)^(panic: |fatal error: |WARNING: DATA RACE)`)
)

// judge tells a failure of the test from everything else that can end a process badly: one that merely dies, for example
// because it cannot be started, has convicted nothing.
func judge(out string, err error) (how string, _ error) {
	switch {
	case err == nil:
		return "", errPasses
	case errors.Is(err, errHangs), timeout.MatchString(out):
		return "hangs", nil
	case failed.MatchString(out):
		return "fails", nil
	case crashed.MatchString(out):
		return "crashes", nil
	default:
		return "", fmt.Errorf("the process ended without a failed test: %w", err)
	}
}

// tail returns the last n lines of out.
func tail(out string, n int) string {
	lines := strings.SplitAfter(strings.TrimRight(out, "\n")+"\n", "\n")
	return strings.Join(lines[max(0, len(lines)-1-n):], "")
}
