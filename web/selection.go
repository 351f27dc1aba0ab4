package web

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// onPage is how many names a page has.
const onPage = 200

// selection is a part of a list, for somebody.
type selection struct {
	prefix, after string
	limit         int
	waiting       bool // by waiting time, not by name
	who           Principal
}

// selectionOf reads which part of a list is asked for.
func selectionOf(p params, who Principal) (sel selection, err error) {
	sel = selection{limit: onPage, who: who}
	if sel.prefix, err = p.start("prefix"); err == nil {
		sel.after, err = p.start("after")
	}
	return sel, err
}

// part is that part.
type part struct {
	lines                []driver.Line
	first                int // of lines, among all that the prefix has
	names, held, waiting int // of all that the prefix has
	more                 bool
}

// of returns the part of a list, which is in order of name.
func (s selection) of(all []driver.Line) (p part) {
	i, _ := slices.BinarySearchFunc(all, s.prefix, func(l driver.Line, prefix string) int { return strings.Compare(l.Name, prefix) })
	for _, l := range all[i:] {
		if !strings.HasPrefix(l.Name, s.prefix) {
			break
		}
		if !s.who.mayRead(l.Name) {
			continue
		}
		p.names++
		for _, c := range l.Claims {
			if !c.Held {
				p.waiting++
			}
		}
		if slices.ContainsFunc(l.Claims, func(c driver.Holder) bool { return c.Held }) {
			p.held++
		}
		switch {
		case s.after != "" && l.Name <= s.after:
			p.first++
		case len(p.lines) < s.limit:
			p.lines = append(p.lines, l)
		default:
			p.more = true
		}
	}
	return p
}
