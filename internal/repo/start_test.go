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
