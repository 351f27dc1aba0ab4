// Command interlock-lab shows what a lock is for (demo) and what the locks of a store are worth (torture). It starts servers, kills
// processes and cuts links, and nothing of that is in interlock, the command that takes locks. See interlock-lab --help.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	_ "github.com/interlock-go/interlock/all" // every store can be tried
	"github.com/interlock-go/interlock/internal/cli"
	"github.com/interlock-go/interlock/torture"
)

func main() {
	torture.Main() // does not return in a worker of torture, which is this program executed again
	os.Exit(run(os.Args[1:], terminal{
		out: os.Stdout, err: os.Stderr,
		colours: term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "",
		person:  term.IsTerminal(int(os.Stderr.Fd())),
	}))
}

// commandLine is the command line as kong reads it.
type commandLine struct {
	Store     string `help:"The store's URL, as file:PATH. Default: for torture the embedded store of this user, for demo one of its own." placeholder:"URL" env:"INTERLOCK_STORE"`
	StoreFile string `help:"A file whose first line is the store's URL, so that its password is not seen by others." placeholder:"FILE" env:"INTERLOCK_STORE_FILE" type:"path"`
	JSON      bool   `help:"Print JSON instead of a table." name:"json"`

	PrintVersion versionFlag `name:"version" short:"V" help:"Print the version."`

	Demo    demoCommand    `cmd:"" help:"See for yourself what a lock is for, and a token."`
	Torture tortureCommand `cmd:"" help:"Kill, stop and cut off workers over the store, and judge what they saw."`

	args []string // as given
}

// url returns the store's URL, and says so if it was given in an unwise way.
func (l *commandLine) url(t terminal) (string, error) {
	storeURL, warning, err := cli.StoreURL(l.args, l.Store, l.StoreFile)
	if warning != "" {
		fmt.Fprintf(t.err, "interlock-lab: warning: %s\n", warning)
	}
	return storeURL, err
}

// terminal is where a command reads and writes.
type terminal struct {
	out, err io.Writer
	colours  bool
	person   bool // somebody reads err as it comes
}

// run runs the command with these arguments, without its name, and returns the exit status.
func run(args []string, t terminal) int {
	line := commandLine{args: args}
	status := -1 // until kong asks to exit, after --help
	parser, err := kong.New(&line,
		kong.Name("interlock-lab"),
		kong.Description("See what a lock is for, and try what the locks of a store are worth.\n\nExit status: 64 wrong command line, "+
			"69 store unusable, 70 something has not shown what it must. To run a command under a lock: interlock."),
		kong.Vars{"scenarios": scenarios()},
		kong.Writers(t.out, t.err),
		kong.Exit(func(s int) { status = s }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)
	if err != nil {
		fmt.Fprintf(t.err, "interlock-lab: %v\n", err)
		return cli.ExitInternal
	}
	parsed, err := parser.Parse(args)
	if status >= 0 {
		return status
	}
	if err != nil {
		fmt.Fprintf(t.err, "interlock-lab: %v\nTry: interlock-lab --help\n", err)
		return cli.ExitUsage
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(t.err, &slog.HandlerOptions{Level: slog.LevelError})))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	parsed.BindTo(ctx, (*context.Context)(nil))
	err = parsed.Run(&line, t)
	t.complain(err, line.JSON)
	return cli.StatusOf(err)
}

// complain says what went wrong.
func (t terminal) complain(err error, asJSON bool) {
	if err == nil {
		return
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	if asJSON {
		_ = printJSON(t.err, struct {
			Error  string `json:"error"`
			Status int    `json:"status"`
		}{text, cli.StatusOf(err)})
		return
	}
	fmt.Fprintf(t.err, "interlock-lab: %s\n", strings.TrimPrefix(text, "interlock: "))
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func usage(format string, args ...any) error {
	return cli.WithStatus(cli.ExitUsage, fmt.Errorf(format, args...))
}
