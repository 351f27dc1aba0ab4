package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A shape is what is to be told of a package. Files are named without their folder.
type shape struct {
	code    int
	circles [][]string                     // the largest first; a file by itself is a circle of one
	uses    map[string]map[string][]string // by file, by the other file: the names that it uses
	long    []string                       // files and functions
}

// shape reads the package.
func (p *pkg) shape() (*shape, error) {
	s := &shape{uses: map[string]map[string][]string{}}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		s.uses[name] = map[string][]string{}
		s.code += codeLines(text)
		s.addLong(set, f)
	}
	for _, name := range p.EmbedFiles {
		if comment := map[string]string{".lua": "--", ".sql": "--"}[filepath.Ext(name)]; comment != "" {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, comment) {
					s.code++
				}
			}
		}
	}
	compiled := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(p.exports[path]) })
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: compiled}).Check(p.ImportPath, set, files, info); err != nil {
		return nil, err
	}
	for id, o := range info.Uses {
		if o.Pkg() == nil || o.Pkg().Path() != p.ImportPath || o.Parent() != nil && o.Parent() != o.Pkg().Scope() {
			continue // of another package, or of a function
		}
		if f, ok := o.(*types.Func); ok {
			o = f.Origin()
		}
		if from, to := set.File(id.Pos()).Name(), set.File(o.Pos()).Name(); from != to {
			s.uses[from][to] = append(s.uses[from][to], o.Name())
		}
	}
	for _, to := range s.uses {
		for file, names := range to {
			slices.Sort(names)
			to[file] = slices.Compact(names)
		}
	}
	s.circles = circles(s.uses)
	return s, nil
}

// addLong adds the file and its functions, if they are too long.
func (s *shape) addLong(set *token.FileSet, f *ast.File) {
	name := set.File(f.FileStart).Name()
	if n := set.File(f.FileStart).LineCount(); n > mostFile {
		s.long = append(s.long, fmt.Sprintf("%s has %d lines", name, n))
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			if n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1; n > mostFunction {
				s.long = append(s.long, fmt.Sprintf("%s: %s has %d lines", name, fn.Name.Name, n))
			}
		}
	}
}

// codeLines counts the lines that have a token, each line of a text over several lines among them.
func codeLines(text []byte) int {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	n, last := 0, 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && lit != ";" { // put in by the scanner
			continue
		}
		first := file.Line(pos)
		end := first + strings.Count(lit, "\n")
		if end > last {
			n += end - max(first, last+1) + 1
			last = end
		}
	}
}

// circles are the strongly connected components, by Tarjan's algorithm ("Depth-first search and
// linear graph algorithms", 1972).
func circles(uses map[string]map[string][]string) (all [][]string) {
	index, low := map[string]int{}, map[string]int{}
	var stack []string
	var visit func(string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack = append(stack, v)
		for _, to := range slices.Sorted(maps.Keys(uses[v])) {
			if index[to] == 0 {
				visit(to)
				low[v] = min(low[v], low[to])
			} else if slices.Contains(stack, to) {
				low[v] = min(low[v], index[to])
			}
		}
		if low[v] == index[v] {
			at := slices.Index(stack, v)
			all = append(all, slices.Sorted(slices.Values(stack[at:])))
			stack = stack[:at]
		}
	}
	for _, v := range slices.Sorted(maps.Keys(uses)) {
		if index[v] == 0 {
			visit(v)
		}
	}
	slices.SortStableFunc(all, func(a, b []string) int { return cmp.Compare(len(b), len(a)) })
	return all
}
