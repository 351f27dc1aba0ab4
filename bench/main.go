// Bench measures Interlock side by side with floors, which nothing that does
// the same work can beat, and with what people use instead.
//
//	go run -C bench .                 everything, some minutes
//	go run -C bench . -row embedded   one row
//	go run -C bench . -row 'redis-*'  some rows
//	go run -C bench . -reps 3         fewer repetitions, wider spreads
//	go run -C bench . -short          does everything work? no verdicts
//	go run -C bench . -json           for programs
//	go run -C bench . -cpuprofile DIR where does the time go?
//
// All contenders of a row run interleaved, A B C A B C …, on whatever the
// machine does meanwhile; only medians and their ratios mean something. Every
// contended run checks exclusion through memory that no lock knows of, and an
// overlap or a lost update fails the row and the program. A missed goal does
// not: it is printed. Linux only.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if code, yes := beWorker(); yes {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures what the arguments ask for. Its error says that figures cannot
// be had or are void, never that they are bad.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := flags.String("row", "", "run only this `row`, or those that fit a pattern")
	reps := flags.Int("reps", 0, "repeat each row `n` times instead of as often as its figures need")
	quick := flags.Bool("short", false, "see that everything works; no verdicts")
	asJSON := flags.Bool("json", false, "print JSON")
	profiles := flags.String("cpuprofile", "", "leave CPU profiles of the workers in this `directory`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *profiles != "" {
		if err := os.Setenv(profileVariable, *profiles); err != nil {
			return err
		}
	}
	rows, err := choose(*only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "interlock-bench-bin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	rec := record{Machine: thisMachine(), Started: time.Now().UTC().Truncate(time.Second), Short: *quick}
	if !*asJSON {
		fmt.Fprintf(out, "%s\n%s\n\n", rec.Started.Format(time.RFC3339), rec.Machine)
	}
	var broken []string
	for _, r := range rows {
		if *quick {
			r.reps, r.scale = 1, cmp.Or(r.short, short)
		}
		if *reps > 0 {
			r.reps = *reps
		}
		r.scale.shrink = max(1, r.scale.shrink)
		if r.programs {
			if r.scale.bin, err = buildPrograms(ctx, dir); err != nil {
				return err
			}
		}
		res := r.measure(ctx, progressTo(progress))
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if *asJSON {
			rec.Rows = append(rec.Rows, recordRow(res, !*quick))
		} else {
			printRow(out, res, !*quick)
		}
		for name, err := range res.failures {
			broken = append(broken, fmt.Sprintf("%s: %s: %v", r.name, name, err))
		}
	}
	if *asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(rec); err != nil {
			return err
		}
	}
	if len(broken) > 0 {
		return errors.New("failed:\n" + strings.Join(broken, "\n"))
	}
	return nil
}

// choose finds the rows whose names fit a pattern, or all for the empty one.
func choose(pattern string) ([]row, error) {
	rows := allRows()
	if pattern == "" {
		return rows, nil
	}
	var fit []row
	var known []string
	for _, r := range rows {
		if yes, err := path.Match(pattern, r.name); err != nil {
			return nil, fmt.Errorf("row %q: %w", pattern, err)
		} else if yes {
			fit = append(fit, r)
		}
		known = append(known, r.name)
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("no row %q; there are %s", pattern, strings.Join(known, ", "))
	}
	return fit, nil
}

// progressTo is w if somebody looks at it, else nowhere.
func progressTo(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok {
		return io.Discard
	}
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return io.Discard
	}
	return w
}
