package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/interlock-go/interlock/internal/guard"
)

// commandLine is the command line as kong reads it.
type commandLine struct {
	commonFlags
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

// Main runs the command with these arguments, without its name, and returns the exit status. A
// command of run that died of Ctrl-C makes this process do so, too: a shell's loop around it ends
// only then.
func Main(args []string) int {
	status, by := run(args, terminal{
		out: os.Stdout, err: os.Stderr, columns: widthOf(os.Stdout), errColumns: widthOf(os.Stderr),
		colours: isTerminal(os.Stdout), person: term.IsTerminal(int(os.Stderr.Fd())),
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
		slog.SetDefault(slog.New(&warnings{t: t, least: leastLevel(t, "run", line.Verbose, line.Run.Quiet)}))
		return ended(t, out.unless(line.Run.Run(context.Background(), t, &line.commonFlags)))
	}
	line := commandLine{commonFlags: commonFlags{storeFlags: storeFlags{args: args}}}
	status = -1 // until kong asks to exit, after --help
	parser, err := newParser(&line, t, func(s int) { status = s })
	if err != nil {
		t.say("%v", err)
		return exitInternal, 0
	}
	parsed, err := parser.Parse(args)
	if status >= 0 || out.err != nil { // of --help or --version
		return ended(t, out.unless(nil))
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
	slog.SetDefault(slog.New(&warnings{t: t, least: leastLevel(t, command, line.Verbose, line.Run.Quiet || line.Elect.Quiet)}))
	if command != "run" && command != "elect" {
		// Those two catch signals themselves, and leave alone what was ignored when they started.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	return ended(t, out.unless(parsed.Run(&line.commonFlags, t)))
}

// ended prints the error of the command, and returns what run returns.
func ended(t terminal, err error) (status int, by syscall.Signal) {
	err = starved(err)
	t.complain(err)
	var command *commandError
	if errors.As(err, &command) {
		by = command.by
	}
	return statusOf(err), by
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

// RunEarly runs a plain run in the embedded store and ends the process. For every other command
// line it returns at once. It is called by an init.
func RunEarly(args []string) {
	line := plainRun(args)
	if line == nil || line.Store != "" && !strings.HasPrefix(line.Store, "file:") {
		return
	}
	// Not in this goroutine: until main begins it is bound to its thread, and slow to wake.
	go func() { os.Exit(Main(args)) }()
	select {}
}
