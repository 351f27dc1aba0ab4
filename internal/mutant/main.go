// Command mutant sees every test fail that claims to know a fault.
//
// A test that has never failed proves nothing. Each way in which locks are known to fail is a row of the catalogue,
// docs/failures.md, and has a test and a bug: data that says which lines of the source to change so that the failure
// comes back, and by which words the test fails then. This command compiles the tests with all bugs in them, turns on one at a
// time, and runs its test. A bug convicts nothing by a timeout, a panic or a failure with other words, and a test that
// fails without any bug says nothing about one: the command then exits with 1, as it does when the data and the source do
// not fit.
//
//	go run ./internal/mutant            hunts all bugs
//	go run ./internal/mutant -id A3     one of them
//	go run ./internal/mutant -pkg .     those of one package, also of a module beside this one
//	go run ./internal/mutant -list      only checks the data against the source
//	go run ./internal/mutant -page      prints the catalogue
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/interlock-go/interlock/internal/nohup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), nohup.Signals()...)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "mutant:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutant", flag.ExitOnError)
	root := flags.String("root", ".", "the `folder` of the module")
	rows := flags.String("rows", "internal/mutant/rows", "the `folder` of the catalogue's rows, below the root")
	id := flags.String("id", "", "hunt only the bug with this `ID`, or those of this row")
	pkg := flags.String("pkg", "", "hunt only the bugs of the tests in this `folder`, . or ./redlock")
	parallel := flags.Int("j", 4*runtime.GOMAXPROCS(0), "how many tests run at once; those that fail mostly wait")
	limit := flags.Duration("timeout", 2*time.Minute, "how long one test may run")
	race := flags.Bool("race", true, "build the tests with the race detector, which alone can see some bugs")
	list := flags.Bool("list", false, "check the data against the source and the catalogue; run nothing")
	page := flags.Bool("page", false, "print the catalogue as a page and run nothing")
	_ = flags.Parse(args) // ExitOnError
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: want flags only, see -help", flags.Arg(0))
	}

	if target, err := filepath.EvalSymlinks(*root); err == nil { // or reading it says why not
		*root = target
	}
	bugs, err := readBugs(*root)
	if err != nil {
		return err
	}
	parts, err := readParts(*root, *rows)
	if err != nil {
		return err
	}
	if err := complete(parts, bugs); err != nil {
		return err
	}
	if *page {
		return writePage(os.Stdout, parts, bugs)
	}
	if *id != "" {
		bugs = slices.DeleteFunc(bugs, func(b *bug) bool { return b.id != *id && b.row != *id })
		if len(bugs) == 0 {
			return fmt.Errorf("no bug and no row %q", *id)
		}
	}
	if *pkg != "" {
		bugs = slices.DeleteFunc(bugs, func(b *bug) bool { return b.pkg != path.Clean(filepath.ToSlash(*pkg)) })
		if len(bugs) == 0 {
			return fmt.Errorf("no bug in %s: want a folder with testdata/bugs, such as . or ./redlock", *pkg)
		}
	}
	if *list {
		dir, err := os.MkdirTemp("", "hunt")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		_, err = seed(*root, dir, bugs)
		return err
	}
	h := hunter{root: *root, limit: *limit, race: *race, parallel: max(1, *parallel), out: os.Stdout}
	escaped, err := h.run(ctx, bugs)
	if escaped > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d bugs NOT convicted", escaped, len(bugs)))
	}
	return err
}
