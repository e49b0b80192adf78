package tracer

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// ShapesSpec says by variables what sizes and integers may become, as torch.export's ShapesSpec. Its sizes are unbacked: the example
// decides nothing, a question about them is a [DataDependentError], and the program checks ranges and assumptions while it runs. What is
// not mentioned is fixed.
type ShapesSpec struct {
	Params      ParamsSpec
	Assumptions []*Assumption
}

// ParamsSpec is by parameters of Forward: a [TensorSpec], a *[Var], a number, an [ObjectSpec], [DictSpec] or [SeqSpec], or nil; "*args" has a
// []any, "**kwargs" a map[string]any.
type ParamsSpec map[string]any

// TensorSpec has one entry a dimension: a *[Var], a number that the size must be, or nil.
type TensorSpec []any

// ObjectSpec is by fields of a struct.
type ObjectSpec map[string]any

// DictSpec is by keys, strings or integers.
type DictSpec map[any]any

// SeqSpec is by positions; it may be shorter than the sequence.
type SeqSpec []any

// DynamicSpecifier is a model that carries its specification, as dynamic_spec of PyTorch attaches one. [WithShapes] must not be given, too.
type DynamicSpecifier interface{ DynamicSpec() ShapesSpec }

// Var is a variable of a [ShapesSpec], or an expression of such. Each variable is its own, whatever its name.
type Var struct {
	name string
	r    symbolic.Interval
	e    *symbolic.Expr
	vars []*Var
	err  error
}

// Assumption is a relation between variables that the program checks and the export knows.
type Assumption struct {
	e    *symbolic.Expr
	vars []*Var
}

// NewShapeVar makes a variable for sizes, at least 0 unless [Min] says more.
func NewShapeVar(name string, opts ...DimOption) *Var {
	v := newVar(name, 0, opts)
	if v.r.Min < 0 {
		v.err = invalid("ShapeVar requires min >= 0 (a shape dim is non-negative); got min=%d. Use NewIntVar for unrestricted scalars.", v.r.Min)
	}
	return v
}

// NewIntVar makes a variable for integers.
func NewIntVar(name string, opts ...DimOption) *Var { return newVar(name, math.MinInt64, opts) }

func newVar(name string, min int64, opts []DimOption) *Var {
	d := &Dim{min: min, max: math.MaxInt64}
	for _, o := range opts {
		o(d)
	}
	v := &Var{name: name, r: symbolic.Interval{Min: d.min, Max: d.max}}
	if d.min > d.max {
		v.err = invalid("Invalid ranges [%d:%d]", d.min, d.max)
	}
	v.e, v.vars = symbolic.Symbol(fmt.Sprintf("%s#%p", name, v), false), []*Var{v}
	return v
}

// Add is v + x; x is an integer or a *Var.
func (v *Var) Add(x any) *Var { return v.with("Add", x) }

// Sub is v - x.
func (v *Var) Sub(x any) *Var { return v.with("Add", v.operand(x).with("Mul", -1)) }

// Mul is v * x.
func (v *Var) Mul(x any) *Var { return v.with("Mul", x) }

// FloorDiv is v // x.
func (v *Var) FloorDiv(x any) *Var { return v.with("FloorDiv", x) }

// Mod is v % x.
func (v *Var) Mod(x any) *Var { return v.with("PythonMod", x) }

// Eq assumes v == x.
func (v *Var) Eq(x any) *Assumption { return v.assume("Equality", x) }

// Ne assumes v != x.
func (v *Var) Ne(x any) *Assumption { return v.assume("Unequality", x) }

// Le assumes v <= x.
func (v *Var) Le(x any) *Assumption { return v.assume("LessThan", x) }

// Lt assumes v < x.
func (v *Var) Lt(x any) *Assumption { return v.assume("StrictLessThan", x) }

// Ge assumes v >= x.
func (v *Var) Ge(x any) *Assumption { return v.assume("GreaterThan", x) }

// Gt assumes v > x.
func (v *Var) Gt(x any) *Assumption { return v.assume("StrictGreaterThan", x) }

