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

// A run in the embedded store begins before the clients of etcd and others are initialized, and its guard before most of all.
func TestWhatIsEarlyIsInitializedEarly(t *testing.T) {
	order := initOrder(list(t, "-deps", "./cmd/interlock"))
	at := func(importPath string) int {
		i := slices.Index(order, importPath)
		if i < 0 {
			t.Fatalf("cmd/interlock does not link %s", importPath)
		}
		return i
	}
	ahead, early := at(module+"/internal/early/ahead"), at(module+"/internal/early")
	for _, late := range []string{"google.golang.org/protobuf/types/descriptorpb", "google.golang.org/protobuf/reflect/protodesc", "go.etcd.io/etcd/api/v3/authpb", "log/slog", "net"} {
		if at(late) < ahead {
			t.Errorf("%s is initialized before a guard is started ahead: package ahead needs something that is initialized late", late)
		}
	}
	for _, late := range []string{"google.golang.org/grpc", "go.etcd.io/etcd/api/v3/etcdserverpb", "github.com/redis/rueidis", "golang.org/x/net/trace", module + "/pglock"} {
		if at(late) < early {
			t.Errorf("%s is initialized before a run in the embedded store: package early needs something that is initialized late", late)
		}
	}
}

// initOrder is the order in which the packages of a program are initialized: of those whose imports all are, the one whose import path comes
// first (Go spec, "Program initialization").
func initOrder(pkgs []pkg) (order []string) {
	known := map[string]bool{}
	for _, p := range pkgs {
		known[p.ImportPath] = p.ImportPath != "unsafe" // which is none
	}
	waits, importers := map[string]int{}, map[string][]string{} // how many imports a package waits for, and who waits for it
	var ready []string
	for _, p := range pkgs {
		for _, i := range p.Imports {
			if vendored := "vendor/" + i; p.Standard && known[vendored] {
				i = vendored
			}
			if known[i] {
				waits[p.ImportPath]++
				importers[i] = append(importers[i], p.ImportPath)
			}
		}
		if known[p.ImportPath] && waits[p.ImportPath] == 0 {
			ready = append(ready, p.ImportPath)
		}
	}
	for len(ready) > 0 {
		next := slices.Min(ready)
		order = append(order, next)
		ready = slices.DeleteFunc(ready, func(p string) bool { return p == next })
		for _, p := range importers[next] {
			if waits[p]--; waits[p] == 0 {
				ready = append(ready, p)
			}
		}
	}
	return order
}

// Who imports these has arguments of its own taken for those of the command.
func TestOnlyTheCommandIsEarly(t *testing.T) {
	for _, p := range list(t, "./...") {
		for _, i := range p.Imports {
			if below(i, "internal/early") && p.ImportPath != module+"/cmd/interlock" {
				t.Errorf("%s imports %s, which only cmd/interlock may", p.ImportPath, i)
			}
		}
	}
}
