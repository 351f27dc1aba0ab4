package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A bug is a fault that a test must notice: what stands in the source, what stands there instead, and the words by which
// the test fails then. It lies beside the test, in testdata/bugs.
type bug struct {
	id    string
	row   string // of the catalogue, "" if it has none
	pkg   string // whose test must fail: a folder relative to the root
	in    string // the folder of its module: "." or, of one beside the root's, relative to that
	test  string // a pattern as for go test -run
	fails *regexp.Regexp
	says  string
	at    string // file:line of the data, for messages
	edits []*edit
}

var bugKinds = map[string][]string{"bug": {"row", "test", "fails", "says"}}

// rowOf finds the row of the catalogue in a bug's id: A3 in A3, A3b, A3-late and redis-A3.
var rowOf = regexp.MustCompile(`(?:^|-)([A-Z][0-9]+)[a-z]?(?:-|$)`)

// readBugs reads the bugs of every package of the module at root, and of the modules in its folders.
func readBugs(root string) (bugs []*bug, _ error) {
	var wrong []error
	first := map[string]string{}
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case dir != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(dir, "testdata", "bugs", "*.bugs"))
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		for _, file := range files {
			records, err := readRecords(file, bugKinds)
			wrong = append(wrong, err)
			for _, r := range records {
				b, err := newBug(r, pkg, moduleOf(root, pkg))
				if err == nil && first[b.id] != "" {
					err = fmt.Errorf("%s: bug %s stands at %s already", r.at, b.id, first[b.id])
				}
				if err != nil {
					wrong = append(wrong, err)
					continue
				}
				first[b.id] = b.at
				bugs = append(bugs, b)
			}
		}
		return nil
	})
	return bugs, errors.Join(append(wrong, err)...)
}

// moduleOf returns the folder of a package's module, relative to the root as that of the package is.
func moduleOf(root, pkg string) string {
	for pkg != "." {
		if _, err := os.Stat(filepath.Join(root, pkg, "go.mod")); err == nil {
			break
		}
		pkg = filepath.Dir(pkg)
	}
	return pkg
}

func newBug(r *record, pkg, in string) (*bug, error) {
	b := &bug{id: r.id, pkg: filepath.ToSlash(pkg), in: in, at: r.at, edits: r.edits}
	var fails string
	for name, value := range map[string]*string{"row": &b.row, "test": &b.test, "fails": &fails, "says": &b.says} {
		var err error
		if *value, err = r.field(name); err != nil {
			return nil, err
		}
		if *value == "" && name != "row" {
			return nil, fmt.Errorf("%s: bug %s has no line %q", b.at, b.id, name)
		}
	}
	if m := rowOf.FindStringSubmatch(b.id); b.row == "" && m != nil {
		b.row = m[1]
	}
	if _, err := regexp.Compile(b.test); err != nil {
		return nil, fmt.Errorf("%s: bug %s: test: %w", b.at, b.id, err)
	}
	var err error
	if b.fails, err = regexp.Compile(fails); err != nil {
		return nil, fmt.Errorf("%s: bug %s: fails: %w", b.at, b.id, err)
	}
	if b.fails.MatchString("") {
		return nil, fmt.Errorf("%s: bug %s: fails: %q matches nothing at all: want words of the test's message", b.at, b.id, fails)
	}
	if b.fails.MatchString("☃") || b.fails.MatchString("--- FAIL: TestAny (0.00s)") {
		return nil, fmt.Errorf("%s: bug %s: fails: %q matches any failure: want words of the test's message", b.at, b.id, fails)
	}
	if len(b.edits) == 0 {
		return nil, fmt.Errorf("%s: bug %s changes nothing: want an edit, which begins with \"in FILE\"", b.at, b.id)
	}
	return b, nil
}
