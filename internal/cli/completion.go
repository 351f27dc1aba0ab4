package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// The scripts ask the command itself, so they need not change when it does.
var completionScripts = map[string]string{
	"bash": `_interlock() {
	mapfile -t COMPREPLY < <(interlock complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	((${#COMPREPLY[@]})) || compopt -o default
}
complete -F _interlock interlock
`,
	"zsh": `#compdef interlock
_interlock() {
	local -a found
	found=("${(@f)$(interlock complete -- "${(@)words[2,$CURRENT]}" 2>/dev/null)}")
	[[ -n $found[1] ]] && compadd -a found || _files
}
compdef _interlock interlock
`,
	"fish": `complete -c interlock -f -a '(interlock complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

// Run prints the script.
func (c *completionCommand) Run(t terminal) error {
	_, err := fmt.Fprint(t.out, completionScripts[c.Shell])
	return err
}

// completeCommand prints what can stand where the last word is.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run completes commands, flags, and the names of locks that are held.
func (c *completeCommand) Run(ctx context.Context, t terminal, line *commandLine, k *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	if slices.Contains(words[:len(words)-1], "--") {
		return nil // the words of another command
	}
	node := k.Model.Node
	flags := slices.Clone(node.Flags)
	for _, w := range words[:len(words)-1] {
		for _, child := range node.Children {
			if child.Name == w {
				node = child
				flags = append(flags, child.Flags...)
			}
		}
	}
	var found []string
	switch {
	case strings.HasPrefix(last, "-"):
		for _, f := range flags {
			if !f.Hidden {
				found = append(found, "--"+f.Name)
			}
		}
	case len(node.Children) > 0:
		for _, child := range node.Children {
			if !child.Hidden {
				found = append(found, child.Name)
			}
		}
	case slices.Contains([]string{"show", "watch", "break", "run", "elect"}, node.Name):
		found = c.names(ctx, line, last)
	}
	for _, f := range found {
		if strings.HasPrefix(f, last) {
			fmt.Fprintln(t.out, f)
		}
	}
	return nil
}

// names returns the names of locks that somebody holds. Whatever goes wrong, there is nothing to complete.
func (c *completeCommand) names(ctx context.Context, line *commandLine, prefix string) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	i, done, _, err := line.inspector(ctx, terminal{out: discard{}, err: discard{}})
	if err != nil {
		return nil
	}
	defer done()
	lines, _ := i.Lines(ctx, prefix)
	for _, l := range lines {
		names = append(names, l.Name)
	}
	return names
}

type discard struct{}

// Write implements io.Writer.
func (discard) Write(b []byte) (int, error) { return len(b), nil }
