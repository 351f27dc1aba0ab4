package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A folder is a package with bugs, while it is rewritten.
type folder struct {
	dir, name string
	source    map[string]*source // its Go files
	texts     map[string][]variant
}

// A source is a Go file and what bugs make of it.
type source struct {
	parsed
	splices  []splice
	appended []string
	brought  map[string]bool // what is there already, since another bug has brought it
	changed  []variant
}

// A parsed file has its text beside its tree, since declarations are moved as text, with their comments.
type parsed struct {
	file string
	text []byte
	fset *token.FileSet
	tree *ast.File
}

// A splice is text to insert, or to put in the place of [from, to).
type splice struct {
	from, to int
	text     string
}

func parse(file string, text []byte) (parsed, error) {
	p := parsed{file: file, text: text, fset: token.NewFileSet()}
	var err error
	p.tree, err = parser.ParseFile(p.fset, file, text, parser.ParseComments)
	return p, err
}

func (p *parsed) offset(pos token.Pos) int { return p.fset.Position(pos).Offset }

func (p *parsed) slice(from, to token.Pos) string {
	return string(p.text[p.offset(from):p.offset(to)])
}

func readFolder(dir string) (*folder, error) {
	f := &folder{dir: dir, source: map[string]*source{}, texts: map[string][]variant{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if ok, err := build.Default.MatchFile(dir, filepath.Base(file)); err != nil || !ok {
			if err != nil {
				return nil, err
			}
			continue // for another system, or for a program such as go run file.go
		}
		if bytes.Contains(text, []byte("seededBug")) {
			return nil, fmt.Errorf("%s has the name seededBug, which mutant needs for itself", file)
		}
		p, err := parse(file, text)
		if err != nil {
			return nil, err
		}
		f.source[file] = &source{parsed: p}
		f.name = p.tree.Name.Name
	}
	return f, nil
}

// change notes what bugs make of a file of the folder.
func (f *folder) change(file string, variants []variant) {
	if s := f.source[file]; s != nil {
		s.changed = variants
		return
	}
	f.texts[file] = variants
}

// switched returns the files that differ from the source.
func (f *folder) switched() (map[string][]byte, error) {
	var wrong []error
	for _, s := range f.source {
		for _, v := range s.changed {
			if err := s.take(v); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: bug %s: %s: %w", v.bug.at, v.bug.id, filepath.Base(s.file), err))
			}
		}
	}
	for file, variants := range f.texts {
		err := f.embed(filepath.Base(file), variants)
		if strings.HasSuffix(file, ".go") {
			err = fmt.Errorf("%s is not compiled here: it is for another system or has a build constraint", filepath.Base(file))
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: bug %s: %w", variants[0].bug.at, variants[0].bug.id, err))
		}
	}
	files := map[string][]byte{}
	for file, s := range f.source {
		if len(s.splices)+len(s.appended) > 0 {
			files[file] = s.spliced()
		}
	}
	return files, errors.Join(wrong...)
}

// embed makes the variable that a text is embedded in begin as the text that the bug which is on makes of it.
func (f *folder) embed(text string, variants []variant) error {
	var of strings.Builder
	for _, v := range variants {
		fmt.Fprintf(&of, "\t%q: %s,\n", v.bug.id, strconv.Quote(string(v.text)))
	}
	found := false
	for _, s := range f.source {
		for _, d := range s.tree.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok || !embeds(text, g.Doc) && !embeds(text, v.Doc) {
					continue
				}
				if t, ok := v.Type.(*ast.Ident); !ok || t.Name != "string" {
					return fmt.Errorf("%s is embedded in something that is not a string", text)
				}
				name := v.Names[0]
				s.splices = append(s.splices, splice{s.offset(name.Pos()), s.offset(name.End()), "embedded_" + name.Name})
				s.appended = append(s.appended, fmt.Sprintf("var %s = seededText(embedded_%[1]s, map[string]string{\n%s})", name.Name, of.String()))
				found = true
			}
		}
	}
	if !found {
		return fmt.Errorf("%s is no Go file and embedded in none of the Go files beside it", text)
	}
	return nil
}

func embeds(text string, doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.TrimSpace(strings.TrimPrefix(c.Text, "//go:embed ")) == text {
			return true
		}
	}
	return false
}
