package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An edit replaces whole lines of a file.
type edit struct {
	file     string // relative to the package whose bug it is
	bug, at  string // its id, and file:line of the data, for messages
	old, new []string
	blank    int // blank lines read and not yet known to be context
}

// add reads a line of the data and reports whether it belongs to the edit.
func (e *edit) add(line string) bool {
	if strings.TrimSpace(line) == "" {
		e.blank++
		return true
	}
	sign, text := line[0], line[1:]
	if sign != ' ' && sign != '-' && sign != '+' {
		return false
	}
	for range e.blank { // what follows shows that they were context
		e.old, e.new = append(e.old, ""), append(e.new, "")
	}
	e.blank = 0
	if sign != '+' {
		e.old = append(e.old, text)
	}
	if sign != '-' {
		e.new = append(e.new, text)
	}
	return true
}

// find returns where the old lines stand. They must stand there exactly once.
func (e *edit) find(lines []string) (int, error) {
	if len(e.old) == 0 {
		return 0, errors.New("no old text: want at least a line of context")
	}
	if slices.Equal(e.old, e.new) {
		return 0, errors.New("it changes nothing: want a line with - or + in front")
	}
	var found []int
	for i := range len(lines) - len(e.old) + 1 {
		if slices.Equal(lines[i:i+len(e.old)], e.old) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return 0, fmt.Errorf("the old text is not in %s: want it there once:\n\t%s", e.file, strings.Join(e.old, "\n\t"))
	default:
		return 0, fmt.Errorf("the old text is %d times in %s, the second time at line %d: want it there once; give it more context:\n\t%s",
			len(found), e.file, found[1]+1, strings.Join(e.old, "\n\t"))
	}
}

// apply returns the lines with all edits made. Each is looked for in the source itself and not in what another made of it,
// so that their order is nothing.
func apply(lines []string, edits []*edit) ([]string, error) {
	type place struct {
		*edit
		from int
	}
	var places []place
	var wrong []error
	for _, e := range edits {
		from, err := e.find(lines)
		if err != nil {
			wrong = append(wrong, e.error(err))
			continue
		}
		places = append(places, place{e, from})
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(b.from, a.from) }) // from the end
	lines = slices.Clone(lines)
	for i, p := range places {
		to := p.from + len(p.old)
		if i > 0 && to > places[i-1].from {
			wrong = append(wrong, p.error(fmt.Errorf("it overlaps with the edit at %s: make one of both", places[i-1].at)))
			continue
		}
		lines = slices.Replace(lines, p.from, to, p.new...)
	}
	return lines, errors.Join(wrong...)
}

func (e *edit) error(err error) error { return fmt.Errorf("%s: bug %s: %w", e.at, e.bug, err) }
