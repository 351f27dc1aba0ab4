package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fewestSettings is how many bad settings of stores must have a test by which the doctor finds each of them, and nothing else: see
// docs/decisions/0023-doctor.md.
const fewestSettings = 40

// Each store has tests of what the doctor finds, and together they are of that many bad settings. A setting counts where a test wants one
// finding of it, by a literal examinetest.Levels; what is skipped is none, nor is that a lone member of an ensemble is one too few.
func TestBadSettingsHaveTheirOwnFinding(t *testing.T) {
	settings := map[string]int{}
	for store := range clients {
		settings[store] = 0
		files, err := filepath.Glob(filepath.Join("..", "..", store, "examine*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			settings[store] += singleFindings(parsed)
		}
	}
	all := 0
	for _, store := range slices.Sorted(maps.Keys(settings)) {
		n := settings[store]
		if all += n; n == 0 && store != "memlock" { // which has nothing that could be set
			t.Errorf("%s has no test of what the doctor finds in it", store)
		}
		t.Logf("%-14s %3d", store, n)
	}
	t.Logf("%-14s %3d", "all", all)
	if all < fewestSettings {
		t.Errorf("%d bad settings have a test by which each has its own finding, want at least %d", all, fewestSettings)
	}
}

// singleFindings counts the literals of levels in a file that want one finding.
func singleFindings(file *ast.File) (n int) {
	ast.Inspect(file, func(node ast.Node) bool {
		literal, ok := node.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if isLevels(literal.Type) && wantsOne(literal) {
			n++
		}
		var of ast.Expr // the type that its elements leave out
		switch typ := literal.Type.(type) {
		case *ast.MapType:
			of = typ.Value
		case *ast.ArrayType:
			of = typ.Elt
		}
		for _, element := range literal.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				element = pair.Value
			}
			if inner, ok := element.(*ast.CompositeLit); ok && inner.Type == nil && isLevels(of) && wantsOne(inner) {
				n++
			}
		}
		return true
	})
	return n
}

func isLevels(typ ast.Expr) bool {
	name, ok := typ.(*ast.SelectorExpr)
	return ok && name.Sel.Name == "Levels"
}

// wantsOne reports whether levels are those of one finding.
func wantsOne(levels *ast.CompositeLit) bool {
	var titles []string
	for _, element := range levels.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		if level, ok := pair.Value.(*ast.SelectorExpr); ok && (level.Sel.Name == "Warn" || level.Sel.Name == "Bad") {
			title, _ := pair.Key.(*ast.BasicLit)
			if title == nil {
				return false
			}
			titles = append(titles, strings.Trim(title.Value, `"`))
		}
	}
	if i := slices.Index(titles, "members"); i >= 0 && len(titles) > 1 {
		titles = slices.Delete(titles, i, i+1)
	}
	return len(titles) == 1
}
