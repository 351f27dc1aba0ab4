package cli

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/internal/lockname"
)

// commandWords returns the command's words of args as they were given, which kong read as parsed.
// It makes sure that NAME stands before the -- and nothing but NAME: `run -- cp a b` would run a
// under the lock cp. After -- any bytes may stand; kong replaces what is not UTF-8. A NAME may
// stand between two, and one that begins with a dash has to: `run -- "$NAME" -- cp a b`. Without --
// only their place would tell the command's flags from ours, and a person may have meant
// either: `run job head -n 5 log`.
func commandWords(args []string, command, name string, parsed []string) ([]string, error) {
	i := slices.Index(args, "--")
	own := args
	if i >= 0 {
		own = args[:i]
	}
	for _, a := range own {
		if !utf8.ValidString(a) {
			return nil, usage("%q is not UTF-8: want names and flags in UTF-8, and the command after --", a)
		}
	}
	if i < 0 {
		if slices.ContainsFunc(parsed, func(w string) bool { return len(w) > 1 && w[0] == '-' }) {
			// Its arguments are not repeated: they may be secret.
			return nil, usage("flags stand after the command's name: put -- before it, and they are the command's: interlock %s %s -- %s …", command, quoteWord(name), quoteWord(parsed[0]))
		}
		return parsed, nil
	}
	if len(parsed) > 0 && parsed[0] == "--" { // kong leaves the -- before what it reads no further
		parsed = parsed[1:]
	}
	switch words := args[i+1:]; {
	case len(parsed) == len(words):
		return words, nil
	case len(parsed) > len(words):
		return nil, usage("too many words before --: interlock %s NAME -- command arguments…", command)
	case len(words) > 2 && words[1] == "--" && strings.HasPrefix(words[2], "-") && !strings.HasPrefix(words[0], "-"):
		// The first -- is in the place of a NAME that was forgotten, and the second is the
		// command's own: `run -- grep -- -x file`.
		return nil, usage("NAME is missing before --: interlock %s NAME -- command arguments…", command)
	case len(words) == 1 || words[1] == "--":
		if !utf8.ValidString(words[0]) {
			return nil, usage("%q is not UTF-8: want names in UTF-8", words[0])
		}
		return words[min(2, len(words)):], nil
	case strings.HasPrefix(words[0], "-"):
		return nil, usage("NAME is missing before --, or if it is %[2]s, -- after it: interlock %[1]s -- %[2]s -- command arguments…", command, quoteWord(words[0]))
	default:
		return nil, usage("NAME is missing before --: interlock %s NAME -- command arguments…", command)
	}
}

// named returns an error for an empty name, as that of a variable that is not set. Any other may
// stand in a store, by some other program.
func named(name string) error {
	if name == "" {
		return usage("%w", lockname.Check(name))
	}
	return nil
}

// quoteWord quotes a word for a shell if that needs it.
func quoteWord(s string) string {
	if strings.ContainsAny(s, " \t'\"\\$`*?[]{}()<>|&;#~!") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// firstWord returns what stands before the first blank.
func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}
