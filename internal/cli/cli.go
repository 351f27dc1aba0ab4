package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/interlock-go/interlock/internal/guard"
	"github.com/interlock-go/interlock/internal/printable"
)

// commandLine is the command line as kong reads it.
type commandLine struct {
	storeFlags
	JSON         bool        `help:"Print JSON instead of a table, and on stderr an object in each line: error and status, warning, or notice." name:"json"`
	Verbose      bool        `short:"v" help:"Say also what the store's driver logs, such as settings of a server that lose locks."`
	PrintVersion versionFlag `name:"version" short:"V" help:"Print the version."`

	Run        runCommand        `cmd:"" help:"Run a command under a lock."`
	Elect      electCommand      `cmd:"" help:"Run a command while leading, or print who leads."`
	Ls         lsCommand         `cmd:"" help:"List who holds and who waits, in order."`
	Show       showCommand       `cmd:"" help:"Show everything about one lock."`
	Watch      watchCommand      `cmd:"" help:"Follow one lock: who holds and who waits now, and then each change."`
	Break      breakCommand      `cmd:"" help:"Take a lock away from its holder, or the place of one that waits, who may stand in line again."`
	Serve      serveCommand      `cmd:"" help:"Serve pages, JSON and metrics of who holds and who waits, in one store or several."`
	Masters    mastersCommand    `cmd:"" help:"Show which masters of a redlock:// vote, and why others do not; give up dead ones."`
	Doctor     doctorCommand     `cmd:"" help:"Say what about a store would hurt locks, why, and how to mend it."`
	Prune      pruneCommand      `cmd:"" help:"Remove what the store keeps of names that nobody locks any more."`
	Migrate    migrateCommand    `cmd:"" help:"Make or renew the tables of a store in a database."`
	Completion completionCommand `cmd:"" help:"Print the completion script of a shell."`
	Man        manCommand        `cmd:"" help:"Print the page of the manual, as for man -l -."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
	Complete   completeCommand   `cmd:"" hidden:""`
	Demo       movedCommand      `cmd:"" hidden:"" passthrough:""`
	Torture    movedCommand      `cmd:"" hidden:"" passthrough:""`
}

// about says what the command is.
const about = "Run a command under a lock, and see who holds and waits."

// terminal is where a command reads and writes.
type terminal struct {
	out, err io.Writer
	columns  int // of out, 0 where it is no terminal
	colours  bool
	person   bool // somebody reads err as it comes
	asJSON   bool // a program reads both, where each line of err is an object with an error, a warning or a notice
}

// print says something that was asked for, in a line.
func (t terminal) print(format string, args ...any) {
	fmt.Fprintln(t.out, printable.Text(fmt.Sprintf(format, args...)))
}

// say tells something beside that, in a line.
func (t terminal) say(format string, args ...any) {
	if t.asJSON {
		_ = printJSON(t.err, struct {
			Notice string `json:"notice"`
		}{fmt.Sprintf(format, args...)})
		return
	}
	fmt.Fprintln(t.err, "interlock: "+printable.Text(fmt.Sprintf(format, args...)))
}

// warn tells of something that could lose locks or secrets, in a line.
func (t terminal) warn(text string) {
	if t.asJSON {
		_ = printJSON(t.err, struct {
			Warning string `json:"warning"`
		}{text})
		return
	}
	t.say("warning: %s", text)
}

// mute returns t for a command that tells of nothing but how it failed.
func (t terminal) mute() terminal {
	t.err, t.person = io.Discard, false
	return t
}

// Main runs the command with these arguments, without its name, and returns the exit status. A command of run that died
// of Ctrl-C makes this process do so, too: a shell's loop around it ends only then.
func Main(args []string) int {
	status, by := run(args, terminal{
		out: os.Stdout, err: os.Stderr, columns: widthOf(os.Stdout), colours: isTerminal(os.Stdout), person: term.IsTerminal(int(os.Stderr.Fd())),
	})
	if by == syscall.SIGINT {
		guard.DieOf(by)
	}
	return status
}

// run returns the exit status, and the signal that a command died of.
func run(args []string, t terminal) (status int, by syscall.Signal) {
	out := &output{Writer: t.out}
	t.out = out
	if line := plainRun(args); line != nil {
		t.asJSON = line.JSON
		slog.SetDefault(slog.New(newWarnings(t, "run", line)))
		return line.ended(t, out.unless(line.Run.Run(context.Background(), t, line)))
	}
	line := commandLine{storeFlags: storeFlags{args: args}}
	status = -1 // until kong asks to exit, after --help
	parser, err := newParser(&line, t, func(s int) { status = s })
	if err != nil {
		t.say("%v", err)
		return exitInternal, 0
	}
	parsed, err := parser.Parse(args)
	if status >= 0 || out.err != nil { // of --help or --version
		return line.ended(t, out.unless(nil))
	}
	if err != nil {
		command := ""
		if pe := (*kong.ParseError)(nil); errors.As(err, &pe) && pe.Context != nil {
			command = firstWord(pe.Context.Command())
		}
		t.say("%s", misread(err, command, args))
		if command != "" {
			fmt.Fprintf(t.err, "Try: interlock %s --help\n", command)
		} else {
			fmt.Fprintln(t.err, "Try: interlock --help")
		}
		return usageStatus(args), 0
	}
	t.asJSON = line.JSON
	ctx, command := context.Background(), firstWord(parsed.Command())
	slog.SetDefault(slog.New(newWarnings(t, command, &line)))
	if command != "run" && command != "elect" {
		// Those two catch signals themselves, and leave alone what was ignored when they started.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	return line.ended(t, out.unless(parsed.Run(&line, t)))
}

// ended says how the command of the line ended, for run.
func (l *commandLine) ended(t terminal, err error) (status int, by syscall.Signal) {
	err = starved(err)
	t.complain(err)
	var ended *commandError
	if errors.As(err, &ended) {
		by = ended.by
	}
	return statusOf(err), by
}

// ofFlock is what is said of the flags of flock(1) that run does not have. The others it has under the same names.
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

// misread is kong's error for people. Of a time it says what would be right; of a flag of flock(1), what to do instead; of a name such as -5, which
// kong has taken for flags, how to give it.
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

// complain says what went wrong, if nobody has said so yet.
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

func newParser(line *commandLine, t terminal, exit func(int)) (*kong.Kong, error) {
	return kong.New(line,
		kong.Name("interlock"),
		kong.Description(about+"\n\n"+storesHelp()+"\n\n"+statusHelp()+
			"\n\nWhat a lock is for, and what the locks of a store are worth, is shown by another program: interlock-lab demo, interlock-lab torture."),
		kong.NamedMapper("wait", kong.MapperFunc(decodeWait)),
		kong.Writers(t.out, t.err),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.UsageOnError(),
	)
}

// modulePath is the module of the command, which the program may need as one of others.
const modulePath = "github.com/interlock-go/interlock"

// moduleVersion returns the version of Interlock in a program, or "" when it does not say.
func moduleVersion(info *debug.BuildInfo) string {
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return ""
}

// versions returns the module's version and the toolchain.
func versions() (version, goVersion string) {
	version = "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
		if v := moduleVersion(info); v != "" {
			version = v
		}
	}
	return version, goVersion
}

// versionFlag is what people try first to see what they have.
type versionFlag bool

// BeforeReset prints the versions and ends the command, whatever else stands on its line.
func (versionFlag) BeforeReset(k *kong.Kong) error {
	version, goVersion := versions()
	_, err := fmt.Fprintf(k.Stdout, "interlock %s %s\n", version, goVersion)
	k.Exit(0)
	return err
}

type versionCommand struct{}

// Run prints the versions.
func (versionCommand) Run(t terminal, line *commandLine) error {
	version, goVersion := versions()
	if line.JSON {
		return printJSON(t.out, struct {
			Version string `json:"version"`
			Go      string `json:"go"`
		}{version, goVersion})
	}
	_, err := fmt.Fprintf(t.out, "interlock %s %s\n", version, goVersion)
	return err
}
