package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
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
	same := true
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok && (!strings.HasPrefix(name, "import ") || before[name].effects()) { // any other import may stay
			wrong = append(wrong, fmt.Errorf("the bug takes away %s: let it change what uses that", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		d := after[name]
		old, ok := before[name]
		switch {
		case ok && old.text == d.text:
			continue
		case ok:
			wrong = append(wrong, s.replace(&changed, old, d, v.bug.id))
		default:
			wrong = append(wrong, s.bring(&changed, before, d, v.bug.id))
		}
		same = false
	}
	if same && len(wrong) == 0 {
		wrong = append(wrong, errors.New("the bug changes nothing that is compiled"))
	}
	return errors.Join(wrong...)
}

// bring adds what a bug brings along. It is there without the bug as well, so it must be nothing that acts by itself. Bugs
// may bring the same.
func (s *source) bring(changed *parsed, before map[string]declaration, d declaration, id string) error {
	if d.function != nil && d.function.Recv != nil {
		of, _, _ := strings.Cut(strings.TrimLeft(changed.slice(d.function.Recv.List[0].Type.Pos(), d.function.Recv.List[0].Type.End()), "*"), "[")
		if _, ok := before["type "+of]; ok {
			return fmt.Errorf("the bug adds the method %s to the type %s, which would have it without the bug: let it be a function", d.function.Name.Name, of)
		}
	}
	if d.effects() {
		return fmt.Errorf("the bug adds %s %q, which would act without the bug: let it change what is there", d.keyword, d.text)
	}
	if s.brought == nil {
		s.brought = map[string]bool{}
	}
	key := d.keyword + " " + d.text
	if s.brought[key] {
		return nil
	}
	s.brought[key] = true
	text := d.keyword + " " + s.line(changed, d.pos, id) + d.text
	if d.keyword == "import" {
		at := s.tree.Name.End()
		s.splices = append(s.splices, splice{s.offset(at), s.offset(at), "; " + text + s.line(&s.parsed, at, "")})
		return nil
	}
	s.appended = append(s.appended, text)
	return nil
}

// line makes the compiler name the place in the file as the bug with this id changes it, or in the source.
func (s *source) line(p *parsed, pos token.Pos, id string) string {
	at := p.fset.Position(pos)
	if id != "" {
		id = "[" + id + "]"
	}
	return fmt.Sprintf("/*line %s%s:%d:%d*/", s.file, id, at.Line, at.Column)
}

// A declaration is a function, or one of the specifications in an import, var, const or type.
type declaration struct {
	keyword, text string
	pos           token.Pos
	function      *ast.FuncDecl
	value         *ast.ValueSpec // of a var
}

// effects reports whether the declaration acts without being used.
func (d declaration) effects() bool {
	switch d.keyword {
	case "import":
		return strings.HasPrefix(d.text, "_ ") || d.text == `"C"`
	case "var":
		return d.value.Names[0].Name == "_"
	}
	return d.function != nil && d.function.Recv == nil && d.function.Name.Name == "init"
}

// declarations returns the declarations of a file by a name that tells them apart.
func declarations(p *parsed) map[string]declaration {
	all := map[string]declaration{}
	add := func(name string, d declaration) {
		for all[name].text != "" { // init and _
			name += "+"
		}
		all[name] = d
	}
	for _, d := range p.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := "func " + d.Name.Name
			if d.Recv != nil {
				name = "func (" + strings.TrimLeft(p.slice(d.Recv.List[0].Type.Pos(), d.Recv.List[0].Type.End()), "*") + ") " + d.Name.Name
			}
			add(name, declaration{keyword: "func", text: strings.TrimPrefix(p.slice(d.Pos(), d.End()), "func"), pos: d.Pos() + 4, function: d})
		case *ast.GenDecl:
			if counts(d) {
				add("const with iota", declaration{keyword: "const", text: p.slice(d.Lparen, d.End()), pos: d.Lparen})
				continue
			}
			for _, spec := range d.Specs {
				text := p.slice(spec.Pos(), spec.End())
				name, decl := text, declaration{keyword: d.Tok.String(), text: text, pos: spec.Pos()}
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					name = p.slice(spec.Names[0].Pos(), spec.Names[len(spec.Names)-1].End())
					if d.Tok == token.VAR {
						decl.value = spec
					}
				case *ast.TypeSpec:
					name = spec.Name.Name
				}
				add(d.Tok.String()+" "+name, decl)
			}
		}
	}
	return all
}

// counts reports whether the values of a group of constants depend on their places, as those of iota do.
func counts(d *ast.GenDecl) (found bool) {
	if d.Tok != token.CONST || !d.Lparen.IsValid() {
		return false
	}
	for _, spec := range d.Specs {
		found = found || len(spec.(*ast.ValueSpec).Values) == 0
		ast.Inspect(spec, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			found = found || ok && id.Name == "iota"
			return true
		})
	}
	return found
}

// replace has old be what the bug makes of it, when the bug is on.
func (s *source) replace(changed *parsed, old, d declaration, id string) error {
	switch {
	case old.function != nil:
		return s.replaceBody(changed, old.function, d.function, id)
	case old.value != nil && len(old.value.Values) == len(d.value.Values) && len(old.value.Values) == len(old.value.Names) &&
		s.typeOf(old.value) == changed.typeOf(d.value):
		for i, v := range old.value.Values {
			to := d.value.Values[i]
			is := changed.slice(to.Pos(), to.End())
			if s.slice(v.Pos(), v.End()) == is {
				continue
			}
			value := "return " + s.line(changed, to.Pos(), id) + is
			if of := s.typeOf(old.value); of != "" {
				value = "var v " + of + " = " + s.line(changed, to.Pos(), id) + is + "; return v"
			}
			s.splices = append(s.splices,
				splice{s.offset(v.Pos()), s.offset(v.Pos()), fmt.Sprintf("seededValue(%q, func() any { %s }, %s", id, value, s.line(&s.parsed, v.Pos(), ""))},
				splice{s.offset(v.End()), s.offset(v.End()), ")"})
		}
		return nil
	default:
		return fmt.Errorf("the bug changes the declaration %q, which cannot be switched while a program runs: let it change a function that uses that", old.text)
	}
}

func (p *parsed) typeOf(v *ast.ValueSpec) string {
	if v.Type == nil {
		return ""
	}
	return p.slice(v.Type.Pos(), v.Type.End())
}

// spliced returns the file with everything that bugs bring.
func (s *source) spliced() []byte {
	out := fmt.Appendf(nil, "//line %s:1\n", s.file)
	out = append(out, splicedText(s.text, s.splices)...)
	for _, a := range s.appended {
		out = append(append(out, "\n\n"...), a...)
	}
	return append(out, '\n')
}

// splicedText returns the text with the splices made.
func splicedText(text []byte, splices []splice) []byte {
	slices.SortStableFunc(splices, func(a, b splice) int { return a.from - b.from })
	var out []byte
	last := 0
	for _, p := range splices {
		out = append(append(out, text[last:p.from]...), p.text...)
		last = p.to
	}
	return append(out, text[last:]...)
}
