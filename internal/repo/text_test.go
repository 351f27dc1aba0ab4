package repo

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A path that exists on the machine of whoever wrote the text, and nowhere else.
var machinePath = regexp.MustCompile(`(^|[\s"'(=:` + "`" + `])(/work(space|dir)?/|/root/|/Users/|/home/(user|runner|ubuntu|debian)/|[A-Z]:\\Users\\)`)

func TestNoTextNamesAMachine(t *testing.T) {
	for name, text := range texts(t) {
		for i, line := range strings.Split(text, "\n") {
			if machinePath.MatchString(line) && name != "internal/repo/text_test.go" {
				t.Errorf("%s:%d: names a path of one machine: %s", name, i+1, strings.TrimSpace(line))
			}
		}
	}
}

func TestMachinePathsAreSeen(t *testing.T) {
	for line, want := range map[string]bool{
		"cd /workspace/interlock":    true,
		`"/root/go/bin"`:             true,
		"see (/Users/ann/src)":       true,
		"file:/home/runner/locks":    true,
		`C:\Users\ann`:               true,
		"examples/workdir/main.go":   false,
		"/var/lib/interlock":         false,
		"https://example.org/Users/": false,
		"the /root of a tree":        false,
	} {
		if got := machinePath.MatchString(line); got != want {
			t.Errorf("%q: seen %v, want %v", line, got, want)
		}
	}
}

// A test that was skipped looks like one that passed. There is one reason to skip: go test -short, which leaves to make proof
// what is long or a matter of time. By rapid's r.Skip an action says that it cannot be done now, and another one is drawn: that
// is no test that was skipped.
func TestNoTestIsSkipped(t *testing.T) {
	for name, text := range texts(t) {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		skips, err := skipsOf(name, text)
		if err != nil {
			t.Error(err)
		}
		for _, at := range skips {
			t.Errorf("%s: only testing.Short() is a reason to skip: let the test fail, or move it to a file for the platform that can run it", at)
		}
	}
}

func TestSkipsAreSeen(t *testing.T) {
	for body, want := range map[string]int{
		`if testing.Short() { t.Skip("long") }`:                   0,
		`if testing.Short() && c.long { t.Skip("long"); return }`: 0,
		`t.Skip("later")`: 1,
		`if testing.Short() || broken { t.Skip("later") }`:               1,
		`if !testing.Short() { t.SkipNow() }`:                            1,
		`if testing.Short() { return } else { t.Skipf("%d", 1) }`:        1,
		`if testing.Short() { for range 3 { t.Skip("a case of many") }}`: 0,
	} {
		got, err := skipsOf("x_test.go", "package x\nfunc TestX(t *testing.T) {\n"+body+"\n}\n")
		if err != nil || len(got) != want {
			t.Errorf("%s: %d skips without that reason, %v, want %d", body, len(got), err, want)
		}
	}
}

// skipsOf returns where a file skips a test for another reason than testing.Short().
func skipsOf(name, text string) (at []string, _ error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var short []*ast.BlockStmt // what is only done with -short
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if onlyShort(n.Cond) {
				short = append(short, n.Body)
			}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			rapid := ok && x.Name == "r" && strings.Contains(text, "pgregory.net/rapid")
			if !rapid && !slices.ContainsFunc(short, func(b *ast.BlockStmt) bool { return b.Pos() <= n.Pos() && n.Pos() < b.End() }) {
				at = append(at, fset.Position(n.Pos()).String())
			}
		}
		return true
	})
	return at, nil
}

// onlyShort says whether a condition is testing.Short(), or that and more.
func onlyShort(cond ast.Expr) bool {
	if both, ok := cond.(*ast.BinaryExpr); ok && both.Op == token.LAND {
		return onlyShort(both.X) || onlyShort(both.Y)
	}
	call, ok := cond.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == "testing" && sel.Sel.Name == "Short"
}

// texts returns the text files of the repository by their names from the root. What git ignores is no part of it, nor
// are hidden folders other than .ci.
func texts(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if name != root && (strings.HasPrefix(base, ".") && base != ".ci" || base == "bin" || base == "dist") {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || strings.HasSuffix(base, ".test") || strings.HasSuffix(base, ".out") || strings.HasSuffix(base, ".prof") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !bytes.ContainsRune(text, 0) {
			rel, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			found[filepath.ToSlash(rel)] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := found["go.mod"]; !ok {
		t.Fatalf("no go.mod among %d texts below %s", len(found), root)
	}
	return found
}
