package repo

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is how many columns a line of a page may have, so that two versions of it fit beside each other on a screen.
const widest = 120

// Nobody wraps a page by hand: what is longer than a line may be is a table, code, a picture, or one word.
func TestPagesAreWrapped(t *testing.T) {
	pages := 0
	for name, text := range texts(t) {
		if !strings.HasSuffix(name, ".md") || name != "README.md" && !strings.HasPrefix(name, "docs/") || name == "docs/failures.md" { // which a program writes
			continue
		}
		pages++
		for _, n := range overlong(text) {
			t.Errorf("%s:%d: more than %d columns: want it wrapped", name, n, widest)
		}
	}
	if pages < 20 {
		t.Errorf("%d pages were looked at", pages)
	}
}

func TestOverlongLinesAreSeen(t *testing.T) {
	long := strings.Repeat("word ", 25)
	for text, want := range map[string]int{
		long:                        1,
		"- " + long + "\n\n" + long: 2,
		strings.Repeat("ä", 60) + " " + strings.Repeat("ä", 59): 0,
		"| " + long + " |":                                0,
		"```sh\n" + long + "\n```\n" + long:               1,
		"  ```\n" + long + "\n  ```":                      0,
		"    " + long:                                     0,
		"see\n" + strings.Repeat("x", 200):                0,
		"- [x](https://" + strings.Repeat("x", 200) + ")": 0,
		"`" + long + "`":                                  0,
		"word `" + long + "`":                             1,
	} {
		if got := overlong(text); len(got) != want {
			t.Errorf("%q: lines %v, want %d", text, got, want)
		}
	}
}

// overlong returns the numbers of the lines of a page that are too long and could be broken.
func overlong(text string) (lines []int) {
	code := false
	for i, line := range strings.Split(text, "\n") {
		words := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(words, "```"):
			code = !code
		case code, strings.HasPrefix(words, "|"), strings.HasPrefix(words, "#"), strings.HasPrefix(words, "!["), strings.HasPrefix(line, "    ") && !strings.HasPrefix(words, "-"):
		case utf8.RuneCountInString(line) <= widest:
		default:
			words = strings.TrimLeft(words, "-*>0123456789. ")
			if strings.Contains(inline.ReplaceAllString(words, "x"), " ") {
				lines = append(lines, i+1)
			}
		}
	}
	return lines
}
