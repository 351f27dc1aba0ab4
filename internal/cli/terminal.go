package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/interlock-go/interlock/internal/printable"
)

// terminal is where a command reads and writes.
type terminal struct {
	out, err   io.Writer
	columns    int // of out, 0 where it is no terminal
	errColumns int // of err, the same
	colours    bool
	person     bool // somebody reads err as it comes
	asJSON     bool // each line of err is an object with an error, a warning or a notice
}

// print writes the answer to what was asked, in a line.
func (t terminal) print(format string, args ...any) {
	fmt.Fprintln(t.out, printable.Text(fmt.Sprintf(format, args...)))
}

// say writes a notice to stderr: in a line, as logs and scripts read it, or in as many as it takes on
// a terminal.
func (t terminal) say(format string, args ...any) {
	if t.asJSON {
		_ = printJSON(t.err, struct {
			Notice string `json:"notice"`
		}{fmt.Sprintf(format, args...)})
		return
	}
	rows := []string{"interlock: " + printable.Text(fmt.Sprintf(format, args...))}
	if t.errColumns > 0 {
		rows = wrap(rows[0], max(t.errColumns, leastWrap))
	}
	fmt.Fprintln(t.err, strings.Join(rows, "\n"))
}

// warn writes a warning of what could lose locks or secrets, in a line.
func (t terminal) warn(text string) {
	if t.asJSON {
		_ = printJSON(t.err, struct {
			Warning string `json:"warning"`
		}{text})
		return
	}
	t.say("warning: %s", text)
}

// mute returns t without notices and warnings: only the error is printed, by the caller.
func (t terminal) mute() terminal {
	t.err, t.person = io.Discard, false
	return t
}

// complain prints an error, unless it has been printed already.
func (t terminal) complain(err error) {
	var e *exitError
	var command *commandError
	if err == nil || errors.As(err, &command) && command.err == nil || errors.As(err, &e) && e.err == nil {
		return
	}
	text := strings.TrimPrefix(oneLine(err), "interlock: ")
	if t.asJSON {
		_ = printJSON(t.err, struct {
			Error  string `json:"error"`
			Status int    `json:"status"`
		}{text, statusOf(err)})
		return
	}
	t.say("%s", text)
}

// width returns the cells that a table may take in a line.
func (t terminal) width() int { return max(t.columns, leastWidth) }

// part prints a text behind a label, in as many lines as it takes; those after the first begin
// below its beginning.
func (t terminal) part(label, s string) {
	if s == "" {
		return
	}
	for i, row := range wrap(printable.Text(s), max(t.width()-width(label), leastWrap)) {
		if i == 1 {
			label = strings.Repeat(" ", width(label))
		}
		fmt.Fprintln(t.out, strings.TrimRight(label+row, " "))
	}
}

// leastWrap is the least room for text: to break it at each word would help nobody.
const leastWrap = 20

// leastWidth is the width where no terminal says that it has more.
const leastWidth = 80

// isTerminal reports whether f is a terminal that shows colours.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" }

// widthOf returns the cells in a line of a terminal, or 0 where f is none.
func widthOf(f *os.File) int {
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// printJSON prints v in a line of JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
