package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// printRow writes a row for people: options, a table of medians with the
// smallest and largest repetition, and what became of the goals. Without
// judge it leaves the goals out.
func printRow(w io.Writer, res result, judge bool) {
	r := res.row
	fmt.Fprintf(w, "%s: %s\n  options: %s; %s\n\n", r.name, r.title, r.options, repetitions(r.reps))
	table := [][]string{{"", "contender"}}
	for _, m := range r.metrics {
		table[0] = append(table[0], string(m))
	}
	for i, c := range r.contenders {
		line := []string{string(c.role), c.name}
		if err := res.failures[c.name]; err != nil {
			table = append(table, append(line, "FAILED"))
			continue
		}
		for _, m := range r.metrics {
			cell := "–"
			if s, ok := res.spreads[i][m]; ok {
				cell = fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.Min), number(s.Max))
			}
			line = append(line, cell)
		}
		table = append(table, line)
	}
	printTable(w, table)
	for _, c := range r.contenders {
		if err := res.failures[c.name]; err != nil {
			fmt.Fprintf(w, "  FAILED %s: %v\n", c.name, err)
		}
	}
	if judge {
		fmt.Fprintln(w)
		for _, v := range res.verdicts() {
			fmt.Fprintln(w, "  "+v.String())
		}
	}
	fmt.Fprintln(w)
}

func repetitions(n int) string {
	if n == 1 {
		return "1 repetition"
	}
	return strconv.Itoa(n) + " repetitions, interleaved, median (min–max)"
}

// String says what the goal is, what was measured, and whether that is
// enough.
func (v verdict) String() string {
	g := v.goal
	bound := number(g.factor)
	if g.than != "" {
		bound += " × " + g.than
	}
	text := fmt.Sprintf("%s, %s %s %s: ", g.who, g.metric, g.sign, bound)
	if !v.known {
		return "unknown  " + text + "not measured"
	}
	word := "NOT MET  "
	if v.met() {
		word = "met      "
	}
	text = word + text + number(v.value)
	if g.than != "" {
		text += " ×"
	}
	if g.stretch != 0 {
		reached := "not reached"
		if v.stretched() {
			reached = "reached"
		}
		text += fmt.Sprintf(" (stretch %s %s)", number(g.stretch), reached)
	}
	return text
}

// number writes x with three digits that mean something, or all digits before
// the point, in groups.
func number(x float64) string {
	if x == 0 || math.IsNaN(x) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(x)))))
	text := strconv.FormatFloat(x, 'f', digits, 64)
	whole, part, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if part = strings.TrimRight(part, "0"); part != "" {
		whole += "." + part
	}
	return whole
}

func printTable(w io.Writer, table [][]string) {
	var widths []int
	for _, line := range table {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range table {
		var b strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < 2 {
				b.WriteString("  " + cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}
