package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// take adds what a bug makes of the file: declaration by declaration, since a bug may change any number of them and may
// bring new ones.
func (s *source) take(v variant) error {
	changed, err := parse(s.file, v.text)
	if err != nil {
		return fmt.Errorf("as the bug changes it: %w", err)
	}
	before, after := declarations(&s.parsed), declarations(&changed)
	var wrong []error
	for name := range before {
		if _, ok := after[name]; !ok && !strings.HasPrefix(name, "import ") { // one that is missed nowhere may stay
			wrong = append(wrong, fmt.Errorf("the bug takes away %s: let it change what uses that", name))
		}
	}
	for name, d := range after {
		old, ok := before[name]
		switch {
		case ok && old.text == d.text:
		case strings.HasPrefix(name, "import "):
			at := s.offset(s.tree.Name.End())
			s.splices = append(s.splices, splice{at, at, "; import " + d.text})
		case !ok:
			s.appended = append(s.appended, d.keyword+" "+d.text)
		default:
			wrong = append(wrong, s.replace(&changed, old, d, v.bug.id))
		}
	}
	return errors.Join(wrong...)
}

// A declaration is a function, or one of the specifications in an import, var, const or type.
type declaration struct {
	keyword, text string
	function      *ast.FuncDecl
	value         *ast.ValueSpec // of a var
}

// declarations returns the declarations of a file by a name that tells them apart.
func declarations(p *parsed) map[string]declaration {
	all := map[string]declaration{}
	for _, d := range p.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := "func " + d.Name.Name
			if d.Recv != nil {
				name = "func (" + strings.TrimLeft(p.slice(d.Recv.List[0].Type.Pos(), d.Recv.List[0].Type.End()), "*") + ") " + d.Name.Name
			}
			for all[name].function != nil { // init
				name += "+"
			}
			all[name] = declaration{text: p.slice(d.Pos(), d.End()), function: d}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				text := p.slice(spec.Pos(), spec.End())
				name, decl := text, declaration{keyword: d.Tok.String(), text: text}
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					name = p.slice(spec.Names[0].Pos(), spec.Names[len(spec.Names)-1].End())
					if d.Tok == token.VAR {
						decl.value = spec
					}
				case *ast.TypeSpec:
					name = spec.Name.Name
				}
				all[d.Tok.String()+" "+name] = decl
			}
		}
	}
	return all
}

// replace has old be what the bug makes of it, when the bug is on.
func (s *source) replace(changed *parsed, old, d declaration, id string) error {
	switch {
	case old.function != nil:
		return s.replaceBody(changed, old.function, d.function, id)
	case old.value != nil && len(old.value.Values) == len(d.value.Values):
		for i, v := range old.value.Values {
			was, is := s.slice(v.Pos(), v.End()), changed.slice(d.value.Values[i].Pos(), d.value.Values[i].End())
			if was == is {
				continue
			}
			of := ""
			if t := old.value.Type; t != nil {
				of = "[" + s.slice(t.Pos(), t.End()) + "]"
			}
			s.splices = append(s.splices,
				splice{s.offset(v.Pos()), s.offset(v.Pos()), fmt.Sprintf("seededValue%s(%q, %s, ", of, id, is)},
				splice{s.offset(v.End()), s.offset(v.End()), ")"})
		}
		return nil
	default:
		return fmt.Errorf("the bug changes the declaration %q, which cannot be switched while a program runs: let it change a function that uses that", old.text)
	}
}

// replaceBody puts the changed body in front of the other, in the function's own frame. The line directives make the
// compiler name the bug where the changed body does not compile.
func (s *source) replaceBody(changed *parsed, old, f *ast.FuncDecl, id string) error {
	if old.Body == nil || f.Body == nil || s.slice(old.Pos(), old.Body.Lbrace) != changed.slice(f.Pos(), f.Body.Lbrace) {
		return fmt.Errorf("the bug changes what %s takes or returns, want its body only", old.Name.Name)
	}
	body := changed.slice(f.Body.Lbrace+1, f.Body.Rbrace)
	results := ""
	if f.Type.Results != nil {
		results = changed.slice(f.Type.Results.Pos(), f.Type.Results.End())
	}
	file := filepath.Base(s.file)
	at, back := changed.fset.Position(f.Body.Lbrace+1), s.fset.Position(old.Body.Lbrace+1)
	body = fmt.Sprintf("/*line %s[%s]:%d:%d*/%s\n", file, id, at.Line, at.Column, body)
	switch {
	case hasLabel(f.Body) && results != "": // a label may stand once in a function
		body = "return func() " + results + " {" + body + "}()"
	case hasLabel(f.Body):
		body = "func() {" + body + "}(); return"
	case results == "":
		body += "return"
	}
	s.splices = append(s.splices, splice{
		back.Offset, back.Offset,
		fmt.Sprintf(" if seededBug == %q {%s\n};/*line %s:%d:%d*/", id, body, file, back.Line, back.Column),
	})
	return nil
}

func hasLabel(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		_, is := n.(*ast.LabeledStmt)
		found = found || is
		return !found
	})
	return found
}

// spliced returns the file with everything that bugs bring.
func (s *source) spliced() []byte {
	slices.SortStableFunc(s.splices, func(a, b splice) int { return a.from - b.from })
	var out []byte
	last := 0
	for _, p := range s.splices {
		out = append(append(out, s.text[last:p.from]...), p.text...)
		last = p.to
	}
	out = append(out, s.text[last:]...)
	for _, a := range s.appended {
		out = append(append(out, "\n\n"...), a...)
	}
	return append(out, '\n')
}
