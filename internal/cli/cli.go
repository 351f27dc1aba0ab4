package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	_ "github.com/interlock-go/interlock/all" // every scheme
)

// commandLine is the command line as kong reads it.
type commandLine struct {
	storeFlags
	JSON bool `help:"Print JSON instead of a table." name:"json"`

	Ls         lsCommand         `cmd:"" help:"List who holds and who waits, in order."`
	Show       showCommand       `cmd:"" help:"Show everything about one lock."`
	Watch      watchCommand      `cmd:"" help:"Follow one lock: print it now and after every change."`
	Break      breakCommand      `cmd:"" help:"Take a lock away from its holder."`
	Completion completionCommand `cmd:"" help:"Print the completion script of a shell."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
	Complete   completeCommand   `cmd:"" hidden:""`
}

// terminal is where a command reads and writes.
type terminal struct {
	out, err io.Writer
	colours  bool
}

// Main runs the command with these arguments, without its name, and returns the exit status.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, args, terminal{out: os.Stdout, err: os.Stderr, colours: isTerminal(os.Stdout)})
}

func run(ctx context.Context, args []string, t terminal) int {
	var line commandLine
	status := -1 // until kong asks to exit, after --help
	parser, err := newParser(&line, t, func(s int) { status = s })
	if err != nil {
		fmt.Fprintf(t.err, "interlock: %v\n", err)
		return exitInternal
	}
	parsed, err := parser.Parse(args)
	if status >= 0 {
		return status
	}
	if err != nil {
		fmt.Fprintf(t.err, "interlock: %v\n", err)
		var pe *kong.ParseError
		if errors.As(err, &pe) && pe.Context != nil && pe.Context.Command() != "" {
			fmt.Fprintf(t.err, "Try: interlock %s --help\n", firstWord(pe.Context.Command()))
		} else {
			fmt.Fprintln(t.err, "Try: interlock --help")
		}
		return exitUsage
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(&line, t); err != nil {
		var e *exitError
		if !errors.As(err, &e) || e.err != nil {
			fmt.Fprintf(t.err, "interlock: %s\n", oneLine(err))
		}
		return statusOf(err)
	}
	return 0
}

func newParser(line *commandLine, t terminal, exit func(int)) (*kong.Kong, error) {
	return kong.New(line,
		kong.Name("interlock"),
		kong.Description("Run a command under a lock, and see who holds and waits.\n\nExit status: 64 wrong command line, "+
			"69 store unusable, 75 lock not acquired, 76 lock lost; run otherwise returns its command's."),
		kong.Writers(t.out, t.err),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.UsageOnError(),
	)
}

type versionCommand struct{}

// Run prints the module's version and the toolchain.
func (versionCommand) Run(t terminal, line *commandLine) error {
	version, goVersion := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
		if info.Main.Version != "" {
			version = info.Main.Version
		}
	}
	if line.JSON {
		return printJSON(t.out, struct {
			Version string `json:"version"`
			Go      string `json:"go"`
		}{version, goVersion})
	}
	_, err := fmt.Fprintf(t.out, "interlock %s %s\n", version, goVersion)
	return err
}
