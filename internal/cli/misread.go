package cli

import (
	"fmt"
	"strconv"
	"strings"
)

// ofFlock says what to do instead of the flags of flock(1) that run does not have. The others it
// has under the same names.
var ofFlock = map[string]string{
	"-c": withShell, "--command": withShell,
	"-u": withBreak, "--unlock": withBreak,
	"-o": withRest, "--close": withRest,
	"-F": beside, "--no-fork": beside,
	"--fcntl": "a lock is a name in a store, not a lock of the kernel",
}

const (
	withShell = "no shell is involved unless it is asked for: interlock run NAME -- sh -c 'command'"
	withBreak = "the lock is released when the command has ended; interlock break NAME takes it from its holder"
	withRest  = "the lock lasts as long as any process of the command: --kill-rest ends what the command leaves behind"
	beside    = "interlock stays beside the command, to renew the lock and to stop the command when it is lost"
)

// misread returns kong's error for people. For a time it says what would be right; for a flag of
// flock(1), what to do instead; for a name such as -5, which kong has taken for flags, how to give
// it.
func misread(err error, command string, args []string) string {
	if text, _, ok := strings.Cut(err.Error(), ": time: "); ok {
		return text + ": want a time with its unit, as 30s or 1m30s"
	}
	flag, ok := strings.CutPrefix(err.Error(), "unknown flag -")
	if name, _, _ := strings.Cut(flag, ","); command == "run" && ofFlock["-"+name] != "" {
		return fmt.Sprintf("unknown flag -%s: %s", name, ofFlock["-"+name])
	}
	if !ok || flag == "" || flag[0] < '0' || '9' < flag[0] {
		return err.Error()
	}
	for _, a := range args {
		switch {
		case !strings.HasPrefix(a, "-"+flag[:1]):
		case command == "run" || command == "elect":
			return fmt.Sprintf("unknown flag %s: a name that begins with a dash stands between two --: interlock %s -- %[1]s -- command arguments…", quoteWord(a), command)
		default:
			return fmt.Sprintf("unknown flag %s: a name that begins with a dash stands after --: interlock %s -- %[1]s", quoteWord(a), command)
		}
	}
	return err.Error()
}

// usageStatus returns the exit status for a command line that cannot be read: that of --exit-usage,
// if it can be found.
func usageStatus(args []string) int {
	for i, a := range args {
		value, ok := strings.CutPrefix(a, "--exit-usage=")
		switch {
		case a == "--":
			return exitUsage
		case a == "--exit-usage" && i+1 < len(args):
			value, ok = args[i+1], true
		}
		if n, err := strconv.Atoi(value); ok && err == nil && n >= 0 && n <= 255 {
			return n
		}
	}
	return exitUsage
}
