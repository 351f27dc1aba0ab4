package cli

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
)

// width is how many cells of a terminal a text takes: East Asian characters take two.
func width(s string) int { return text.StringWidthWithoutEscSequences(s) }

// shorten cuts a text in the middle so that it takes no more cells than that: the beginning says
// what it is, and the end which one.
func shorten(s string, cells int) string {
	const cut = "…"
	if width(s) <= cells {
		return s
	}
	parts, room := units(s), max(cells-width(cut), 0)
	head, headRoom := "", (room+1)/2
	for _, p := range parts {
		w := width(p)
		if w > headRoom {
			break
		}
		head += p
		headRoom -= w
		room -= w
	}
	tail := ""
	for _, p := range slices.Backward(parts) {
		w := width(p)
		if w > room {
			break
		}
		tail = p + tail
		room -= w
	}
	return head + cut + tail
}

// wrap breaks a text at blanks into rows of at most so many cells. A word that is longer, as a URL,
// stays whole, in a row of its own.
func wrap(s string, cells int) []string {
	var rows []string
	row := ""
	for word := range strings.SplitSeq(s, " ") {
		switch {
		case row == "":
			row = word
		case width(row)+1+width(word) <= cells:
			row += " " + word
		default:
			rows, row = append(rows, row), word
		}
	}
	return append(rows, row)
}

// units are the parts of a text that are not cut through: a character with its accents, or an
// escape of printable, half of which would read as something else.
func units(s string) []string {
	var parts []string
	for len(s) > 0 {
		n := escape(s)
		if n == 0 {
			_, n = utf8.DecodeRuneInString(s)
		}
		for n < len(s) {
			r, size := utf8.DecodeRuneInString(s[n:])
			if text.RuneWidth(r) > 0 {
				break
			}
			n += size
		}
		parts, s = append(parts, s[:n]), s[n:]
	}
	return parts
}

// escape returns the length of the escape that s begins with, or 0.
func escape(s string) int {
	if len(s) < 2 || s[0] != '\\' {
		return 0
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
	if digits == 0 && !strings.ContainsRune("abfnrtv", rune(s[1])) || len(s) < 2+digits {
		return 0
	}
	if strings.Trim(s[2:2+digits], "0123456789abcdef") != "" {
		return 0
	}
	return 2 + digits
}
