package aten

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// outVariants lists ATen's operators that write their results into arguments; tools/outvariants.py makes it from PyTorch's schemas.
//
//go:embed out_variants.txt
var outVariants string

// outForm says what an out variant is made of.
type outForm struct {
	overload string   // of the functional operator
	outs     []string // the arguments that are written
	lacks    []string // arguments of the functional operator that the variant has not: what is written tells them
}

var outForms = sync.OnceValue(func() map[string]outForm {
	forms := map[string]outForm{}
	for line := range strings.Lines(outVariants) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		form := outForm{overload: f[1], outs: strings.Split(f[2], ",")}
		if len(f) > 3 {
			form.lacks = strings.Split(f[3], ",")
		}
		forms[f[0]] = form
	}
	return forms
})

// outVariant makes the form of an operator that writes its results into arguments; nil if there is none. Where PyTorch would resize such
// an argument, it refuses.
func (r *Registry) outVariant(name string) *Op {
	form, ok := outForms()[name]
	if !ok {
		return nil
	}
	base, _, _ := strings.Cut(name, ".")
	op := r.Lookup("aten." + base + "." + form.overload)
	if op == nil || op.IsView() || op.Mutates() || op.Shape == nil && op.Decomp == nil {
		return nil
	}
	d := &Op{Schema: outSchema(op.schema, name, form), derived: "out variant of " + op.Name()}
	d.Decomp = func(b *Build, a *Args) []*Value {
		n := len(a.V) - len(form.outs)
		outs := make([]*Value, len(form.outs))
		for i := range outs {
			outs[i] = a.Tensor(n + i)
		}
		for i, v := range b.call(op, form.arguments(op, a, outs[0])) {
			out := outs[i]
			if !CanCast(v.DType, out.DType) {
				Fail("result type %s can't be cast to the desired output type %s", v.DType.CPPName(), out.DType.CPPName())
			}
			if !SameSizes(out.Sizes, v.Sizes) {
				Fail("an output of shape %v would have to be resized to %v", out.Sizes, v.Sizes)
			}
			b.CallN("copy_", out, v)
		}
		return outs
	}
	if d.init() != nil {
		return nil
	}
	return d
}

// arguments are those of the functional operator: what the variant lacks has its default, and an open dtype is that of what is written.
func (f outForm) arguments(op *Op, a *Args, out *Value) *Args {
	in := &Args{Op: op, V: make([]any, len(op.schema.Params))}
	at := 0
	for i := range op.schema.Params {
		p := &op.schema.Params[i]
		if slices.Contains(f.lacks, p.Name) {
			in.V[i], _ = op.Default(i)
		} else {
			in.V[i] = a.V[at]
			at++
		}
		if p.Name == "dtype" && p.Type.Opt && in.V[i] == nil {
			in.V[i] = out.DType
		}
	}
	return in
}

// outSchema writes the variant's schema: names of results are marks of what is written.
func outSchema(s *FuncSchema, name string, form outForm) string {
	open, end := strings.IndexByte(s.text, '('), strings.LastIndex(s.text, ") -> ")
	var parts []string
	star := false
	for i, part := range splitTop(s.text[open+1 : end]) {
		if part == "*" {
			star = true
			continue
		}
		p := &s.Params[min(i, len(s.Params)-1)]
		if star {
			p = &s.Params[i-1]
		}
		if slices.Contains(form.lacks, p.Name) {
			continue
		}
		if p.KwOnly && !slices.Contains(parts, "*") {
			parts = append(parts, "*")
		}
		parts = append(parts, part)
	}
	if !slices.Contains(parts, "*") {
		parts = append(parts, "*")
	}
	var returns []string
	for i, out := range form.outs {
		mark := "Tensor(" + string(rune('a'+i)) + "!)"
		parts = append(parts, mark+" "+out)
		returns = append(returns, mark)
	}
	result := strings.Join(returns, ", ")
	if len(returns) > 1 {
		result = "(" + result + ")"
	}
	return "aten::" + strings.TrimSuffix(name, ".") + "(" + strings.Join(parts, ", ") + ") -> " + result
}
