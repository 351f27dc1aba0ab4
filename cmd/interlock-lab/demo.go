package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/interlock-go/interlock/examples/coupons/stage"
	"github.com/interlock-go/interlock/internal/cli"
)

type demoCommand struct {
	Coupons couponsCommand `cmd:"" help:"Shops that are processes sell coupons: without a lock, with one, and what the token is for."`
	Shop    shopCommand    `cmd:"" hidden:""`
}

type couponsCommand struct {
	Servers int           `help:"Shops, each a process of its own." default:"4"`
	Coupons int           `help:"How many coupons there are." default:"100"`
	Buyers  int           `help:"How many people want one: twice as many at least. Default: four times as many." placeholder:"N"`
	TTL     time.Duration `help:"TTL of the locks: for so long a stopped holder holds up the others. Default: 2s, or the shortest that the store gives." placeholder:"2s" name:"ttl"`
	SVG     string        `help:"Write a chart into this file." placeholder:"FILE" name:"svg" type:"path"`
}

// Run plays the coupons. Its status is 0 when every act has shown what it must, also that it goes wrong where it must.
func (c *couponsCommand) Run(ctx context.Context, t terminal, line *commandLine) error {
	config := stage.Config{Servers: c.Servers, Coupons: c.Coupons, Buyers: c.Buyers, TTL: c.TTL, Command: shopProcess}
	if err := config.Check(); err != nil {
		return usage("%w", err)
	}
	if line.Store != "" || line.StoreFile != "" { // else the play has one of its own
		storeURL, err := line.url(t)
		if err != nil {
			return err
		}
		config.Store = storeURL
	}
	if t.person {
		config.Progress = func(line string) { fmt.Fprintln(t.err, line) }
	}
	report, err := stage.Run(ctx, config)
	if t.person {
		fmt.Fprintln(t.err)
	}
	if errors.Is(err, stage.ErrStore) {
		return cli.WithStatus(cli.ExitStore, err)
	}
	if err != nil {
		return err
	}
	if c.SVG != "" {
		if err := os.WriteFile(c.SVG, report.SVG(), 0o644); err != nil {
			return cli.WithStatus(cli.ExitInternal, err)
		}
	}
	if line.JSON {
		err = printJSON(t.out, report)
	} else {
		t.coupons(report)
	}
	return errors.Join(err, report.Err())
}

// shopProcess is this program again, as a shop. Its name is given because a program can be called by another one.
func shopProcess() *exec.Cmd {
	self, err := os.Executable()
	cmd := exec.Command(self, "demo", "shop")
	cmd.Args[0], cmd.Err = "interlock-lab", errors.Join(cmd.Err, err)
	return cmd
}

// shopCommand is a process that the play starts, and nobody else.
type shopCommand struct{}

// Run serves until standard input ends.
func (shopCommand) Run(ctx context.Context) error { return stage.RunShop(ctx, os.Stdin, os.Stdout) }

// coupons prints what the play has shown.
func (t terminal) coupons(r *stage.Report) {
	fmt.Fprintf(t.out, "%d coupons, %d buyers, %d shops, a database (%s), and locks in %s with a TTL of %v\n\n",
		r.Coupons, r.Buyers, r.Servers, r.Database, r.Store, time.Duration(r.TTL))
	w := table.NewWriter()
	w.SetOutputMirror(t.out)
	w.SetStyle(cli.TableStyle())
	w.AppendHeader(table.Row{"act", "", "stock", "sold", "sold twice", "left", "oversold", "late write", ""})
	for _, a := range r.Acts {
		late := "-"
		if a.Stop != nil {
			late = "refused"
			if a.Stop.Written {
				late = "accepted"
			}
		}
		w.AppendRow(table.Row{a.Number, a.Title, a.Stock, a.Sold, a.Twice, a.Left, a.Oversold, late, t.verdict(a)})
	}
	w.Render()
	for _, a := range r.Acts {
		fmt.Fprintf(t.out, "\n%s", hanging(fmt.Sprintf("%d  ", a.Number), a.Story(), 100))
		for _, m := range a.Missing {
			fmt.Fprintf(t.out, "%s", hanging("   ! ", m, 100))
		}
	}
}

// verdict says whether an act went wrong or right, and whether it was to.
func (t terminal) verdict(a stage.Act) string {
	word, colour := "right", text.FgGreen
	switch {
	case len(a.Missing) > 0:
		word, colour = "NOT AS IT MUST BE", text.FgHiRed
	case a.MustErr:
		word, colour = "wrong, as it must be", text.FgRed
	}
	if t.colours {
		return colour.Sprint(word)
	}
	return word
}

// hanging breaks a text into lines of at most width, the first behind head and the others as far in.
func hanging(head, s string, width int) string {
	var b strings.Builder
	b.WriteString(head)
	column := len(head)
	for i, word := range strings.Fields(s) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", len(head)))
			column = len(head)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
	return b.String()
}
