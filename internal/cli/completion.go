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

// The scripts ask the command itself, so they need not change when it does. What stands after -- is another command's line.
var completionScripts = map[string]string{
	"bash": `# Completion of interlock for bash. Source it, or put it into /usr/share/bash-completion/completions/interlock.
_interlock() {
	local i
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]] && declare -F _command_offset >/dev/null; then
			_command_offset $((i + 1))
			return
		fi
	done
	mapfile -t COMPREPLY < <(interlock complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	if ((${#COMPREPLY[@]} == 0)); then
		compopt -o default
		return
	fi
	for i in "${!COMPREPLY[@]}"; do
		printf -v "COMPREPLY[$i]" %q "${COMPREPLY[i]}"
	done
}
complete -F _interlock interlock
`,
	"zsh": `#compdef interlock
# Completion of interlock for zsh. Source it after compinit, or put it as _interlock into a folder of fpath.
_interlock() {
	local -a found
	local -i at=${words[(i)--]}
	if ((at < CURRENT)); then
		shift $at words
		((CURRENT -= at))
		_normal
		return
	fi
	found=("${(@f)$(interlock complete -- "${(@)words[2,$CURRENT]}" 2>/dev/null)}")
	if [[ -n $found[1] ]]; then
		compadd -a found
	else
		_files
	fi
}
if [[ $funcstack[1] == _interlock ]]; then
	_interlock "$@"
else
	compdef _interlock interlock
fi
`,
	"fish": `# Completion of interlock for fish. Put it into /usr/share/fish/vendor_completions.d/interlock.fish.
function __interlock_found
	set -l words (commandline -opc)
	set -l last (commandline -ct)
	set -l at (contains -i -- -- $words)
	if test -n "$at"
		set -e words[1..$at]
		__fish_complete_subcommand --commandline $words $last
		return
	end
	set -e words[1]
	set -l found (interlock complete -- $words $last 2>/dev/null)
	if set -q found[1]
		printf '%s\n' $found
	else
		__fish_complete_path $last
	end
end
complete -c interlock -f -a '(__interlock_found)'
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
	node, flags := k.Model.Node, slices.Clone(k.Model.Flags)
	given := 0     // arguments of node
	value := false // the next word is that of a flag
	for _, w := range words[:len(words)-1] {
		child := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == w })
		switch {
		case value:
			value = false
		case strings.HasPrefix(w, "-"):
			value = slices.ContainsFunc(flags, func(f *kong.Flag) bool {
				return !f.IsBool() && (w == "--"+f.Name || f.Short != 0 && w == "-"+string(f.Short))
			})
		case child >= 0:
			node = node.Children[child]
			flags = append(flags, node.Flags...)
		default:
			given++
		}
	}
	var found []string
	switch {
	case value: // perhaps a file
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
	case given >= len(node.Positional):
	case node.Positional[given].Enum != "":
		found = node.Positional[given].EnumSlice()
	case node.Positional[given].Name == "name", node.Positional[given].Name == "prefix":
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
