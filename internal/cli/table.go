package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
)

// leastWidth is what a table may take where no terminal says that it has more.
const leastWidth = 80

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" }

// widthOf is how many cells are in a line of a terminal, or 0 of what is none.
func widthOf(f *os.File) int {
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// outputFlag says how much of a table is shown.
type outputFlag struct {
	Output string `short:"o" enum:"narrow,wide" default:"narrow" placeholder:"narrow" help:"narrow: fits a terminal of 80 columns or more, and 80 where there is none, so long names and owners are cut; wide: every column, and nothing cut."`
}

// columns are what people read of a claim, those of a narrow table first. Each is one field, so that awk and eyes read it alike; only a
// name and a note may have blanks, which stand first and last.
var columns = []struct{ name, means string }{
	{"NAME", "the lock"},
	{"STATE", "holds, waits, or broken: taken away, and not let go yet"},
	{"OWNER", "program/user@host:pid, or what it calls itself for the program;\nforeign is another program that locks the same"},
	{"AGE", "how long it has held or waited"},
	{"TRUST", "how long it stays there unless it renews"},
	{"TOKEN", "the fencing token, " + envFence + "; - where there is none"},
	{"ID", "what interlock break takes, with the token, for this one"},
	{"KIND", "mutex, write, read; 1/3 is one of three permits"},
	{"PASSES", "how often its process has passed the lock on inside itself"},
	{"NOTE", "what it says of itself, as by --note"},
}

const (
	nameColumn  = 0
	stateColumn = 1
	ownerColumn = 2
	ageColumn   = 3
	trustColumn = 4
	narrow      = 6 // columns
)

// columnsTitle is what columnsHelp begins with.
const columnsTitle = "Columns"

// columnsHelp explains the columns in help and on the manual's page, where a line that is indented stays as it is.
func columnsHelp(which string) string {
	var b strings.Builder
	b.WriteString(columnsTitle + which + ":\n\n")
	for _, c := range columns {
		fmt.Fprintf(&b, "  %-6s  %s\n", c.name, strings.ReplaceAll(c.means, "\n", "\n"+strings.Repeat(" ", 10)))
	}
	return b.String()
}

// header is the first row of a table.
func header() []string {
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// row is a claim in all columns.
func (t terminal) row(name string, h driver.Holder, now time.Time) []string {
	return []string{
		printable.Text(name), t.state(h), field(h), age(h.Since, now), left(h, now), token(h.Fence),
		printable.Text(h.PublicID), kind(h), strconv.Itoa(h.Passes), printable.Text(h.Note),
	}
}

// claims prints the claims of lines, in order, one to a row: all columns, or the narrow ones in what there is of a terminal.
func (t terminal) claims(lines []driver.Line, output string) {
	now, rows := time.Now(), [][]string{header()}
	for _, l := range lines {
		for _, h := range l.Claims {
			rows = append(rows, t.row(l.Name, h, now))
		}
	}
	if output == "wide" {
		printTable(t.out, rows, 0)
		return
	}
	for i := range rows {
		rows[i] = rows[i][:narrow]
	}
	printTable(t.out, rows, t.width(), nameColumn, ownerColumn)
}

// width is what a table may take.
func (t terminal) width() int { return max(t.columns, leastWidth) }

// gap is how far columns stand apart, in cells.
const gap = 2

// printTable prints rows, the first of which is the header. Where they take more than limit cells, the columns that may be cut share what the
// others leave; 0 is no limit.
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

// fit makes columns narrower, until all together take no more than limit. Who needs less than an even part has what it needs.
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

func (t terminal) state(h driver.Holder) string {
	state, colour := "waits", text.FgYellow
	switch {
	case h.Broken:
		state, colour = "broken", text.FgRed
	case h.Held:
		state, colour = "holds", text.FgGreen
	}
	if t.colours {
		return colour.Sprint(state)
	}
	return state
}

func kind(h driver.Holder) string {
	switch {
	case h.Kind == driver.Permit && h.Limit == 0:
		return fmt.Sprintf("%d/?", h.Weight) // another program's, which keeps that to itself
	case h.Kind == driver.Permit:
		return fmt.Sprintf("%d/%d", h.Weight, h.Limit)
	}
	return h.Kind.String()
}

func token(f uint64) string {
	if f == 0 {
		return "-"
	}
	return strconv.FormatUint(f, 10)
}
