//go:build unix

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

type verdict string

const (
	held      verdict = "held"
	broken    verdict = "broken"
	notJudged verdict = "not judged"
)

// result is what came of a part.
type result struct {
	verdict verdict
	cases   int
	took    time.Duration
	why     []string // it is broken or not judged
}

// line is a result for people.
func (r result) line(name string) string {
	s := fmt.Sprintf("%-10s  %-40s %6d cases %8v", r.verdict, name, r.cases, r.took)
	for _, w := range r.why {
		s += "\n            " + w
	}
	return s
}

// prove runs a part. What failed is shown as it was said.
func (p part) prove(ctx context.Context, out io.Writer) result {
	start := time.Now()
	t := newTally(out)
	var failure error
	for range p.rounds {
		if failure = p.once(ctx, t, limit-time.Since(start)); failure != nil {
			break
		}
	}
	r := t.result(failure, p.patient)
	r.took = time.Since(start).Round(time.Second)
	return r
}

var errSlow = fmt.Errorf("not done in %v", limit)

// once runs the command of a part, for d at most.
func (p part) once(ctx context.Context, t *tally, d time.Duration) error {
	// go test ends a test that hangs, and shows where; here ends what even that does not reach.
	ctx, cancel := context.WithTimeoutCause(ctx, d+time.Minute, errSlow)
	defer cancel()
	c := exec.CommandContext(ctx, p.run[0], p.run[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	c.Stderr, c.Env = os.Stderr, append(os.Environ(), p.env...)
	from, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		if p.events {
			t.event(lines.Bytes())
		} else {
			t.said(lines.Text(), p.cases)
		}
	}
	err = errors.Join(lines.Err(), c.Wait())
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok && p.events {
		t.peak = max(t.peak, resident(u))
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// mostMemory is how much one process of a part may have in memory, under the race detector too: several of them run on a machine.
const mostMemory = 1 << 30

// resident is the most that a process, or one of those that it waited for, had in memory.
func resident(u *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return u.Maxrss
	}
	return u.Maxrss << 10
}

// tally adds up what a part says.
type tally struct {
	out    io.Writer
	cases  int
	output map[string]*bytes.Buffer // of tests that have not ended, by package and test
	above  map[string]bool          // tests with subtests: those are the cases
	failed []failure
	peak   int64    // bytes that the largest of its processes had in memory
	last   []string // lines of what is no test
}

type failure struct{ test, said string }

func newTally(out io.Writer) *tally {
	return &tally{out: out, output: map[string]*bytes.Buffer{}, above: map[string]bool{}}
}

// said takes a line of a command that is no test.
func (t *tally) said(line string, isCase *regexp.Regexp) {
	fmt.Fprintln(t.out, line)
	t.last = append(t.last, line)[max(len(t.last)-4, 0):]
	if m := isCase.FindStringSubmatch(line); m != nil {
		n := 1
		if len(m) > 1 {
			if _, err := fmt.Sscan(m[1], &n); err != nil {
				n = 1
			}
		}
		if isCase.SubexpIndex("total") > 0 {
			t.cases = 0
		}
		t.cases += n
	}
}

// event takes one of go test -json.
func (t *tally) event(text []byte) {
	var e struct{ Action, Package, ImportPath, Test, Output string }
	if json.Unmarshal(text, &e) != nil {
		fmt.Fprintf(t.out, "%s\n", text)
		return
	}
	key := e.Package + e.ImportPath + " " + e.Test
	switch e.Action {
	case "run":
		if i := strings.LastIndexByte(key, '/'); strings.Contains(e.Test, "/") {
			t.above[key[:i]] = true
		}
	case "output", "build-output":
		b := t.output[key]
		if b == nil {
			b = &bytes.Buffer{}
			t.output[key] = b
		}
		b.WriteString(e.Output)
	case "pass":
		t.count(e.Test, key)
		delete(t.output, key)
	case "skip":
		delete(t.output, key)
	case "fail", "build-fail":
		t.count(e.Test, key)
		f := failure{test: cmp.Or(e.Test, e.Package, e.ImportPath)}
		if b := t.output[key]; b != nil {
			f.said = b.String()
		}
		delete(t.output, key)
		told := slices.ContainsFunc(t.failed, func(g failure) bool { return e.Test == "" || strings.HasPrefix(g.test, e.Test+"/") })
		if told && (e.Test == "" || gist(f.said) == silent) && !final.MatchString(f.said) {
			return // it failed for what is told already
		}
		t.failed = append(t.failed, f)
		fmt.Fprint(t.out, f.said)
	}
}

// count counts a test that has no subtests.
func (t *tally) count(test, key string) {
	if test != "" && !t.above[key] {
		t.cases++
	}
	delete(t.above, key)
}

// unjudged is what a test says that failed because nothing could be judged.
const unjudged = " was not judged: "

// final are the words of those who find what nothing excuses: a data race, two holders, a token out of order. make test does not
// try such a failure again.
var final = regexp.MustCompile("(?m)" + strings.ReplaceAll(strings.TrimSpace(finalWords), "\n", "|"))

//go:embed final
var finalWords string

var timedOut = regexp.MustCompile(`(?m)^panic: test timed out`)

// unable reports whether a test failed for nothing else than that it could not judge: what it found before is a finding.
func unable(said string) bool {
	if !strings.Contains(said, unjudged) {
		return false
	}
	for line := range strings.Lines(said) {
		if found(line) {
			return false
		}
	}
	return true
}

// found reports whether a line tells of what nothing excuses.
func found(line string) bool {
	return !strings.Contains(line, unjudged) && !strings.Contains(line, ": void: ") && final.MatchString(line)
}

// result is the verdict. failure is of the command itself.
func (t *tally) result(err error, patient bool) result {
	r := result{verdict: held, cases: t.cases}
	condemn := func(v verdict, why string) {
		if v == broken || r.verdict == held {
			r.verdict = v
		}
		r.why = append(r.why, why)
	}
	for _, f := range t.failed {
		v := broken
		if unable(f.said) || patient && timedOut.MatchString(f.said) {
			v = notJudged
		}
		condemn(v, f.test+": "+gist(f.said))
	}
	if t.peak > mostMemory {
		condemn(broken, fmt.Sprintf("a process of it had %d MiB in memory, want %d at most", t.peak>>20, mostMemory>>20))
	}
	switch {
	case len(r.why) > 0:
	case errors.Is(err, errSlow): // a test that hangs is ended before that
		condemn(notJudged, err.Error())
	case err != nil:
		condemn(broken, strings.Join(append(t.last, err.Error()), "; "))
	case t.cases == 0:
		condemn(notJudged, "it has no cases")
	}
	return r
}

var frame = regexp.MustCompile(`^\s*(===|---|#) |^(PASS|FAIL|ok)\b|^exit status `)

// gist is the first line in which a test tells of what nothing excuses, or else the first in which it says anything: a log may stand
// before the line that matters.
func gist(said string) string {
	first := silent
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line == "" || frame.MatchString(line) {
			continue
		}
		if found(line) {
			return short(line)
		}
		if first == silent {
			first = short(line)
		}
	}
	return first
}

func short(line string) string {
	if r := []rune(line); len(r) > 300 {
		return string(r[:300]) + "…"
	}
	return line
}

const silent = "it failed without a word"
