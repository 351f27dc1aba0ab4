// Command hunt turns on the seeded bugs of a module one by one and sees the test named for each of them fail.
//
// A bug that no test convicts is a hole in the tests: hunt then exits with 1. It exits with 1, too, when the table of
// bugs and the source disagree, when a named test does not exist, and when a test fails without any bug, since then its
// failure with one says nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := hunt(ctx, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "hunt:", err)
		os.Exit(1)
	}
}

func hunt(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("hunt", flag.ExitOnError)
	root := flags.String("root", ".", "the `folder` of the module")
	table := flags.String("table", "internal/mutant/mutants.txt", "the table of bugs, a `file` below the root")
	id := flags.String("id", "", "hunt only the bug with this `ID`")
	parallel := flags.Int("j", 4*runtime.GOMAXPROCS(0), "how many tests run at once; those that fail mostly wait")
	limit := flags.Duration("timeout", time.Minute, "how long one test may run; one that hangs has noticed the bug")
	race := flags.Bool("race", true, "build the tests with the race detector, which alone can see some bugs")
	complete := flags.Bool("complete", false, "require a line for every row of the catalogue of failures")
	list := flags.Bool("list", false, "only compare the table with the source; run nothing")
	_ = flags.Parse(args) // ExitOnError
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}

	bugs, err := readTable(filepath.Join(*root, *table))
	if err != nil {
		return err
	}
	seeded, err := findSeeds(*root)
	if err != nil {
		return err
	}
	wrong := compare(bugs, seeded)
	if *complete {
		wrong = append(wrong, missingRows(bugs)...)
	}
	for _, w := range wrong {
		fmt.Println("table:", w)
	}
	if *list {
		return verdict(len(wrong), 0)
	}

	if *id != "" {
		if bugs = pick(bugs, *id); len(bugs) == 0 {
			return fmt.Errorf("no bug %q in %s", *id, *table)
		}
	}
	h := hunter{root: *root, limit: *limit, race: *race, parallel: max(1, *parallel), out: os.Stdout}
	escaped, err := h.run(ctx, bugs)
	if err != nil {
		return err
	}
	return verdict(len(wrong), escaped)
}

func verdict(wrong, escaped int) error {
	var parts []string
	if escaped > 0 {
		parts = append(parts, fmt.Sprintf("%d bugs NOT convicted", escaped))
	}
	if wrong > 0 {
		parts = append(parts, fmt.Sprintf("%d faults in the table", wrong))
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(parts, ", "))
}

func pick(bugs []bug, id string) []bug {
	for _, b := range bugs {
		if b.id == id {
			return []bug{b}
		}
	}
	return nil
}
