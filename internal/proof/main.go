//go:build unix

// Command proof finds out whether the promises hold for long, in time, under load and torture: all that go test -short leaves out.
//
// It runs the parts one after another, so that none makes another late, and prints a line for each: held, broken, or not judged
// and why not. Nothing is tried again. What came of a part, when, where and at which commit is kept in docs/proof.md, also that
// it was broken; a part that held there for the same sources is not run again, so that a run which was ended goes on where it
// was. The status is 1 only for what is broken.
//
//	go run ./internal/proof             all parts
//	go run ./internal/proof ./redlock   those of a package
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
	"slices"
	"syscall"
	"time"
)

const pageFile = "docs/proof.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(1)
	}
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
	for _, p := range chosen {
		if old := page.rows[p.name]; !*again && old.Verdict == held && here.sameSources(ctx, old.Commit) {
			before++
			continue
		}
		r := p.prove(ctx, out)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		counts[r.verdict]++
		fmt.Fprintln(out, r.line(p.name))
		page.rows[p.name] = row{
			Verdict: r.verdict, Cases: r.cases, Took: r.took, Date: time.Now().UTC().Format(time.DateOnly),
			Commit: here.commit, Machine: here.machine, Command: p.command, Why: r.why,
		}
		if err := page.write(pageFile); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d parts in %v: %d held, %d broken, %d not judged; %d held before and were not run again (AGAIN=1 runs them, too)\n",
		len(chosen), time.Since(start).Round(time.Second), counts[held], counts[broken], counts[notJudged], before)
	if counts[broken] > 0 {
		return errBroken
	}
	return nil
}

// choose returns the parts of the packages that match the patterns; without a pattern all, also those that are of no package.
func choose(ctx context.Context, all []part, patterns []string) ([]part, error) {
	if len(patterns) == 0 {
		return all, nil
	}
	packages, err := golist(ctx, patterns...)
	if err != nil {
		return nil, err
	}
	var out []part
	for _, p := range all {
		if slices.ContainsFunc(packages, func(k pkg) bool { return k.path == p.of }) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no part of the proof is of %q: want a package with tests, such as ./redlock", patterns)
	}
	return out, nil
}
