package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What the command links of other modules in a program that imports the embedded store alone.
var linkedAlone = []string{
	"github.com/alecthomas/kong",
	"github.com/jedib0t/go-pretty/v6",
	"github.com/mattn/go-runewidth",
	"github.com/rivo/uniseg",
	"golang.org/x/sys",
	"golang.org/x/term",
	"golang.org/x/text",
}

// Packages of the standard library that no lock of this machine needs, and whose initialization or size a start would pay for.
var unneeded = []string{"crypto/tls", "database/sql", "html/template", "net/http", "testing", "text/template"}

// Stores are linked by the program that imports them, never by the command: what they need is initialized at every start.
func TestCommandLinksNoStoreByItself(t *testing.T) {
	for _, p := range list(t, "-deps", "./command", "./filelock") {
		switch store := strings.TrimPrefix(p.ImportPath, module+"/"); {
		case slices.Contains(unneeded, p.ImportPath):
			t.Errorf("the command with the embedded store alone links %s", p.ImportPath)
		case standard(p.ImportPath):
		case !own(p.ImportPath) && !belongs(p.ImportPath, linkedAlone):
			t.Errorf("the command with the embedded store alone links %s", p.ImportPath)
		case own(p.ImportPath) && strings.HasSuffix(store, "lock") && !strings.Contains(store, "/") && store != "filelock" && p.ImportPath != module:
			t.Errorf("the command links %s, which only a program that imports it should", p.ImportPath)
		}
	}
}

// dear are functions that a package must not call when it is initialized: every process of the command initializes the packages of all stores,
// and uses one.
var dear = map[string][]string{
	"regexp":        {"Compile", "MustCompile", "MatchString"}, // lazyregexp does it when the expression is used
	"crypto/sha1":   {"Sum", "New"},
	"crypto/sha256": {"Sum256", "New"},
	"text/template": {"Must", "New"},
	"os/exec":       {"Command", "LookPath"},
	"os/user":       {"Current", "Lookup", "LookupId"},
	"os":            {"Hostname", "ReadFile", "Open"},
}

// An init is cheap. What it computes is computed when it is first asked for.
func TestNothingDearIsInitialized(t *testing.T) {
	looked := 0
	for _, p := range list(t, "-deps", "./cmd/interlock") {
		if !own(p.ImportPath) {
			continue
		}
		for _, name := range p.GoFiles {
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			looked++
			imports := map[string]string{} // by name
			for _, i := range file.Imports {
				path, _ := strconv.Unquote(i.Path.Value)
				imports[path[strings.LastIndex(path, "/")+1:]] = path
			}
			initialized(file, func(call *ast.SelectorExpr) {
				if from, ok := call.X.(*ast.Ident); ok && slices.Contains(dear[imports[from.Name]], call.Sel.Name) {
					t.Errorf("%s calls %s.%s when its package is initialized", files.Position(call.Pos()), from.Name, call.Sel.Name)
				}
			})
		}
	}
	if looked < 100 {
		t.Errorf("%d files were looked at, want those of all stores", looked)
	}
}

// initialized shows what a file's variables and its functions called init call; not what functions do that they make.
func initialized(file *ast.File, show func(*ast.SelectorExpr)) {
	look := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok {
				show(s)
			}
		}
		return true
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			ast.Inspect(d, look)
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "init" {
				ast.Inspect(d.Body, look)
			}
		}
	}
}
