package main

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// lines returns the exported API of a package, sorted. What it names of itself stands without its path, that of others by their names.
func lines(p *types.Package) (all []string) {
	words := func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}
	add := func(format string, args ...any) { all = append(all, "pkg "+p.Path()+", "+fmt.Sprintf(format, args...)) }
	for _, name := range p.Scope().Names() {
		switch o := p.Scope().Lookup(name).(type) {
		case nil:
		case *types.TypeName:
			if o.Exported() {
				typed(o, words, add)
			}
		case *types.Const:
			if o.Exported() {
				add("%s = %s", types.ObjectString(o, words), o.Val())
			}
		default:
			if o.Exported() {
				add("%s", types.ObjectString(o, words))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// typed adds the lines of a type: one for itself, and one for each field or method that users may name.
func typed(o *types.TypeName, words types.Qualifier, add func(format string, args ...any)) {
	if o.IsAlias() {
		add("%s", types.ObjectString(o, words))
		return
	}
	name := types.TypeString(o.Type(), words)
	switch u := o.Type().Underlying().(type) {
	case *types.Struct:
		add("type %s struct", name)
		for f := range u.Fields() {
			if f.Exported() {
				embedded := ""
				if f.Embedded() {
					embedded = "embedded "
				}
				add("type %s struct, %s%s %s", name, embedded, f.Name(), types.TypeString(f.Type(), words))
			}
		}
	case *types.Interface:
		hidden := ""
		for m := range u.Methods() {
			if !m.Exported() {
				hidden = ", unexported methods"
			} else {
				add("type %s interface, %s%s", name, m.Name(), signature(m, words))
			}
		}
		add("type %s interface%s", name, hidden)
		return
	default:
		add("type %s %s", name, types.TypeString(u, words))
	}
	for m := range types.NewMethodSet(types.NewPointer(o.Type())).Methods() {
		if f, ok := m.Obj().(*types.Func); ok && f.Exported() {
			receiver := "*" + name
			if types.NewMethodSet(o.Type()).Lookup(f.Pkg(), f.Name()) != nil {
				receiver = name
			}
			add("method (%s) %s%s", receiver, f.Name(), signature(f, words))
		}
	}
}

// signature is what follows the name of a function.
func signature(f *types.Func, words types.Qualifier) string {
	return strings.TrimPrefix(types.TypeString(f.Signature(), words), "func")
}
