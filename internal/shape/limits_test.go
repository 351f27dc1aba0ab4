package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// No circle of more than 5 files, no file of more than 400 lines, no function of more than 80.
func TestShapes(t *testing.T) {
	packages, err := load("github.com/interlock-go/interlock/...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		s, err := p.shape()
		if err != nil {
			t.Fatal(err)
		}
		path := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "github.com/interlock-go/interlock"), "/")
		for _, c := range s.circles {
			if len(c) > mostCircle {
				t.Errorf("./%s: a circle of %d files; go run ./internal/shape -arrows ./%[1]s shows what uses what", path, len(c))
			}
		}
		for _, l := range s.long {
			t.Errorf("./%s: %s", path, l)
		}
	}
	if len(packages) < 50 {
		t.Errorf("%d packages seen, want all", len(packages))
	}
}

// What a package is told to be: two circles, an arrow from the one to the other, code without
// comments, a function that is too long.
func TestShape(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go":  "package p\n\n// A is.\ntype A struct{ f int } // one line\n\nfunc (a *A) M() { b(a) }\n",
		"b.go":  "package p\n\nfunc b(a *A) {\n\tlocal := a.f /* over\n\ttwo lines */\n\t_ = local\n\tc()\n}\n",
		"c.go":  "package p\n\nfunc c() {\n\t_ = `two\nlines`\n\td()" + strings.Repeat("\n", 80) + "}\n",
		"d.go":  "package p\n\nvar V = \"code\"\n\nfunc d() { c() }\n",
		"x.lua": "-- says\n\nreturn 1 -- here\n",
	} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := pkg{Dir: dir, ImportPath: "p", GoFiles: []string{"a.go", "b.go", "c.go", "d.go"}, EmbedFiles: []string{"x.lua"}}
	s, err := p.shape()
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.circles); got != "[[c.go d.go] [a.go b.go]]" {
		t.Errorf("circles %s", got)
	}
	if got := fmt.Sprint(s.uses["b.go"]); got != "map[a.go:[A f] c.go:[c]]" {
		t.Errorf("b.go uses %s", got)
	}
	if s.code != 3+6+6+3+1 {
		t.Errorf("%d lines of code, want 19", s.code)
	}
	if got := fmt.Sprint(s.long); got != "[c.go: c has 84 lines]" {
		t.Errorf("long: %s", got)
	}
}
