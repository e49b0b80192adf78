package passes

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
)

// RuntimeAsserts are the conditions that a program checks while it runs.
type RuntimeAsserts struct {
	Conditions []*symbolic.Expr
	// Range is what is known of an unbacked symbol.
	Range func(symbol string) symbolic.Interval
	// Inputs are unbacked symbols that inputs hold, in order.
	Inputs []InputSymbol
}

// InputSymbol is an unbacked symbol that stands for a dimension of an input, or for an input that is an integer.
type InputSymbol struct {
	Name  string
	Input *export.Value
	Dim   int
	Is    *symbolic.Expr // what the symbol is over others; nil if it is none but itself
}

// FinishChecked is [Recorder.Finish] of a graph that checks conditions as soon as their symbols are known, as PyTorch's
// insert_deferred_runtime_asserts makes it: sizes of inputs are read behind the inputs, and numbers with one value are computed once.
func (r *Recorder) FinishChecked(outputs []export.Argument, asserts RuntimeAsserts) *export.Graph {
	d := r.d
	d.g.Outputs = outputs
	d.keep = r.kept
	nodes, _ := live(d.g, d.keep)
	p := &assertPass{recorder: d.recorder, waiting: map[string][]*symbolic.Expr{}, ranges: asserts.Range, added: map[string]bool{}, known: map[string]bool{}, bounded: map[string]bool{},
		replaced: map[*export.Value]export.Argument{}, is: map[string]*symbolic.Expr{}, symbols: asserts.Inputs}
	d.g.Nodes, d.sympy = nil, true
	d.syms.values, d.syms.sizes, d.syms.order = map[string]export.Argument{}, map[string]source{}, nil
	for _, e := range asserts.Conditions {
		p.wait(e)
	}
	p.inputs(d.g.Inputs)
	for i, n := range nodes {
		p.node(n)
		if i == 0 {
			p.check("")
		}
	}
	if len(nodes) == 0 {
		p.check("")
	}
	for i := range d.g.Outputs {
		d.g.Outputs[i] = p.mapped(d.g.Outputs[i])
	}
	copy(outputs, d.g.Outputs)
	d.finish()
	return d.g
}

type assertPass struct {
	*recorder
	waiting  map[string][]*symbolic.Expr // conditions by the last unbacked symbol that they need
	ranges   func(symbol string) symbolic.Interval
	added    map[string]bool
	known    map[string]bool // symbols that have a value
	bounded  map[string]bool // symbols whose ranges are checked
	replaced map[*export.Value]export.Argument
	is       map[string]*symbolic.Expr // symbols that are functions of others
	symbols  []InputSymbol
}

// wait keeps a condition for the largest of its unbacked symbols, "" if it has none.
func (p *assertPass) wait(e *symbolic.Expr) {
	last, n := "", 0
	e.Symbols(func(s string) {
		if k := unbackedNumber(s); isUnbacked(s) && (last == "" || k > n) {
			last, n = s, k
		}
	})
	p.waiting[last] = append(p.waiting[last], e)
}

func unbackedNumber(s string) (n int) {
	for _, c := range s {
		if c >= '0' && c <= '9' {
			n = n*10 + int(c-'0')
		}
	}
	return n
}

// inputs reads the symbols that are sizes of inputs.
func (p *assertPass) inputs(inputs []export.GraphInput) {
	for _, in := range inputs {
		v := in.Value
		switch {
		case v == nil:
		case v.Kind == export.SymIntKind && v.Sym != nil && v.Sym.Op == symbolic.OpSymbol:
			p.see(v.Sym, v)
		case v.Tensor != nil:
			for d, n := range v.Tensor.Sizes {
				p.read(v, "torch.ops.aten.sym_size.int", n, d)
			}
			for d, n := range v.Tensor.Strides {
				p.read(v, "torch.ops.aten.sym_stride.int", n, d)
			}
		}
		p.held(v)
	}
}

