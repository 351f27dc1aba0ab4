// Package printable shows what strangers wrote into a store, as a name or a note, to people: on a terminal and on a page.
package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is what somebody wrote, whoever it was, as it may be shown: it ends no row, tells a terminal nothing, turns no text around
// and hides nothing. What would is escaped as in Go.
func Text(s string) string {
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
