package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// A record is what the files of this tool consist of: a kind and an id, fields of one line each, and edits.
//
//	bug L5
//	test TestL05
//	fails answered 2 s late
//	says Validity counts from the reply to a renewal, not from its sending.
//	in session.go
//	 	r, err := s.driver.Renew(ctx)
//	+	started = p.client.clock.now()
//
// "in FILE" begins an edit, "@@" another one in the same file. Their lines are those of a unified diff, with a space, a
// minus or a plus in front. A line that begins with # is a comment. Blank lines separate records; within an edit they
// are empty lines of context.
type record struct {
	kind, id string
	at       string // file:line, for messages
	fields   map[string][]string
	edits    []*edit
}

// readRecords reads a file that has records of the given kinds, each with the fields named for it.
func readRecords(file string, kinds map[string][]string) (records []*record, _ error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r *record
	var open *edit
	for i, line := range strings.Split(string(text), "\n") {
		at := fmt.Sprintf("%s:%d", file, i+1)
		if open != nil && open.add(line) {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		_, begins := kinds[word]
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case begins && rest != "":
			r, open = &record{kind: word, id: rest, at: at, fields: map[string][]string{}}, nil
			records = append(records, r)
		case r == nil:
			return nil, fmt.Errorf("%s: %q: want a record, which begins with its kind and its id", at, line)
		case word == "in" && rest != "":
			open = &edit{file: rest, bug: r.id, at: at}
			r.edits = append(r.edits, open)
		case line == "@@" && open != nil:
			open = &edit{file: open.file, bug: r.id, at: at}
			r.edits = append(r.edits, open)
		case slices.Contains(kinds[r.kind], word) && rest != "":
			r.fields[word] = append(r.fields[word], rest)
		default:
			return nil, fmt.Errorf("%s: %s %s: %q: want one of the fields %v with its value, or an edit", at, r.kind, r.id, line, kinds[r.kind])
		}
	}
	return records, nil
}

// field returns the only value of a field, "" if the record has none.
func (r *record) field(name string) (string, error) {
	switch all := r.fields[name]; len(all) {
	case 0:
		return "", nil
	case 1:
		return all[0], nil
	default:
		return "", fmt.Errorf("%s: %s %s has %d lines %q, want one", r.at, r.kind, r.id, len(all), name)
	}
}
