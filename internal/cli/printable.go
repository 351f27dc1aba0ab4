package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
)

// printable is what somebody wrote, whoever it was, as it may be shown: it ends no row, tells a terminal nothing, turns no text around
// and hides nothing. What would is escaped as in Go.
func printable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || '~' < r }) { // as most are
		return s
	}
	var b strings.Builder
	marks := mostMarks // at the beginning they would stand on what is there before
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if marks++; !unicode.Is(unicode.M, r) {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && size == 1: // no UTF-8
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case shown(r) && marks <= mostMarks:
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// mostMarks is how many accents may stand on a letter. With more of them it would reach into the rows above and below.
const mostMarks = 4

// shown reports whether a character can be seen and changes nothing but its own place. Controls, marks of direction, blanks other than ' '
// and what Unicode has not assigned are no printable characters to Go; fillers and selectors of variants are, and stand there unseen.
func shown(r rune) bool {
	const blankBraille = '\u2800'
	return strconv.IsPrint(r) && r != blankBraille && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// width is how many cells of a terminal a text takes: East Asian characters take two.
func width(s string) int { return text.StringWidthWithoutEscSequences(s) }

// shorten cuts a text in the middle so that it takes no more cells than that: the beginning says what it is, and the end which one.
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

// units are the parts of a text that are not cut through: a character with its accents, or an escape of printable, half of which would read
// as something else.
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
