package main

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// Each thing that a user may name has a line, and nothing else has.
func TestLines(t *testing.T) {
	const source = `
package shop

import "io"

const Most int = 7
const less = 3

var Err error

type Size = int
type Kind uint8
type Box[T any] struct {
	Of     T
	hidden int
	inner
	io.Reader
}
type inner struct{ Deep bool }

func (inner) Promoted()         {}
func (b *Box[T]) Put(of T) error { return nil }
func (b Box[T]) get() T          { return b.Of }
func (k Kind) String() string    { return "" }

type Open interface{ Close() error }
type Closed interface {
	Open
	only()
}

func Sell(what string, of ...Kind) (int, error) { return 0, nil }
func hide()                                     {}
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "shop.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&types.Config{Importer: importer.Default(), Error: func(error) {}}).Check("example.com/shop", fset, []*ast.File{file}, nil)
	if p == nil {
		t.Fatal(err)
	}
	want := []string{
		"const Most int = 7",
		"func Sell(what string, of ...Kind) (int, error)",
		"method (*Box[T any]) Put(of T) error",
		"method (Box[T any]) Promoted()",
		"method (Box[T any]) Read(p []byte) (n int, err error)",
		"method (Kind) String() string",
		"type Box[T any] struct",
		"type Box[T any] struct, Of T",
		"type Box[T any] struct, embedded Reader io.Reader",
		"type Closed interface, Close() error",
		"type Closed interface, unexported methods",
		"type Kind uint8",
		"type Open interface",
		"type Open interface, Close() error",
		"type Size = int",
		"var Err error",
	}
	got := lines(p)
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], "pkg example.com/shop, ")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The command reads a package as the compiler has written it, and says what it cannot find.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out, []string{"github.com/interlock-go/interlock/driver"}); err != nil {
		t.Fatal(err)
	}
	if want := "pkg github.com/interlock-go/interlock/driver, type Driver interface, Open("; !strings.Contains(out.String(), want) {
		t.Errorf("no line %q… in:\n%.500s", want, out.String())
	}
	if err := run(&out, []string{"./nowhere"}); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("error of a package that is not there: %v", err)
	}
}
