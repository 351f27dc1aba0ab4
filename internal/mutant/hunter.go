package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A hunter runs the tests. All test binaries are built once, with every bug in them and none turned on; each test then runs
// twice, without and with its bug.
type hunter struct {
	root     string
	limit    time.Duration // of one test
	race     bool
	parallel int
	out      io.Writer

	temp  string
	built map[string]binary // by package
	mu    sync.Mutex        // guards clean, runs and again
	clean map[string]func() (time.Duration, error)
	runs  int
	again []string // what failed or passed by chance and was tried again
}

// A binary is the tests of one package and the folder that they expect to run in.
type binary struct{ file, dir string }

// patience is how much longer than without its bug a test may take before it is ended.
const patience = 30 * time.Second

// version is the end of an import path that go test leaves out of a binary's name.
var version = regexp.MustCompile(`/v[0-9]+$`)

// An outcome is what became of one bug.
type outcome struct {
	*bug
	err  error // nil: convicted
	took time.Duration
	tail string // of the output, when not convicted
}

// run hunts all bugs and returns how many escaped. An error means that the hunt itself failed.
func (h *hunter) run(ctx context.Context, bugs []*bug) (escaped int, err error) {
	if len(bugs) == 0 {
		return 0, fmt.Errorf("there are no bugs below %s", h.root)
	}
	if !filepath.IsAbs(os.TempDir()) {
		return 0, fmt.Errorf("TMPDIR is %q: want an absolute path", os.TempDir())
	}
	if h.temp, err = os.MkdirTemp("", "hunt"); err != nil {
		return 0, err
	}
	if err := os.Chmod(h.temp, 0o711); err != nil { // a PostgreSQL that root starts runs as another user, in a folder below
		return 0, err
	}
	defer os.RemoveAll(h.temp)
	h.clean = map[string]func() (time.Duration, error){}
	start := time.Now()
	if err := h.build(ctx, bugs); err != nil {
		return 0, err
	}
	fmt.Fprintf(h.out, "built the tests of %d packages with %d bugs in them in %.1fs\n", len(h.built), len(bugs), time.Since(start).Seconds())

	start = time.Now()
	jobs := make(chan *bug)
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
			if ctx.Err() == nil {
				jobs <- b
			}
		}
		close(jobs)
		workers.Wait()
		close(results)
	}()
	for v := range results {
		if ctx.Err() != nil {
			continue // it says nothing about the bug
		}
		if v.err != nil {
			escaped++
		}
		h.report(v)
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	for _, again := range h.again {
		fmt.Fprintln(h.out, "tried twice:", again)
	}
	fmt.Fprintf(h.out, "%d of %d bugs convicted in %.1fs, %d tried twice\n", len(bugs)-escaped, len(bugs), time.Since(start).Seconds(), len(h.again))
	if len(h.again) > 1 {
		return escaped, fmt.Errorf("%d tests were tried twice, want one at most: they pass and fail by chance", len(h.again))
	}
	return escaped, nil
}

func (h *hunter) report(v outcome) {
	if v.err == nil {
		fmt.Fprintf(h.out, "convicted      %-8s %5.1fs  %s %s\n", v.id, v.took.Seconds(), v.pkg, v.test)
		return
	}
	fmt.Fprintf(h.out, "NOT convicted  %-8s %5.1fs  %s %s: %v\n    %s: %s\n", v.id, v.took.Seconds(), v.pkg, v.test, v.err, v.at, v.says)
	for line := range strings.Lines(v.tail) {
		fmt.Fprintf(h.out, "    | %s", line)
	}
}

// build makes the test binaries of the packages that the bugs name.
func (h *hunter) build(ctx context.Context, bugs []*bug) error {
	overlay, err := seed(h.root, h.temp, bugs)
	if err != nil {
		return err
	}
	packages := map[string][]string{} // by the folder of their module
	for _, b := range bugs {
		packages[b.in] = append(packages[b.in], b.pkg)
	}
	h.built = map[string]binary{}
	for _, in := range slices.Sorted(maps.Keys(packages)) {
		slices.Sort(packages[in])
		if err := h.buildOf(ctx, in, slices.Compact(packages[in]), overlay); err != nil {
			return err
		}
	}
	return nil
}

