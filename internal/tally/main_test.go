package main

import (
	"fmt"
	"strings"
	"testing"
)

func said(pkg, test, text string) string {
	return fmt.Sprintf(`{"Action":"output","Package":%q,"Test":%q,"Output":%q}`+"\n", pkg, test, text)
}

func ended(action, pkg, test string) string {
	return fmt.Sprintf(`{"Action":%q,"Package":%q,"Test":%q,"Elapsed":2.5}`+"\n", action, pkg, test)
}

// Of what passed only the packages are told and what was void; of what failed everything, and of what never ended too.
func TestTally(t *testing.T) {
	input := said("p", "A", "=== RUN   A\n") + said("p", "A", "    a.go:1: quiet\n") + said("p", "A/x", "    run.go:30: void: too late; tried again\n") +
		ended("pass", "p", "A/x") + ended("pass", "p", "A") +
		said("q", "B", "=== RUN   B\n") + said("q", "B", "    b.go:1: loud\n") + said("q", "B", "--- FAIL: B (0.00s)\n") + ended("fail", "q", "B") +
		said("q", "C", "panic: now\n") + said("p", "", "PASS\n") + said("p", "", "ok  \tp\t2.5s\n") + ended("pass", "p", "") +
		said("q", "", "FAIL\tq\t2.5s\n") + ended("fail", "q", "") +
		`{"ImportPath":"r","Action":"build-output","Output":"r.go:1: no\n"}` + "\n" + "go: a word of its own\n"
	var out, times, voids strings.Builder
	tally := tally{out: &out, times: &times, voids: &voids}
	if err := tally.read(strings.NewReader(input)); err != nil {
		t.Fatal(err)
	}
	want := "    b.go:1: loud\n--- FAIL: B (0.00s)\nok  \tp\t2.5s\npanic: now\nFAIL\tq\t2.5s\nr.go:1: no\ngo: a word of its own\n"
	if out.String() != want {
		t.Errorf("told:\n%s\nwant:\n%s", out.String(), want)
	}
	if want := "     2.5 p\n     2.5 q\n"; times.String() != want {
		t.Errorf("times:\n%s\nwant:\n%s", times.String(), want)
	}
	if want := "p A/x: run.go:30: void: too late; tried again\n"; voids.String() != want {
		t.Errorf("voids:\n%s\nwant:\n%s", voids.String(), want)
	}
	if len(tally.said) != 0 || len(tally.order) != 0 {
		t.Errorf("%d tests are still kept, in order %v", len(tally.said), tally.order)
	}
}
