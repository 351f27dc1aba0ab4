//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// share is some tests of a package that are a part of their own: they take long, or the race detector does not bear all tests of
// the package in one process.
type share struct {
	name  string
	tests string // as go test -run wants it
	flags []string
	env   []string
	race  bool // under the race detector
	slow  bool // also on a slow machine
}

// shares reads the file in which a package names its shares, a line each:
//
//	NAME: TESTS [OPTION…]
//
// TESTS is what go test -run takes. An option is once, which leaves the slow machine out, norace, or NAME=value, an environment
// variable by which a test that is short elsewhere knows how long it is to be. Lines that begin with # are comments.
func shares(path string) ([]share, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []share
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, _ := strings.Cut(line, ": ")
		words := strings.Fields(rest)
		if name == "" || len(words) == 0 || slices.ContainsFunc(all, func(s share) bool { return s.name == name }) {
			return nil, fmt.Errorf("%s: %q: want NAME: TESTS [OPTION…], each name once", path, line)
		}
		s := share{name: name, tests: words[0], race: true, slow: true, flags: []string{"-run=" + words[0]}}
		for _, w := range words[1:] {
			switch {
			case w == "once":
				s.slow = false
			case w == "norace":
				s.race = false
			case strings.Contains(w, "="):
				s.env = append(s.env, w)
			default:
				return nil, fmt.Errorf("%s: %q: no option %q: want once, norace or NAME=value", path, line, w)
			}
		}
		all = append(all, s)
	}
	return all, nil
}