// held checks the unbacked symbols that an input holds.
func (p *assertPass) held(v *export.Value) {
	var mine []InputSymbol
	for _, s := range p.symbols {
		if s.Input != v {
			continue
		}
		mine = append(mine, s)
		if p.known[s.Name] {
			continue
		}
		e, is := symbolic.Symbol(s.Name, false), symbolic.Symbol(s.Name, false)
		if s.Is != nil {
			is, p.is[s.Name] = s.Is, s.Is
		}
		if v.Kind == export.SymIntKind {
			p.see(e, v)
			continue
		}
		p.see(e, p.number("torch.ops.aten.sym_size.int", export.SymIntKind, is, []export.NamedArg{positional("self", v), positional("dim", int64(s.Dim))}))
	}
	for _, s := range mine {
		p.bounds(symbolic.Symbol(s.Name, false), s.Name)
	}
}

// read makes a node for a symbol that is a size or stride of a tensor.
func (p *assertPass) read(v *export.Value, target string, n symbolic.Int, d int) {
	e := n.Expr()
	if n.IsConst() || e.Op != symbolic.OpSymbol || p.known[e.Name] {
		return
	}
	w := p.number(target, export.SymIntKind, e, []export.NamedArg{positional("self", v), positional("dim", int64(d))})
	p.see(e, w)
}

func (p *assertPass) see(e *symbolic.Expr, v export.Argument) {
	p.known[e.Name] = true
	p.syms.set(e.Srepr(), v)
}

// node copies a node, and checks what its results make known.
func (p *assertPass) node(n *export.Node) {
	for i := range n.Args {
		n.Args[i].Value = p.mapped(n.Args[i].Value)
	}
	p.metadata = n.Metadata
	if v, e := symbolOf(n); v != nil {
		if old, ok := p.syms.values[e.Srepr()]; ok {
			p.replaced[v] = old
			return
		}
		if readsIntermediate(n) && p.allKnown(e) {
			p.replaced[v] = p.syms.expr(e)
			return
		}
		if e.Op != symbolic.OpInt && e.Op != symbolic.OpBool {
			p.syms.set(e.Srepr(), v)
		}
	}
	p.g.Nodes = append(p.g.Nodes, n)
	p.define(n)
}

// symbolOf is the symbolic result of a node that has no other.
func symbolOf(n *export.Node) (*export.Value, *symbolic.Expr) {
	if len(n.Outputs) != 1 || isHOP(n.Target) {
		return nil, nil
	}
	v, ok := n.Outputs[0].(*export.Value)
	if !ok || v.Kind == export.TensorKind || v.Sym == nil {
		return nil, nil
	}
	if v.Kind == export.SymIntKind {
		return v, v.Sym.Simplify()
	}
	return v, v.Sym
}

func readsIntermediate(n *export.Node) bool {
	for _, a := range n.Args {
		if v, ok := a.Value.(*export.Value); ok && v.Kind == export.TensorKind && v.Def != nil {
			return n.Op == nil || n.Op.Tags&aten.DataDependent == 0
		}
	}
	return false
}

func (p *assertPass) allKnown(e *symbolic.Expr) bool {
	all := true
	e.Symbols(func(s string) { all = all && p.known[s] })
	return all
}

// define finds the unbacked symbols that a node makes known.
func (p *assertPass) define(n *export.Node) {
	for _, o := range n.Outputs {
		export.EachValue(o, func(v *export.Value) {
			if v.Sym != nil {
				v.Sym.Symbols(func(s string) {
					if !isUnbacked(s) || p.known[s] {
						return
					}
					p.known[s] = true
					if v.Sym.Op == symbolic.OpSymbol {
						p.syms.set(v.Sym.Srepr(), v)
					}
					p.bounds(v.Sym, s)
				})
			}
			if v.Tensor == nil {
				return
			}
			for d, size := range v.Tensor.Sizes {
				if e := size.Expr(); e.Op == symbolic.OpSymbol && isUnbacked(e.Name) && !p.known[e.Name] {
					if len(n.Outputs) > 1 { // PyTorch takes the result anew
						v.Name = p.names.Create("getitem")
					}
					p.read(v, "torch.ops.aten.sym_size.int", size, d)
					p.bounds(e, e.Name)
				}
			}
		})
	}
}

