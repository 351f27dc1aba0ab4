package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/interlock-go/interlock/internal/printable"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// The scripts ask the command itself, so they need not change when it does. What stands after -- is
// another command's common.
var completionScripts = map[string]string{
	"bash": `# Completion of interlock for bash. Source it, or put it into /usr/share/bash-completion/completions/interlock.
_interlock() {
	local i last=${COMP_WORDS[COMP_CWORD]} cur=${COMP_WORDS[COMP_CWORD]} cword=$COMP_CWORD words=("${COMP_WORDS[@]}")
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]] && declare -F _command_offset >/dev/null; then
			_command_offset $((i + 1))
			return
		fi
	done
	# bash takes the : and the = of a URL, a flag or a name for words of their own, and puts in what comes after the last of them.
	if declare -F _get_comp_words_by_ref >/dev/null; then
		_get_comp_words_by_ref -n := cur words cword
	fi
	mapfile -t COMPREPLY < <(interlock complete -- "${words[@]:1:cword}" 2>/dev/null)
	if ((${#COMPREPLY[@]} == 0)); then
		compopt -o default
		return
	fi
	[[ $last != [:=] ]] || last=
	for i in "${!COMPREPLY[@]}"; do
		printf -v "COMPREPLY[$i]" %q "${COMPREPLY[i]}"
		COMPREPLY[i]=${COMPREPLY[i]#"${cur%"$last"}"}
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

// completeCommand prints the words that can stand in the place of the last one.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run completes commands, flags, and the names of locks that are held.
func (c *completeCommand) Run(ctx context.Context, t terminal, common *commonFlags, k *kong.Kong) error {
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
	common.args = words // the store is the one that these name
	given := 0          // arguments of node
	flag := ""          // whose value the next word is
	for _, w := range words[:len(words)-1] {
		child := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == w })
		name, assignedTo, assigned := strings.Cut(w, "=")
		switch {
		case flag != "":
			common.choose(flag, w)
			flag = ""
		case strings.HasPrefix(w, "-") && assigned:
			common.choose(name, assignedTo)
		case strings.HasPrefix(w, "-"):
			if slices.ContainsFunc(flags, func(f *kong.Flag) bool {
				return !f.IsBool() && slices.Contains(spellings(f), w)
			}) {
				flag = w
			}
		case child >= 0:
			node = node.Children[child]
			flags = append(flags, node.Flags...)
		default:
			given++
		}
	}
	var found []string
	switch {
	case flag != "": // perhaps a file, where it is not one of a few words
		found = choices(flags, flag)
	case strings.HasPrefix(last, "--") && strings.Contains(last, "="):
		flag, _, _ = strings.Cut(last, "=")
		for _, value := range choices(flags, flag) {
			found = append(found, flag+"="+value)
		}
	case strings.HasPrefix(last, "-"):
		for _, f := range flags {
			if f.Hidden {
				continue
			}
			for _, flag := range spellings(f) {
				if strings.HasPrefix(flag, "--") {
					found = append(found, flag)
				}
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
		found = c.names(ctx, common, last)
	}
	for _, f := range found {
		if strings.HasPrefix(f, last) {
			fmt.Fprintln(t.out, f)
		}
	}
	return nil
}

// choices are the words that the value of a flag is one of, or nil where it is free.
func choices(flags []*kong.Flag, flag string) []string {
	for _, f := range flags {
		if f.Enum != "" && slices.Contains(spellings(f), flag) {
			return f.EnumSlice()
		}
	}
	return nil
}

// spellings are all forms of a flag, those of one letter first. Of the names that it has beside its
// own kong takes one of one letter for a short one.
func spellings(f *kong.Flag) []string {
	var short, long []string
	if f.Short != 0 {
		short = append(short, "-"+string(f.Short))
	}
	for _, name := range slices.Concat([]string{f.Name}, f.Aliases) {
		if len(name) == 1 {
			short = append(short, "-"+name)
		} else {
			long = append(long, "--"+name)
		}
	}
	return slices.Concat(short, long)
}

// names returns the names of locks that are held. On an error there is nothing to complete.
func (c *completeCommand) names(ctx context.Context, common *commonFlags, prefix string) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	v, err := common.view(ctx, terminal{out: io.Discard, err: io.Discard})
	if err != nil {
		return nil
	}
	defer v.close()
	lines, _ := v.Lines(ctx, prefix)
	for _, l := range lines {
		if printable.Text(l.Name) == l.Name { // a shell would show what cannot be seen
			names = append(names, l.Name)
		}
	}
	return names
}
