// Command shape tells what is hard to carry in the head of each package that the patterns match:
// how many lines of code it has, circles of files that use each other, files that are long and
// functions that are long.
//
//	go run ./internal/shape ./redlock
//
// A file uses another if it names a function, a method, a type, a field, a variable or a constant
// that the other declares. A circle is a strongly connected component of that: to understand one of
// its files takes all of them. Lines of code are lines with a token of Go, or of Lua or SQL that
// the package embeds, that is no comment.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Limits: what a package may have without being named.
const (
	mostCircle   = 5
	mostFile     = 400 // lines
	mostFunction = 80  // lines
)

func main() {
	arrows := flag.Bool("arrows", false, "print what each file of a circle uses of the others")
	flag.Parse()
	if err := run(os.Stdout, *arrows, flag.Args()...); err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

// run prints the shapes of the packages that the patterns match to w.
func run(w io.Writer, arrows bool, patterns ...string) error {
	packages, err := load(patterns...)
	if err != nil {
		return err
	}
	for _, p := range packages {
		s, err := p.shape()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %d lines of code in %d files\n", p.ImportPath, s.code, len(p.GoFiles))
		for _, c := range s.circles {
			if len(c) > 1 {
				fmt.Fprintf(w, "  circle of %d: %s\n", len(c), strings.Join(c, " "))
			}
			for _, from := range c {
				for _, to := range c {
					if names := s.uses[from][to]; arrows && from != to && len(names) > 0 {
						fmt.Fprintf(w, "    %s -> %s: %s\n", from, to, strings.Join(names, " "))
					}
				}
			}
		}
		for _, l := range s.long {
			fmt.Fprintf(w, "  %s\n", l)
		}
	}
	return nil
}

// pkg is what go list says of a package.
type pkg struct {
	Dir, ImportPath, Export string
	GoFiles, EmbedFiles     []string
	DepOnly                 bool

	exports map[string]string // of all packages, by path: the compiler's files
}

// load has the go command build what the patterns match, and returns the packages sorted by path.
func load(patterns ...string) ([]pkg, error) {
	args := append([]string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,EmbedFiles,DepOnly", "--"}, patterns...)
	out, err := exec.Command("go", args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("go list: %w: %s", err, bytes.TrimSpace(exit.Stderr))
	} else if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			p.exports = exports
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b pkg) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return all, nil
}