// buildOf makes those of one module, as the go command does in its folder.
func (h *hunter) buildOf(ctx context.Context, in string, packages []string, overlay string) error {
	root, bin := filepath.Join(h.root, in), filepath.Join(h.temp, "bin", in)
	args := []string{"test", "-c", "-overlay", overlay, "-o", bin + string(filepath.Separator)}
	if h.race {
		args = append(args, "-race")
	}
	below := func(pkg string) string {
		return "./" + strings.TrimPrefix(strings.TrimPrefix(pkg, filepath.ToSlash(in)), "/")
	}
	for _, p := range packages {
		args = append(args, below(p))
	}
	if _, err := output(ctx, root, "go", args...); err != nil {
		return err
	}
	for _, p := range packages {
		about, err := output(ctx, root, "go", "list", "-f", "{{.ImportPath}}\n{{.Dir}}", below(p))
		if err != nil {
			return err
		}
		name, dir, _ := strings.Cut(strings.TrimSpace(about), "\n")
		b := binary{filepath.Join(bin, path.Base(version.ReplaceAllString(name, ""))+".test"), dir}
		if _, err := os.Stat(b.file); err != nil {
			return fmt.Errorf("package %s has bugs and no tests", p)
		}
		h.built[p] = b
	}
	return nil
}

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it removes its own temporary files
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// try convicts one bug, or says why it could not. Some bugs are races: one whose test passes is tried once more, which is
// reported.
func (h *hunter) try(ctx context.Context, b *bug) (v outcome) {
	v = outcome{bug: b}
	start := time.Now()
	clean, err := h.passesClean(ctx, b)
	if err != nil {
		v.err, v.took = err, time.Since(start)
		return v
	}
	start = time.Now()
	out, err := h.test(ctx, b, b.id, min(h.limit, 3*clean+patience))
	v.err = judge(b, out, err)
	if errors.Is(v.err, errPasses) {
		h.repeats(fmt.Sprintf("%s with bug %s, which it did not notice", b.test, b.id))
		out, err = h.test(ctx, b, b.id, min(h.limit, 3*clean+patience))
		v.err = judge(b, out, err)
	}
	v.took = time.Since(start)
	if v.err != nil {
		v.tail = tail(out, 30)
	}
	return v
}

func (h *hunter) repeats(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.again = append(h.again, what)
}

// passesClean runs the bug's test without the bug, once for all bugs that the test is named for, and returns how long it
// took.
func (h *hunter) passesClean(ctx context.Context, b *bug) (time.Duration, error) {
	key := b.pkg + " " + b.test
	h.mu.Lock()
	once := h.clean[key]
	if once == nil {
		once = sync.OnceValues(func() (time.Duration, error) {
			start := time.Now()
			out, err := h.test(ctx, b, "", h.limit)
			if err != nil && ctx.Err() == nil {
				h.repeats(b.test + " without a bug, which failed:\n" + tail(out, 30))
				start = time.Now()
				out, err = h.test(ctx, b, "", h.limit)
			}
			if err != nil {
				return 0, fmt.Errorf("the test fails without the bug: %w\n%s", err, tail(out, 40))
			}
			if err := reportOf(out).passes(b.test); err != nil {
				return 0, err
			}
			return time.Since(start), nil
		})
		h.clean[key] = once
	}
	h.mu.Unlock()
	return once()
}

// test runs the tests that the bug names, in a folder for temporary files of their own, and leaves none of the processes
// that they started. A test that hangs is ended by its own limit, which shows where it hangs; one that does not even
// react to that is killed a little later.
func (h *hunter) test(ctx context.Context, b *bug, id string, limit time.Duration) (string, error) {
	h.mu.Lock()
	h.runs++
	temp := filepath.Join(h.temp, strconv.Itoa(h.runs))
	h.mu.Unlock()
	if err := os.Mkdir(temp, 0o711); err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)

	ctx, cancel := context.WithTimeoutCause(ctx, limit+15*time.Second, errHangs)
	defer cancel()
	bin := h.built[b.pkg]
	cmd := exec.CommandContext(ctx, bin.file, "-test.run", b.test, "-test.v=test2json", "-test.count=1", "-test.paniconexit0", "-test.timeout", limit.String())
	cmd.Dir = bin.dir
	setting := "TMPDIR=" + temp
	cmd.Env = append(os.Environ(), variable+"="+id, setting)
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
