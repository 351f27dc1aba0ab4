package cli

import (
	"fmt"
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
	room := max(cells-width(cut), 0)
	head := text.Trim(s, (room+1)/2)
	room -= width(head)
	tail := len(s)
	for i := len(s); i > len(head); {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
		w := text.RuneWidth(r)
		if w > room {
			break
		}
		if room -= w; w > 0 { // an accent alone would stand on the cut
			tail = i
		}
	}
	return head + cut + s[tail:]
}
