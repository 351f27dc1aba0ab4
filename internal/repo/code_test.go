package repo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Go code in doc comments and on pages is right, as far as a fragment can be: it calls what there is, with the arguments that
// it takes, and uses all that it returns. What a fragment takes for granted, such as ctx, is left open.
func TestCodeInTextCompiles(t *testing.T) {
	known := map[string]packages{".": exported(t, ".", packages{})}
	blocks := 0
	for name, text := range texts(t) {
		for _, code := range codeIn(t, name, text) {
			blocks++
			in := "."
			if parts := strings.Split(name, "/"); parts[0] == "contrib" && len(parts) > 2 { // a module of its own, with other packages
				in = path.Join(parts[:2]...)
			} else if name == "docs/recipes.md" {
				in = "examples/recipes"
			}
			if in == "contrib/clientgo" && testing.Short() { // client-go is hundreds of packages: make proof compiles them
				continue
			}
			if _, ok := known[in]; !ok {
				known[in] = exported(t, in, known["."])
			}
			for _, err := range known[in].faults(code) {
				t.Errorf("%s: %v in\n%s", name, err, code)
			}
		}
	}
	if blocks < 50 {
		t.Errorf("%d pieces of code were seen, want all", blocks)
	}
	faultsAreSeen(t, known["."])
}

func faultsAreSeen(t *testing.T, known packages) {
	t.Helper()
	for code, want := range map[string]string{
		"client, err := interlock.Open(ctx, url, nil)":                           "",
		"client := interlock.Open(ctx, url, nil)":                                "assignment mismatch",
		"client, err := interlock.Open(url, nil)":                                "not enough arguments",
		"var m *interlock.Mutex\nm.Acquire(ctx)":                                 "m.Acquire undefined",
		"interlock.Lease{}.Renew()":                                              "Renew undefined",
		"package main\n\nfunc main() {\n\tinterlock.Open(nil, \"\", nil)\n}\n":   "undefined: interlock",
		"err := m.Do(ctx, func(ctx context.Context) error {\n\treturn nil\n})":   "",
		"func f() error {\n\treturn 1\n}":                                        "cannot use 1",
		"import \"github.com/interlock-go/interlock\"":                           "",
		"type order struct{ id int }\n\nfunc ship(o order) error { return nil }": "",
	} {
		faults := known.faults(code)
		if want == "" && len(faults) > 0 || want != "" && (len(faults) == 0 || !strings.Contains(faults[0].Error(), want)) {
			t.Errorf("%q: faults %v, want %q", code, faults, want)
		}
	}
}

// codeIn returns the Go code of a page, or of the comments of a file with code.
func codeIn(t *testing.T, name, text string) (code []string) {
	t.Helper()
	switch {
	case strings.HasSuffix(name, ".md"):
		for _, m := range fenced.FindAllStringSubmatch(text, -1) {
			if m[1] == "go" {
				code = append(code, m[2])
			}
		}
	case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "testdata"):
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range f.Comments {
			var p comment.Parser
			for _, block := range p.Parse(g.Text()).Content {
				if c, ok := block.(*comment.Code); ok && parseFragment(c.Text) != nil {
					code = append(code, c.Text)
				}
			}
		}
	}
	return code
}

// fragment is a file made of a piece of code.
type fragment struct {
	*ast.File
	set     *token.FileSet
	program bool // it is one as it stands
}

// parseFragment takes code as a program, as declarations or as statements, whichever it is. It returns nil for what is no Go.
func parseFragment(code string) *fragment {
	for i, around := range [...][2]string{{"", ""}, {"package p\n", ""}, {"package p\nfunc _() error {\n", "\n}"}} {
		set := token.NewFileSet()
		if f, err := parser.ParseFile(set, "", around[0]+code+around[1], 0); err == nil {
			return &fragment{f, set, i == 0}
		}
	}
	return nil
}

// packages are those that code may use: of a module, what they use, and the standard library's among that.
type packages struct {
	types  types.Importer
	byName map[string]string // import paths
	files  map[string]string // what the compiler has written of them
}

// exported has the go command build all packages of the module in this folder, and knows what they export, beside what is known already.
// Of a module beside this one that includes what its tests use, as a program does that uses the module.
func exported(t *testing.T, dir string, known packages) packages {
	t.Helper()
	args := []string{"-C", dir, "list", "-export", "-deps", "-json=ImportPath,Name,Export"}
	if dir != "." {
		args = append(args, "-test")
	}
	out := command(t, nil, "go", append(args, "./...")...)
	files, byName := map[string]string{}, map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Name, Export string }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(p.ImportPath, " ") { // a package as its tests see it
			continue
		}
		files[p.ImportPath] = p.Export
		if old := byName[p.Name]; !strings.Contains("/"+p.ImportPath, "/internal") &&
			(old == "" || own(p.ImportPath) || standard(p.ImportPath) && !own(old)) {
			byName[p.Name] = p.ImportPath
		}
	}
	for path, file := range known.files {
		files[path] = cmp.Or(files[path], file)
	}
	for name, path := range known.byName {
		byName[name] = cmp.Or(byName[name], path)
	}
	return packages{importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("package %s is not used here", path)
		}
		return os.Open(files[path])
	}), byName, files}
}

// What a fragment lacks is not its fault.
var open = regexp.MustCompile(`^undefined: \w+$|declared and not used|imported and not used|missing return|^not enough return values|\(value of type .* is not used$|could not import example\.org/`)

// faults returns what is wrong with a piece of code.
func (p packages) faults(code string) (faults []error) {
	f := parseFragment(code)
	if f == nil {
		return []error{errors.New("this is no Go")}
	}
	if !f.program {
		p.complete(f)
	}
	conf := types.Config{Importer: p.types, Error: func(err error) {
		var e types.Error
		if !errors.As(err, &e) || !open.MatchString(e.Msg) || f.program && p.byName[strings.TrimPrefix(e.Msg, "undefined: ")] != "" {
			faults = append(faults, err)
		}
	}}
	_, _ = conf.Check("p", f.set, []*ast.File{f.File}, nil)
	return faults
}

// complete has a fragment import what it names and does not declare.
func (p packages) complete(f *fragment) {
	var names []string
	ast.Inspect(f.File, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && !slices.Contains(names, x.Name) {
				names = append(names, x.Name)
			}
		}
		return true
	})
	for _, name := range names {
		if p.byName[name] != "" && !declares(f.File, name) {
			spec := &ast.ImportSpec{Path: &ast.BasicLit{Kind: token.STRING, Value: `"` + p.byName[name] + `"`}}
			f.Imports = append(f.Imports, spec)
			f.Decls = append([]ast.Decl{&ast.GenDecl{Tok: token.IMPORT, Specs: []ast.Spec{spec}}}, f.Decls...)
		}
	}
}

// declares reports whether a file gives the name a meaning of its own, by an import or a variable.
func declares(f *ast.File, name string) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				x, ok := l.(*ast.Ident)
				found = found || n.Tok == token.DEFINE && ok && x.Name == name
			}
		case *ast.ValueSpec:
			for _, x := range n.Names {
				found = found || x.Name == name
			}
		case *ast.Field:
			for _, x := range n.Names {
				found = found || x.Name == name
			}
		case *ast.ImportSpec:
			path := strings.Trim(n.Path.Value, `"`)
			found = found || n.Name != nil && n.Name.Name == name || n.Name == nil && (path == name || strings.HasSuffix(path, "/"+name))
		}
		return !found
	})
	return found
}
