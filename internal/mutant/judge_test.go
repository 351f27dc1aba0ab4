package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// Words convict where a test that failed says them, and nowhere else.
func TestJudge_HearsOnlyWhoFailed(t *testing.T) {
	const (
		run  = "\x16=== RUN   TestAdd\n"
		fail = "\x16--- FAIL: TestAdd (0.00s)\n"
		sub  = "    \x16--- FAIL: TestAdd/sub (0.00s)\n"
	)
	b := &bug{fails: regexp.MustCompile(`bad Add|TestAdd|race detected`)}
	for name, c := range map[string]struct{ out, want string }{
		"says it":            {run + "    a_test.go:9: bad Add\n" + fail, ""},
		"a subtest":          {run + "\x16=== RUN   TestAdd/sub\n    a_test.go:9: bad Add\n" + fail + sub, ""},
		"after a long line":  {run + "no newline\x16=== NAME  TestAdd\n    a_test.go:9: bad Add\n" + fail, ""},
		"its name":           {run + fail, "no test that failed says it"},
		"printed":            {run + "bad Add\n" + fail, "no test that failed says it"},
		"another one passes": {"\x16=== RUN   TestB\n    a_test.go:3: bad Add\n\x16--- PASS: TestB (0.00s)\n" + run + fail, "no test that failed says it"},
		"a printed failure":  {run + "--- FAIL: TestAdd\n    a_test.go:9: bad Add\n", "without a failed test"},
	} {
		got := judge(b, c.out, errors.New("exit status 1"))
		if c.want == "" && got != nil || c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
}

func TestReport_PassesDownToTheLastPart(t *testing.T) {
	for _, c := range []struct{ out, pattern, want string }{
		{"\x16--- PASS: TestA (0.00s)\n", "TestA", ""},
		{"\x16--- PASS: TestA (0.00s)\n    \x16--- PASS: TestA/x (0.00s)\n", "TestA/x", ""},
		{"\x16--- PASS: TestA (0.00s)\n", "TestA/x", "no test matches"},
		{"\x16--- PASS: TestA (0.00s)\n    \x16--- SKIP: TestA/x (0.00s)\n", "TestA/x", "is skipped"},
		{"testing: warning: no tests to run\nPASS\n", "TestA", "no test matches"},
	} {
		err := reportOf(c.out).passes(c.pattern)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q of %q: %v, want %q", c.pattern, c.out, err, c.want)
		}
	}
}
