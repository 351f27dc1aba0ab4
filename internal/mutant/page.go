package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

const pageHead = `# How locks fail

Ways in which distributed locks are known to fail, and why ours do not: what goes wrong, where it was seen, what Interlock
does instead, the test that shows it, and the bug by which that test has been seen to fail. Tests and comments name a
failure by its id here.

This page is written by ` + "`make failures`" + ` from the rows in ` + "`internal/mutant/rows`" + ` and the bugs in ` + "`testdata/bugs`" + ` beside each
test; ` + "`make mutants`" + ` turns on one bug after the other and sees its test fail. How to add one is in
[CONTRIBUTING](../CONTRIBUTING.md).

`

// writePage prints the catalogue in Markdown.
func writePage(w io.Writer, parts []*part, bugs []*bug) error {
	var out strings.Builder
	out.WriteString(pageHead)
	for _, p := range parts {
		fmt.Fprintf(&out, "- [%s: %s](#%s)\n", p.letter, p.title, anchor(p))
	}
	out.WriteString("- [Bugs beyond the catalogue](#bugs-beyond-the-catalogue)\n")
	for _, p := range parts {
		fmt.Fprintf(&out, "\n## %s: %s\n", p.letter, p.title)
		for _, r := range p.rows {
			r.write(&out, bugs)
		}
	}
	out.WriteString("\n## Bugs beyond the catalogue\n\nRaces and mistakes of our own making, each with the test that notices it.\n\n| bug | what it does | test |\n|---|---|---|\n")
	var others []*bug
	for _, b := range bugs {
		if b.row == "" {
			others = append(others, b)
		}
	}
	slices.SortFunc(others, func(a, b *bug) int { return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.id, b.id)) })
	for _, b := range others {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", b.id, strings.ReplaceAll(b.says, "|", `\|`), testName{b.pkg, b.test})
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (r *row) write(out *strings.Builder, bugs []*bug) {
	fmt.Fprintf(out, "\n### %s\n\n%s\n", r.id, r.wrong)
	if r.seen != "" {
		fmt.Fprintf(out, "Seen: %s.\n", strings.TrimSuffix(r.seen, "."))
	}
	fmt.Fprintf(out, "\n%s\n\n", r.right)
	tests := slices.Clone(r.tests)
	for _, b := range bugs {
		if b.row == r.id {
			fmt.Fprintf(out, "- Bug %s, noticed by %s: %s\n", b.id, testName{b.pkg, b.test}, b.says)
			tests = slices.DeleteFunc(tests, func(t testName) bool { return t == testName{b.pkg, b.test} })
		}
	}
	if r.none != "" {
		fmt.Fprintf(out, "- No bug: %s\n", r.none)
	}
	if len(tests) > 0 {
		var names []string
		for _, t := range tests {
			names = append(names, t.String())
		}
		fmt.Fprintf(out, "- Tests: %s\n", strings.Join(names, ", "))
	}
}

func (t testName) String() string {
	if t.pkg == "." {
		return "`" + t.test + "`"
	}
	return "`" + t.test + "` in `" + t.pkg + "`"
}

// anchor is what a heading's link is called on the usual hosts.
func anchor(p *part) string {
	var b strings.Builder
	for _, r := range strings.ToLower(p.letter + ": " + p.title) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			b.WriteRune(r)
		}
	}
	return b.String()
}