// bounds checks the range of a symbol, and what waits for it.
func (p *assertPass) bounds(e *symbolic.Expr, name string) {
	if p.bounded[name] {
		return
	}
	if r := p.ranges(name); e.Op == symbolic.OpSymbol {
		if r.Min != math.MinInt64 {
			p.assert(&symbolic.Expr{Op: "GreaterThan", Args: []*symbolic.Expr{e, symbolic.Const(r.Min)}})
		}
		if r.Max < math.MaxInt64-1 {
			p.assert(&symbolic.Expr{Op: "LessThan", Args: []*symbolic.Expr{e, symbolic.Const(r.Max)}})
		}
	}
	p.bounded[name] = true
	p.check(name)
}

func (p *assertPass) check(name string) {
	list := p.waiting[name]
	delete(p.waiting, name)
	for _, e := range list {
		if p.added[e.Srepr()] || p.rangeSays(e) {
			continue
		}
		missing := ""
		e.Symbols(func(s string) {
			if !p.known[s] && (missing == "" || s < missing) {
				missing = s
			}
		})
		if missing != "" {
			p.waiting[missing] = append(p.waiting[missing], e)
			continue
		}
		p.assert(e)
	}
}

// rangeSays reports a bound of one symbol, which its range has already.
func (p *assertPass) rangeSays(e *symbolic.Expr) bool {
	if e.Op != "LessThan" && e.Op != "GreaterThan" {
		return false
	}
	s, c := e.Args[0], e.Args[1]
	if s.Op != symbolic.OpSymbol {
		s, c = c, s
	}
	return s.Op == symbolic.OpSymbol && c.Op == symbolic.OpInt && p.bounded[s.Name]
}

func (p *assertPass) assert(e *symbolic.Expr) {
	at := len(p.g.Nodes)
	cond := p.condition(e)
	for _, n := range p.g.Nodes[at:] {
		p.resolve(n.Outputs[0].(*export.Value))
	}
	p.added[e.Srepr()] = true
	name := fmt.Sprint(cond)
	if v, ok := cond.(*export.Value); ok {
		name = v.Name
	}
	n := &export.Node{Target: "torch.ops.aten._assert_scalar.default", Metadata: maps.Clone(p.metadata), Name: p.names.Create("_assert_scalar_default"),
		Args: []export.NamedArg{positional("self", cond), positional("assert_msg", fmt.Sprintf("Runtime assertion failed for expression %v on node '%s'", e, name))}}
	n.Op = p.build.Reg.Lookup(n.Target)
	p.g.Nodes = append(p.g.Nodes, n)
}

// resolve writes what a number is over the symbols that are no functions of others.
func (p *assertPass) resolve(v *export.Value) {
	e := v.Sym.Substitute(func(name string) *symbolic.Expr { return p.is[name] })
	if e == v.Sym {
		return
	}
	v.Sym = e
	if e.Op == "Equality" && e.Args[0].Simplify().Srepr() == e.Args[1].Simplify().Srepr() {
		v.Sym, v.Hint = nil, true
	}
}

// mapped puts the values that stand for replaced ones into an argument.
func (p *assertPass) mapped(arg export.Argument) export.Argument {
	switch x := arg.(type) {
	case *export.Value:
		if w, ok := p.replaced[x]; ok {
			return w
		}
	case []*export.Value:
		out := slices.Clone(x)
		for i, v := range x {
			if w, ok := p.replaced[v].(*export.Value); ok {
				out[i] = w
			}
		}
		return out
	case []any:
		out := slices.Clone(x)
		for i := range out {
			out[i] = p.mapped(out[i])
		}
		return out
	}
	return arg
}
