//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// page is docs/proof.md: what came of each part when it last ran. It is its own record, read before it is written again.
type page struct {
	order []string // of the parts
	rows  map[string]row
}

// row is what is known of a part. The zero row is that of one that has never run.
type row struct {
	Verdict                        verdict
	Cases                          int
	Took                           time.Duration
	Date, Commit, Machine, Command string
	Why                            []string // it is broken or not judged
}

const (
	head = `# What was proved, and when

` + "`make proof`" + ` finds out whether the promises hold for long, in time, under load and torture. It keeps this page: what
came of each part when it last ran. *Broken*: a test failed, and below stands which. *Not judged*: nothing can be said,
and below stands why. A part is the tests of a package, or a share of them that its ` + "`testdata/proof`" + ` names. A part "on a
slow machine" runs beside three busy neighbours on each core. A commit with a + had changes that were not committed.
[CONTRIBUTING](../CONTRIBUTING.md) says what else there is to know of the command.

| part | verdict | cases | time | date | commit | machine | command |
|---|---|---|---|---|---|---|---|
`
	why = "## Why: "
)

func readPage(path string) (*page, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &page{rows: map[string]row{}}, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := parsePage(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; want what make proof wrote, or no file", path, err)
	}
	return p, nil
}

func parsePage(text string) (*page, error) {
	p := &page{rows: map[string]row{}}
	_, rest, ok := strings.Cut(text, "|---|---|---|---|---|---|---|---|\n")
	if !ok {
		return nil, errors.New("no table of parts")
	}
	var of string // the part whose reasons are read
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		if of != "" && strings.HasPrefix(line, "- ") {
			r := p.rows[of]
			r.Why = append(r.Why, strings.TrimPrefix(line, "- "))
			p.rows[of] = r
			continue
		}
		if more, ok := strings.CutPrefix(line, "  "); ok && len(p.rows[of].Why) > 0 { // a reason goes on
			p.rows[of].Why[len(p.rows[of].Why)-1] += " " + more
			continue
		}
		if name, ok := strings.CutPrefix(line, why); ok {
			of = name
			continue
		}
		if line == "" {
			continue
		}
		name, r, err := parseRow(line)
		if err != nil {
			return nil, err
		}
		p.order, p.rows[name] = append(p.order, name), r
	}
	return p, nil
}

func parseRow(line string) (name string, r row, err error) {
	f := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
	if len(f) != 8 {
		return "", row{}, fmt.Errorf("%q is no row of a part", line)
	}
	if f[1] == never {
		return f[0], row{}, nil
	}
	r = row{Verdict: verdict(strings.Trim(f[1], "*")), Date: f[4], Commit: f[5], Machine: f[6], Command: strings.Trim(f[7], "`")}
	var failures [2]error
	r.Cases, failures[0] = strconv.Atoi(f[2])
	r.Took, failures[1] = time.ParseDuration(f[3])
	if err := errors.Join(failures[:]...); err != nil {
		return "", row{}, fmt.Errorf("%q: %w", line, err)
	}
	return f[0], r, nil
}

const never = "never run"

// keep makes the page one of these parts, and forgets others.
func (p *page) keep(parts []part) {
	p.order = nil
	rows := map[string]row{}
	for _, k := range parts {
		p.order = append(p.order, k.name)
		rows[k.name] = p.rows[k.name]
	}
	p.rows = rows
}

func (p *page) String() string {
	var b strings.Builder
	b.WriteString(head)
	for _, name := range p.order {
		r := p.rows[name]
		if r.Verdict == "" {
			fmt.Fprintf(&b, "| %s | %s | – | – | – | – | – | – |\n", name, never)
			continue
		}
		v := string(r.Verdict)
		if r.Verdict != held {
			v = "**" + v + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %v | %s | %s | %s | `%s` |\n", name, v, r.Cases, r.Took, r.Date, r.Commit, r.Machine, r.Command)
	}
	for _, name := range p.order {
		if len(p.rows[name].Why) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s%s\n\n", why, name)
		for _, w := range p.rows[name].Why {
			item(&b, w)
		}
	}
	return b.String()
}

// widest is how many columns a line of a page has at most.
const widest = 120

// item writes a reason as an item of a list, wrapped, with one space between its words.
func item(b *strings.Builder, text string) {
	line := "-"
	for word := range strings.FieldsSeq(text) {
		if line != "-" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > widest {
			b.WriteString(line + "\n")
			line = " "
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

// write replaces the page as a whole, so that a run which is ended leaves one that can be read.
func (p *page) write(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".proof-*") // of which git is told to take no notice
	if err != nil {
		return err
	}
	_, err = f.WriteString(p.String())
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
