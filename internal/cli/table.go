package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// gap is how far columns stand apart, in cells.
const gap = 2

// printTable prints rows, the first of which is the header. Where they take more than limit cells,
// the columns that may be cut share what the others leave; 0 is no limit.
func printTable(w io.Writer, rows [][]string, limit int, cut ...int) {
	widths := make([]int, len(rows[0]))
	measure(widths, rows...)
	if limit > 0 {
		fit(widths, limit, cut...)
	}
	for _, row := range rows {
		_ = writeRow(w, row, widths)
	}
}

// measure widens columns to what rows need.
func measure(widths []int, rows ...[]string) {
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], width(cell))
		}
	}
}

// fit makes the columns in cut narrower, until all together take no more than limit. One that needs
// less than an even part of the room gets what it needs.
func fit(widths []int, limit int, cut ...int) {
	room := limit - gap*(len(widths)-1)
	for i, w := range widths {
		if !slices.Contains(cut, i) {
			room -= w
		}
	}
	slices.SortFunc(cut, func(a, b int) int { return widths[a] - widths[b] })
	for i, column := range cut {
		widths[column] = max(min(widths[column], room/(len(cut)-i)), 1)
		room -= widths[column]
	}
}

// writeRow prints a row. The last column ends where its text does.
func writeRow(w io.Writer, row []string, widths []int) error {
	var b strings.Builder
	for i, cell := range row {
		b.WriteString(text.Pad(shorten(cell, widths[i]), widths[i]+gap, ' '))
	}
	_, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	return err
}
