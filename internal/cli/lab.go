package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Here stands what interlock-lab uses of this package, which knows nothing of the lab: the store by
// the same flags, the same exit statuses, tables that look alike. What the lab links (torture, the
// play, test servers) is in no interlock.

// The exit statuses that interlock-lab has as well.
const (
	ExitUsage    = exitUsage    // the command line is wrong
	ExitStore    = exitStore    // the store cannot be used
	ExitInternal = exitInternal // anything else, as what has not shown what it must
)

// WithStatus returns err with the exit status that [StatusOf] finds.
func WithStatus(status int, err error) error { return &exitError{status, err} }

// StatusOf returns the exit status for an error, 0 for nil.
func StatusOf(err error) int { return statusOf(err) }

// StoreGiven reports whether the command line, which args is, names a store, by --store or
// --store-file.
func StoreGiven(args []string) bool { return given(args, "--store") || given(args, "--store-file") }

// StoreURL returns the URL of the store: that of the flag --store, which a variable may have set,
// the first line of the file of --store-file, or the embedded store of this user where both are
// empty; and a warning for people, if the URL was given in an unwise way.
func StoreURL(args []string, store, file string) (storeURL, warning string, err error) {
	return (&storeFlags{Store: store, StoreFile: file, args: args}).url()
}

// TableStyle is how tables look, those of the lab by package table: columns and nothing else.
func TableStyle() table.Style {
	return table.Style{
		Name:   "plain",
		Box:    table.BoxStyle{PaddingRight: strings.Repeat(" ", gap)},
		Format: table.FormatOptions{Header: text.FormatUpper},
	}
}

// movedCommand is a command that interlock-lab has. Whatever its arguments, the answer is where to
// find it.
type movedCommand struct {
	Args []string `arg:"" optional:""`
}

// Run says so. The arguments are not repeated: a URL among them may have a password.
func (*movedCommand) Run(k *kong.Context) error {
	name := firstWord(k.Command())
	return &exitError{exitUsage, fmt.Errorf("%s is a command of interlock-lab, which tries locks and is a program of its own: interlock-lab %[1]s …", name)}
}
