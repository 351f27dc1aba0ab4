package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A part of the catalogue is a letter and the failures of one kind.
type part struct {
	letter, title string
	rows          []*row
}

// A row is one way in which locks fail.
type row struct {
	id, wrong, seen, right string
	none                   string     // why there is no bug
	tests                  []testName // besides those that the bugs name
	at                     string
}

// A testName is a package and a pattern as for go test -run.
type testName struct{ pkg, test string }

var rowKinds = map[string][]string{"part": {"title"}, "row": {"wrong", "seen", "right", "test", "none"}}

// readParts reads the catalogue: a file for each part.
func readParts(root, dir string) (parts []*part, _ error) {
	files, err := filepath.Glob(filepath.Join(root, dir, "*.rows"))
	if err != nil {
		return nil, err
	}
	first := map[string]string{}
	var wrong []error
	for _, file := range files {
		records, err := readRecords(file, rowKinds)
		wrong = append(wrong, err)
		var p *part
		for _, r := range records {
			if r.kind == "part" {
				title, err := r.field("title")
				wrong = append(wrong, err)
				p = &part{letter: r.id, title: title}
				parts = append(parts, p)
				continue
			}
			w, err := newRow(r)
			switch {
			case err != nil:
			case p == nil || !strings.HasPrefix(w.id, p.letter):
				err = fmt.Errorf("%s: row %s stands in no part of its letter", w.at, w.id)
			case first[w.id] != "":
				err = fmt.Errorf("%s: row %s stands at %s already", w.at, w.id, first[w.id])
			default:
				first[w.id] = w.at
				p.rows = append(p.rows, w)
			}
			wrong = append(wrong, err)
		}
	}
	return parts, errors.Join(wrong...)
}

func newRow(r *record) (*row, error) {
	w := &row{id: r.id, at: r.at}
	for name, value := range map[string]*string{"wrong": &w.wrong, "seen": &w.seen, "right": &w.right, "none": &w.none} {
		var err error
		if *value, err = r.field(name); err != nil {
			return nil, err
		}
	}
	if w.wrong == "" || w.right == "" {
		return nil, fmt.Errorf("%s: row %s: want a line \"wrong\" and a line \"right\"", w.at, w.id)
	}
	for _, t := range r.fields["test"] {
		pkg, test, ok := strings.Cut(t, " ")
		if !ok {
			return nil, fmt.Errorf("%s: row %s: test %q: want a package and a pattern", w.at, w.id, t)
		}
		w.tests = append(w.tests, testName{pkg, test})
	}
	return w, nil
}

// complete reports rows with neither a bug nor a reason, rows that have both, and bugs of rows that are not there.
func complete(parts []*part, bugs []*bug) error {
	var wrong []error
	rows := map[string]*row{}
	for _, p := range parts {
		for _, w := range p.rows {
			rows[w.id] = w
			has := slices.ContainsFunc(bugs, func(b *bug) bool { return b.row == w.id })
			switch {
			case !has && w.none == "":
				wrong = append(wrong, fmt.Errorf("%s: row %s has neither a bug nor a line \"none\" that says why it has none", w.at, w.id))
			case has && w.none != "":
				wrong = append(wrong, fmt.Errorf("%s: row %s has a bug and a line \"none\" that says why it has none", w.at, w.id))
			}
		}
	}
	for _, b := range bugs {
		if b.row != "" && rows[b.row] == nil {
			wrong = append(wrong, fmt.Errorf("%s: bug %s: the catalogue has no row %s", b.at, b.id, b.row))
		}
	}
	return errors.Join(wrong...)
}
