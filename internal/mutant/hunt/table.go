package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A bug is one line of the table: an id, the package whose test must fail, the test, and what the bug is. A line whose
// package and test are "-" stands for a row of the catalogue that cannot have a bug, and says why.
type bug struct {
	id, pkg, test, what string
	line                int
}

func (b bug) reasonOnly() bool { return b.pkg == "-" }

// The catalogue of failures, by letter and number of rows. The id of a bug is that of its row, with a small letter
// behind it where a row has several.
var catalogue = []struct {
	letter string
	rows   int
}{{"A", 22}, {"L", 16}, {"R", 16}, {"Q", 13}, {"O", 6}, {"C", 10}}

func readTable(file string) ([]bug, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var bugs []bug
	for i, line := range strings.Split(string(text), "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 4 {
			return nil, fmt.Errorf("%s:%d: %d columns separated by tabs, should be 4: id, package, test, what the bug is",
				file, i+1, len(fields))
		}
		for j := range fields {
			fields[j] = strings.TrimSpace(fields[j])
			if fields[j] == "" {
				return nil, fmt.Errorf("%s:%d: column %d is empty", file, i+1, j+1)
			}
		}
		b := bug{id: fields[0], pkg: fields[1], test: fields[2], what: fields[3], line: i + 1}
		if (b.pkg == "-") != (b.test == "-") {
			return nil, fmt.Errorf("%s:%d: package and test are both %q or neither", file, i+1, "-")
		}
		if _, err := regexp.Compile(b.test); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		bugs = append(bugs, b)
	}
	return bugs, nil
}

// findSeeds returns where the module's source asks for which bug: the calls of On in a package named mutant.
func findSeeds(root string) (map[string][]string, error) {
	seeded := map[string][]string{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && skipFolder(name, d.Name()):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		return seedsOf(file, fset, seeded)
	})
	return seeded, err
}

// skipFolder leaves out what is not a package of this module.
func skipFolder(name, base string) bool {
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	return err == nil
}

func seedsOf(file *ast.File, fset *token.FileSet, seeded map[string][]string) error {
	if !importsMutant(file) {
		return nil
	}
	var wrong error
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "On" {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "mutant" {
			return true
		}
		where := fset.Position(call.Pos()).String()
		lit, ok := call.Args[0].(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			wrong = fmt.Errorf("%s: the id of a bug must be written out as a string", where)
			return false
		}
		id, err := strconv.Unquote(lit.Value)
		if err != nil {
			wrong = fmt.Errorf("%s: %w", where, err)
			return false
		}
		seeded[id] = append(seeded[id], where)
		return true
	})
	return wrong
}

func importsMutant(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		return i.Name == nil && strings.HasSuffix(i.Path.Value, `/mutant"`)
	})
}

// compare returns what is wrong between the table and the source.
func compare(bugs []bug, seeded map[string][]string) (wrong []string) {
	lines := map[string]int{}
	for _, b := range bugs {
		if first, ok := lines[b.id]; ok {
			wrong = append(wrong, fmt.Sprintf("line %d: %s is already on line %d", b.line, b.id, first))
			continue
		}
		lines[b.id] = b.line
		switch where := seeded[b.id]; {
		case b.reasonOnly() && len(where) > 0:
			wrong = append(wrong, fmt.Sprintf("line %d: %s has no test here, but is seeded at %s", b.line, b.id, where[0]))
		case !b.reasonOnly() && len(where) == 0:
			wrong = append(wrong, fmt.Sprintf("line %d: %s is nowhere in the source", b.line, b.id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(seeded)) {
		if _, ok := lines[id]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s: %s is not in the table", seeded[id][0], id))
		}
	}
	return wrong
}

// missingRows returns the rows of the catalogue for which the table has neither a bug nor a reason.
func missingRows(bugs []bug) (missing []string) {
	for _, c := range catalogue {
		for n := 1; n <= c.rows; n++ {
			row := c.letter + strconv.Itoa(n)
			one := regexp.MustCompile("^" + row + "[a-z]?$")
			if !slices.ContainsFunc(bugs, func(b bug) bool { return one.MatchString(b.id) }) {
				missing = append(missing, row+" has neither a bug nor a reason why it has none")
			}
		}
	}
	return missing
}
