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

// A test that was skipped looks like one that passed. By rapid's r.Skip an action says that it cannot be done now, and another
// one is drawn: that is no test that was skipped.
func TestNoTestIsSkipped(t *testing.T) {
	fset := token.NewFileSet()
	for name, text := range texts(t) {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "r" && strings.Contains(text, "pgregory.net/rapid") {
					return true
				}
				t.Errorf("%s: %s: let the test fail, or move it to a file for the platform that can run it", fset.Position(call.Pos()), sel.Sel.Name)
			}
			return true
		})
	}
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
			if name != root && (strings.HasPrefix(base, ".") && base != ".ci" || base == "bin") {
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
