package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// All bugs of a module are compiled together, for one build of a package's tests costs seconds and a bug would cost a
// build. The compiler gets the changed files by the flag -overlay, and the source stays as it is:
//
//   - a function that bugs change begins with a copy of its changed body for each of them, behind the question whether
//     that bug is turned on;
//   - a package variable has the changed value behind that question, and nothing evaluates it before;
//   - an embedded text, such as a script, is a variable that begins as the changed text.
//
// Which bug is on is asked of the environment, once for each process, so that processes that a test starts have it too.

// variable names the bug that is turned on.
const variable = "INTERLOCK_BUG"

// switchFile is what a package with bugs gets.
const switchFile = `package %s

import seededOS "os"

var seededBug = seededOS.Getenv(` + "`" + variable + "`" + `)

func seededValue[T any](id string, changed func() any, value T) (v T) {
	if seededBug != id {
		return value
	}
	if c := changed(); c != nil {
		v = c.(T)
	}
	return v
}

func seededText(text string, changed map[string]string) string {
	if t, ok := changed[seededBug]; ok {
		return t
	}
	return text
}
`

// A variant is a file as a bug changes it.
type variant struct {
	bug  *bug
	text []byte
}

// seed writes what the compiler shall read instead of the files of the module, and of those beside it, to dir and returns the file for -overlay.
func seed(root, dir string, bugs []*bug) (overlay string, _ error) {
	variants, err := variantsOf(root, bugs)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	put := func(file string, text []byte) error {
		to := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		replace[file] = to
		return os.WriteFile(to, text, 0o600)
	}
	folders := map[string]*folder{}
	for _, file := range slices.Sorted(maps.Keys(variants)) {
		in := filepath.Dir(file)
		if folders[in] == nil {
			if folders[in], err = readFolder(in); err != nil {
				return "", err
			}
		}
		folders[in].change(file, variants[file])
	}
	var wrong []error
	for _, in := range slices.Sorted(maps.Keys(folders)) {
		f := folders[in]
		files, err := f.switched()
		wrong = append(wrong, err)
		for name, text := range files {
			wrong = append(wrong, put(name, text))
		}
		wrong = append(wrong, put(filepath.Join(in, "seeded_bugs.go"), fmt.Appendf(nil, switchFile, f.name)))
	}
	if err := errors.Join(wrong...); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// variantsOf applies every edit and returns the changed files by their absolute names.
func variantsOf(root string, bugs []*bug) (map[string][]variant, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	variants := map[string][]variant{}
	var wrong []error
	for _, b := range bugs {
		edits := map[string][]*edit{}
		for _, e := range b.edits {
			file := filepath.Join(root, b.pkg, e.file)
			edits[file] = append(edits[file], e)
		}
		for file, of := range edits {
			lines, err := readLines(file)
			switch {
			case err != nil:
				err = of[0].error(err)
			case strings.HasSuffix(file, "_test.go"):
				err = of[0].error(fmt.Errorf("%s is a test: want the code that it tests", of[0].file))
			default:
				lines, err = apply(lines, of)
			}
			wrong = append(wrong, err)
			if err == nil {
				variants[file] = append(variants[file], variant{b, []byte(strings.Join(lines, "\n"))})
			}
		}
	}
	return variants, errors.Join(wrong...)
}

func readLines(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	return strings.Split(string(text), "\n"), err
}
