package main

import (
	"fmt"
	"slices"
	"strings"
)

// An edit replaces whole lines of a file.
type edit struct {
	file     string // relative to the package whose bug it is
	at       string // file:line of the data, for messages
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

// apply returns the lines with the edit made. The old lines must stand there exactly once.
func (e *edit) apply(lines []string) ([]string, error) {
	if len(e.old) == 0 {
		return nil, fmt.Errorf("no old text: want at least a line of context")
	}
	if slices.Equal(e.old, e.new) {
		return nil, fmt.Errorf("it changes nothing: want a line with - or + in front")
	}
	var found []int
	for i := range len(lines) - len(e.old) + 1 {
		if slices.Equal(lines[i:i+len(e.old)], e.old) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 1:
		return slices.Replace(slices.Clone(lines), found[0], found[0]+len(e.old), e.new...), nil
	case 0:
		return nil, fmt.Errorf("the old text is not in %s: want it there once:\n\t%s", e.file, strings.Join(e.old, "\n\t"))
	default:
		return nil, fmt.Errorf("the old text is %d times in %s, the second time at line %d: want it there once; give it more context:\n\t%s",
			len(found), e.file, found[1]+1, strings.Join(e.old, "\n\t"))
	}
}
