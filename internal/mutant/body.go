package main

import (
	"fmt"
	"go/ast"
	"go/token"
)

// replaceBody puts the changed body in front of the other, in a block in the function's own frame.
func (s *source) replaceBody(changed *parsed, old, f *ast.FuncDecl, id string) error {
	if old.Body == nil || f.Body == nil || s.slice(old.Pos(), old.Body.Lbrace) != changed.slice(f.Pos(), f.Body.Lbrace) {
		return fmt.Errorf("the bug changes what %s takes or returns, want its body only", old.Name.Name)
	}
	end := "return"
	if f.Type.Results != nil { // the compiler does not miss a return here
		end = fmt.Sprintf("panic(%q)", "bug "+id+": the end of "+f.Name.Name+" is reached without a return")
	}
	begin := old.Body.Lbrace + 1
	at := s.offset(begin)
	s.splices = append(s.splices, splice{at, at, fmt.Sprintf(" if seededBug == %q {%s%s\n%s};%s",
		id, s.line(changed, f.Body.Lbrace+1, id), changed.block(f, len(s.splices)), end, s.line(&s.parsed, begin, ""))})
	return nil
}

// block returns the body as it must read in a block of its own, the nth in its function. A label may stand once in a
// function. And what := assigns to at the top of a body may be a parameter or a result, which it would hide in a block.
func (p *parsed) block(f *ast.FuncDecl, n int) string {
	var splices []splice
	begin := p.offset(f.Body.Lbrace) + 1
	insert := func(pos token.Pos, text string) {
		at := p.offset(pos) - begin
		splices = append(splices, splice{at, at, text})
	}
	rename := func(label *ast.Ident) {
		if label != nil {
			insert(label.End(), fmt.Sprintf("_seeded%d", n))
		}
	}
	ast.Inspect(f.Body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.LabeledStmt:
			rename(node.Label)
		case *ast.BranchStmt:
			rename(node.Label)
		}
		return true
	})
	own := map[string]bool{}
	for _, list := range []*ast.FieldList{f.Recv, f.Type.Params, f.Type.Results} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			for _, name := range field.Names {
				own[name.Name] = name.Name != "_"
			}
		}
	}
	for _, stmt := range f.Body.List {
		for l, ok := stmt.(*ast.LabeledStmt); ok; l, ok = stmt.(*ast.LabeledStmt) {
			stmt = l.Stmt
		}
		assign, ok := stmt.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE {
			continue
		}
		for _, to := range assign.Lhs {
			if name, ok := to.(*ast.Ident); ok && own[name.Name] {
				other := fmt.Sprintf("_seeded%d", p.offset(name.Pos()))
				insert(name.End(), other)
				insert(stmt.End(), fmt.Sprintf("; %s = %[1]s%s", name.Name, other))
			}
		}
	}
	return string(splicedText(p.text[begin:p.offset(f.Body.Rbrace)], splices))
}
