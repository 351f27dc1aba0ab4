package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	errHangs  = errors.New("the test hangs and does not react to its own limit")
	errPasses = errors.New("the test passes with the bug")

	// By -test.v=test2json, a line of the testing package's own has a mark that tells it from what a test prints.
	frame    = regexp.MustCompile(`\x16(===|---) (\w+):? +(\S+)`)
	timedOut = regexp.MustCompile(`(?m)^panic: test timed out after `)
	crashed  = regexp.MustCompile(`(?m)^(panic: |fatal error: )`)
	raced    = regexp.MustCompile(`(?m)^WARNING: DATA RACE`)
)

// judge returns nil if the test failed by the words that the bug's record names. Whatever else can end a test convicts
// nothing: it would do so for any bug.
func judge(b *bug, out string, err error) error {
	r := reportOf(out)
	switch {
	case err == nil:
		return errPasses
	case errors.Is(err, errHangs):
		return err
	case timedOut.MatchString(out):
		return errors.New("the test timed out with the bug: want it to notice by itself")
	case crashed.MatchString(out):
		return errors.New("the process crashed with the bug: want its test to fail")
	case len(r.ended["FAIL"]) == 0:
		return fmt.Errorf("the process ended without a failed test: %w", err)
	case b.fails.MatchString(r.failures()):
		return nil
	case raced.MatchString(out):
		return fmt.Errorf("the race detector reports something else than %q", b.fails)
	case b.fails.MatchString(out):
		return fmt.Errorf("%q is in the output, but no test that failed says it", b.fails)
	default:
		return fmt.Errorf("the test fails for another reason than %q", b.fails)
	}
}

// A report is what tests said, by their names, and how they ended.
type report struct {
	ended map[string][]string // names by PASS, FAIL or SKIP
	said  map[string]string
}

func reportOf(out string) report {
	r := report{map[string][]string{}, map[string]string{}}
	var name string
	for line := range strings.Lines(out) {
		switch m := frame.FindStringSubmatch(line); {
		case m != nil:
			name = m[3]
			if m[1] == "---" {
				r.ended[m[2]] = append(r.ended[m[2]], name)
			}
		case strings.HasPrefix(line, "    "): // anything else is printed by somebody
			r.said[name] += line
		}
	}
	return r
}

// failures returns what the tests said that failed.
func (r report) failures() string {
	var said strings.Builder
	for _, name := range r.ended["FAIL"] {
		said.WriteString(r.said[name])
	}
	return said.String()
}

// passes reports what is wrong with a run without a bug that did not fail: it must have passed a test of the pattern, down to its
// last part.
func (r report) passes(pattern string) error {
	deep := func(name string) bool { return strings.Count(name, "/") >= strings.Count(pattern, "/") }
	switch {
	case slices.ContainsFunc(r.ended["PASS"], deep):
		return nil
	case slices.ContainsFunc(r.ended["SKIP"], deep):
		return fmt.Errorf("the test %q is skipped", pattern)
	}
	return fmt.Errorf("no test matches %q", pattern)
}

// tail returns the last n lines of out.
func tail(out string, n int) string {
	out = strings.ReplaceAll(out, "\x16", "")
	lines := strings.SplitAfter(strings.TrimRight(out, "\n")+"\n", "\n")
	return strings.Join(lines[max(0, len(lines)-1-n):], "")
}