func (v *Var) operand(x any) *Var {
	switch x := x.(type) {
	case *Var:
		return x
	case int:
		return &Var{e: symbolic.Const(int64(x))}
	case int64:
		return &Var{e: symbolic.Const(x)}
	}
	return &Var{e: symbolic.Const(0), err: invalid("a %T is used with the variable %s; want an integer or a *tracer.Var", x, v.name)}
}

func (v *Var) with(op symbolic.Op, x any) *Var {
	o := v.operand(x)
	out := &Var{name: v.name, e: (&symbolic.Expr{Op: op, Args: []*symbolic.Expr{v.e, o.e}}).Simplify(), vars: append(slices.Clone(v.vars), o.vars...), err: v.err}
	if out.err == nil {
		out.err = o.err
	}
	return out
}

func (v *Var) assume(op symbolic.Op, x any) *Assumption {
	o := v.operand(x)
	return &Assumption{&symbolic.Expr{Op: op, Args: []*symbolic.Expr{v.e, o.e}}, append(slices.Clone(v.vars), o.vars...)}
}

// place is where an input holds a variable, or an expression of variables.
type varPlace struct {
	leaf, dim int // dim is -1 for an integer
	v         *Var
}

// specified takes a [ShapesSpec] along the inputs.
func (e *exporter) specified(spec ShapesSpec) error {
	c := e.call
	if e.deferred {
		return invalid("tracer.PreferDeferredRuntimeAsserts cannot be combined with a ShapesSpec. ShapesSpec uses unbacked symbols only, which already emit runtime assertions; the option has no effect.")
	}
	used := map[string]bool{}
	at := 0
	pos, kw := c.spec.Children[0].Children, c.spec.Children[1].Children
	rest, variadic := c.variadic()
	r := &resolver{c: c}
	first := len(pos) - r.variadicCount()
	for i, s := range append(slices.Clone(pos), kw...) {
		name := c.names[i]
		x, ok := spec.Params[name]
		used[name] = true
		if star := "*" + rest; !ok && variadic && i >= first && i < len(pos) {
			list, isList := spec.Params[star].([]any)
			if used[star] = true; spec.Params[star] != nil && !isList {
				return invalid("ParamsSpec entry '%s' must be a list, got %T", star, spec.Params[star])
			}
			if i-first < len(list) {
				x = list[i-first]
			}
		}
		if stars := "**" + c.keywordsName(); !ok && i >= len(pos) && !c.isParam(name) {
			m, isMap := spec.Params[stars].(map[string]any)
			if used[stars] = true; spec.Params[stars] != nil && !isMap {
				return invalid("ParamsSpec entry '%s' must be a dict, got %T", stars, spec.Params[stars])
			}
			x = m[name]
		}
		if err := e.specNode(s, x, &at, c.places); err != nil {
			return err
		}
	}
	var unknown []string
	for name := range spec.Params {
		if !used[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return invalid("ParamsSpec has entries %s that do not match any argument passed to export(). Spec keys must be forward parameter names that were actually passed. Inputs received: %s.", quoted(unknown), quoted(r.topNames()))
	}
	e.assumptions = spec.Assumptions
	return nil
}

// specNode takes what is said of one part of the inputs.
func (e *exporter) specNode(s *pytree.Spec, spec any, at *int, places []string) error {
	if s.IsLeaf() {
		*at++
		return e.specLeaf(*at-1, spec)
	}
	child := func(k pytree.Key, i int) (any, error) {
		switch spec := spec.(type) {
		case nil:
			return nil, nil
		case ObjectSpec:
			return spec[k.Name], nil
		case DictSpec:
			if k.Kind == pytree.IntMapKey {
				if x, ok := spec[int(k.Num)]; ok {
					return x, nil
				}
				return spec[k.Num], nil
			}
			return spec[k.Name], nil
		case SeqSpec:
			if i < len(spec) {
				return spec[i], nil
			}
			return nil, nil
		}
		return nil, invalid("a %T is given for %s, which is %s; want a tracer.ObjectSpec, DictSpec or SeqSpec", spec, places[*at], kindOf(s))
	}
	for i, k := range s.Keys() {
		x, err := child(k, i)
		if err != nil {
			return err
		}
		if err := e.specNode(s.Children[i], x, at, places); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) specLeaf(i int, spec any) error {
	place := e.call.places[i]
	switch spec := spec.(type) {
	case nil:
		return nil
	case TensorSpec:
		t, ok := e.call.leaves[i].(*tensor.Tensor)
		switch {
		case !ok:
			return invalid("TensorSpec is given for %s, which is a %T", place, e.call.leaves[i])
		case len(spec) != t.Dim():
			return invalid("TensorSpec has %d dims but tensor %s has %d dims", len(spec), place, t.Dim())
		}
		for d, x := range spec {
			if err := e.specSize(i, d, x, t.Sizes()[d]); err != nil {
				return err
			}
		}
		return nil
	}
	n, ok := e.call.leaves[i].(int64)
	if !ok {
		return invalid("a %T is given for %s, which is a %T", spec, place, e.call.leaves[i])
	}
	return e.specSize(i, -1, spec, n)
}

func (e *exporter) specSize(i, d int, spec any, size int64) error {
	fixed := func(want int64) error {
		if want != size {
			return invalid("shapes_spec declares dim %d as static with value %d, but got %d", d, want, size)
		}
		return nil
	}
	switch x := spec.(type) {
	case nil:
		return nil
	case int:
		return fixed(int64(x))
	case int64:
		return fixed(x)
	case *Var:
		if x.err == nil {
			e.vars = append(e.vars, varPlace{i, d, x})
		}
		return x.err
	}
	return invalid("TensorSpec dim %d: expected a *tracer.Var, an integer or nil, got %T", d, spec)
}

// spread makes unbacked symbols of the places that variables have: one each, in order. Those that are functions of others are known to be.
func (e *exporter) spread(env *env) error {
	symbols := map[string]*symbolic.Expr{}
	ranges := func(name string) symbolic.Interval {
		for _, p := range e.vars {
			for _, v := range p.v.vars {
				if v.e.Name == name {
					return v.r
				}
			}
		}
		return symbolic.Unbounded
	}
	for _, p := range e.vars {
		r := p.v.e.Bounds(ranges)
		if p.dim >= 0 {
			r.Min = max(r.Min, 0)
		}
		n := env.newUnbacked(r)
		name := n.Expr().Name
		in := passes.InputSymbol{Name: name, Dim: p.dim}
		if p.v.e.Op == symbolic.OpSymbol && symbols[p.v.e.Name] == nil {
			symbols[p.v.e.Name] = n.Expr()
		} else if x, ok := over(p.v.e, symbols); ok {
			in.Is = x
			env.assert(guard{op: "Equality", a: n.Expr(), b: x})
			env.subst[name] = x
			n = env.rec.Size(symbolic.FromExpr(x, 0))
		}
		env.places = append(env.places, p)
		env.inputs = append(env.inputs, in)
		if p.dim < 0 {
			e.values[p.leaf] = n
		} else {
			e.sizes[p.leaf][p.dim] = n
		}
	}
	for _, a := range e.assumptions {
		x, ok := over(a.e, symbols)
		if !ok {
			return invalid("the assumption %v has a variable that no input holds by itself", readable(a))
		}
		if yes, known := (Bool{e: x, env: env}).known(); !known || !yes {
			env.require(x)
		}
	}
	return nil
}

// readable is an assumption with the names of its variables.
func readable(a *Assumption) *symbolic.Expr {
	return a.e.Substitute(func(name string) *symbolic.Expr {
		short, _, _ := strings.Cut(name, "#")
		return symbolic.Symbol(short, false)
	})
}

// over writes an expression of variables over symbols; ok is false if one has none.
func over(x *symbolic.Expr, symbols map[string]*symbolic.Expr) (out *symbolic.Expr, ok bool) {
	ok = true
	out = x.Substitute(func(name string) *symbolic.Expr {
		ok = ok && symbols[name] != nil
		return symbols[name]
	})
	if len(out.Args) > 0 && !strings.HasSuffix(string(out.Op), "Than") && !strings.HasSuffix(string(out.Op), "equality") && out.Op != "Equality" {
		out = out.Simplify()
	}
	return out, ok
}

// hold tells which value of the graph holds the symbols of an input.
func (e *env) hold(leaf int, v *export.Value) {
	for i, p := range e.places {
		if p.leaf == leaf {
			e.inputs[i].Input = v
		}
	}
}
