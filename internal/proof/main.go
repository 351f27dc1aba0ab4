//go:build unix

// Command proof finds out whether the promises hold for long, in time, under load and torture: all that go test -short leaves out.
//
// It runs the parts one after another, so that none makes another late, and prints a line for each: held, broken, or not judged
// and why not. Nothing is tried again. What came of a part, when, where and at which commit is kept in docs/proof.md, also that
// it was broken; a part that held there for the same sources is not run again, so that a run which was ended goes on where it
// was. The status is 1 only for what is broken, and 2 where nothing could be found out.
//
//	go run ./internal/proof             all parts
//	go run ./internal/proof ./redlock   those of a package, or of a module beside this one, as contrib/gocron
//	go run ./internal/proof models 'seeded bugs of .'   those, by their names
//	go run ./internal/proof -again …    also what has held before
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/internal/nohup"
)

const pageFile = "docs/proof.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), nohup.Signals()...)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "proof:", err)
	if errors.Is(err, errBroken) {
		os.Exit(1)
	}
	os.Exit(2)
}

var errBroken = errors.New("what is broken above does not hold")

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("proof", flag.ExitOnError)
	again := flags.Bool("again", false, "also run what has held before for the same sources")
	bubbles := flags.String("bubbles", "^$", "which packages run in bubbles of virtual time, a `regexp` of their paths: those run 20 times")
	_ = flags.Parse(args) // ExitOnError

	all, err := list(ctx, *bubbles)
	if err != nil {
		return err
	}
	chosen, err := choose(ctx, all, flags.Args())
	if err != nil {
		return err
	}
	unlock, err := alone()
	if err != nil {
		return err
	}
	defer unlock()
	page, err := readPage(pageFile)
	if err != nil {
		return err
	}
	page.keep(all)
	here, err := present(ctx)
	if err != nil {
		return err
	}

	start, counts, before := time.Now(), map[verdict]int{}, 0
	var unwritten error // a page that cannot be written does not end the night: the next part may find room
	for _, p := range chosen {
		if old := page.rows[p.name]; !*again && old.Verdict == held && here.sameSources(ctx, old.Commit) {
			before++
			continue
		}
		r := p.prove(ctx, out)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		counts[r.verdict]++
		fmt.Fprintln(out, r.line(p.name))
		now, err := present(ctx)
		if err != nil {
			return err
		}
		page.rows[p.name] = row{
			Verdict: r.verdict, Cases: r.cases, Took: r.took, Date: time.Now().UTC().Format(time.DateOnly),
			Commit: here.commitOf(now), Machine: here.machine, Command: p.command, Why: r.why,
		}
		here = now
		if unwritten = page.write(pageFile); unwritten != nil {
			fmt.Fprintln(out, "not written:", unwritten)
		}
	}
	fmt.Fprintf(out, "%d parts in %v: %d held, %d broken, %d not judged; %d held before and were not run again (AGAIN=1 runs them, too)\n",
		len(chosen), time.Since(start).Round(time.Second), counts[held], counts[broken], counts[notJudged], before)
	if counts[broken] > 0 {
		return errBroken
	}
	return unwritten
}

// choose returns the parts of the packages that match the patterns, those of the modules beside this one whose folders are
// patterns, and those whose own name is one; without a pattern all. The first part of a package is named like the package, and
// means all of them.
func choose(ctx context.Context, all []part, patterns []string) ([]part, error) {
	if len(patterns) == 0 {
		return all, nil
	}
	named := func(p part, pattern string) bool {
		return p.module != "" && p.module == path.Clean(pattern) || (p.of == "" || strings.Contains(p.name, " ")) && p.name == pattern
	}
	rest := slices.DeleteFunc(slices.Clone(patterns), func(pattern string) bool {
		return slices.ContainsFunc(all, func(p part) bool { return named(p, pattern) })
	})
	var packages []pkg
	if len(rest) > 0 {
		var err error
		if packages, err = golist(ctx, rest...); err != nil {
			return nil, err
		}
	}
	var out []part
	for _, p := range all {
		if slices.ContainsFunc(patterns, func(pattern string) bool { return named(p, pattern) }) ||
			p.of != "" && slices.ContainsFunc(packages, func(k pkg) bool { return k.path == p.of }) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no part of the proof is of %q: want a package with tests, such as ./redlock, or models or bench", patterns)
	}
	return out, nil
}

// alone keeps a second proof of this clone out, which would overwrite what the first has found out. The kernel gives the lock
// back when this process ends, however it ends.
func alone() (unlock func(), err error) {
	f, err := os.Open(filepath.Dir(pageFile))
	if err != nil {
		return nil, fmt.Errorf("this is not the folder of the module: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another proof runs in this clone, and they would make each other late: want one at a time, or another clone (%w)", err)
	}
	return func() { f.Close() }, nil
}
