package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	times := flag.String("times", os.DevNull, "add how long each package took to this `file`")
	voids := flag.String("voids", os.DevNull, "add each void trial to this `file`")
	flag.Parse()
	t := tally{out: os.Stdout}
	err := func() error {
		for _, f := range []struct {
			path string
			to   *io.Writer
		}{{*times, &t.times}, {*voids, &t.voids}} {
			file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
			if err != nil {
				return err
			}
			defer file.Close()
			*f.to = file
		}
		return t.read(os.Stdin)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
}

// place is a test, or with an empty name what belongs to none of its package's.
type place struct{ pkg, test string }

// tally is what was said by tests of which nobody knows yet how they end.
type tally struct {
	out, times, voids io.Writer
	said              map[place][]string
	order             []place // of the first words
}

func (t *tally) read(r io.Reader) error {
	t.said = map[place][]string{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(t.out, "%s", line) // go itself, which has no events for everything
			} else {
				t.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take takes an event. A test that failed is told when it ends, and its parent after it; what passed is forgotten.
func (t *tally) take(e event) {
	at := place{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "output":
		if t.said[at] == nil {
			t.order = append(t.order, at)
		}
		t.said[at] = append(t.said[at], e.Output)
		if e.Test != "" && strings.Contains(e.Output, void) {
			fmt.Fprintf(t.voids, "%s %s: %s\n", e.Package, e.Test, strings.TrimSpace(e.Output))
		}
	case "pass", "skip", "fail":
		if e.Test == "" {
			t.end(e)
			return
		}
		if e.Action == "fail" {
			t.tell(at)
		}
		delete(t.said, at)
	}
}

// void begins the reason in the log of a trial that shows nothing.
const void = ": void: "

// end ends a package: with all that its tests left unended, if it failed, and the line that go test has for it.
func (t *tally) end(e event) {
	fmt.Fprintf(t.times, "%8.1f %s\n", e.Elapsed, e.Package)
	rest := t.order[:0]
	for _, at := range t.order {
		switch {
		case at.pkg != e.Package:
			rest = append(rest, at)
			continue
		case e.Action == "fail":
			t.tell(at)
		case at.test == "":
			for _, line := range t.said[at] {
				if strings.HasPrefix(line, "ok") || strings.HasPrefix(line, "?") {
					fmt.Fprint(t.out, line)
				}
			}
		}
		delete(t.said, at)
	}
	t.order = rest
}

func (t *tally) tell(at place) {
	for _, line := range t.said[at] {
		if !strings.HasPrefix(line, "=== ") {
			fmt.Fprint(t.out, line)
		}
	}
}
