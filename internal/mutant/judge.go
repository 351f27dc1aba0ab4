package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	errHangs  = errors.New("the test hangs and does not react to its own limit")
	errPasses = errors.New("the test passes with the bug")

	passed   = regexp.MustCompile(`(?m)^\s*--- PASS: `)
	failed   = regexp.MustCompile(`(?m)^\s*--- FAIL: `)
	timedOut = regexp.MustCompile(`(?m)^panic: test timed out after `)
	crashed  = regexp.MustCompile(`(?m)^(panic: |fatal error: )`)
	raced    = regexp.MustCompile(`(?m)^WARNING: DATA RACE`)
)

// judge returns nil if the test failed by the words that the bug's record names. Whatever else can end a test convicts
// nothing: it would do so for any bug.
func judge(b *bug, out string, err error) error {
	switch {
	case err == nil:
		return errPasses
	case errors.Is(err, errHangs):
		return err
	case timedOut.MatchString(out):
		return errors.New("the test timed out with the bug: want it to notice by itself")
	case crashed.MatchString(out):
		return errors.New("the process crashed with the bug: want its test to fail")
	case !failed.MatchString(out):
		return fmt.Errorf("the process ended without a failed test: %w", err)
	case b.fails.MatchString(out):
		return nil
	case raced.MatchString(out):
		return fmt.Errorf("the race detector reports something else than %q", b.fails)
	default:
		return fmt.Errorf("the test fails for another reason than %q", b.fails)
	}
}

// tail returns the last n lines of out.
func tail(out string, n int) string {
	lines := strings.SplitAfter(strings.TrimRight(out, "\n")+"\n", "\n")
	return strings.Join(lines[max(0, len(lines)-1-n):], "")
}
