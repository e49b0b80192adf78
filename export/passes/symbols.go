package passes

import (
	"maps"
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// symbols decides what shape functions ask of symbolic sizes, and finds the graph's values for them.
//
// A shape function compares sizes by their hints and keeps the expressions. Hints of backed symbols are those that the program
// records. Unbacked symbols have none; each gets a prime of its own, so that they are equal to no other size, to 0 or to 1, which
// is how PyTorch treats what it cannot know.
type symbols struct {
	r      *recorder
	hints  map[string]int64
	values map[string]export.Argument // of the current graph: what has the value of an expression, by srepr
	sizes  map[string]source          // of the current graph: where a symbol is the size of a tensor
	order  []string                   // keys of values in order, for taking back
	// decider is in charge of all sizes; nil lets hints decide.
	decider symbolic.Decider
	// outer gives an input for a symbol of the graph around; nil outside of recorded subgraphs.
	outer func(e *symbolic.Expr) export.Argument
}

// source is a dimension of a tensor.
type source struct {
	value *aten.Value
	dim   int
}

// firstPrime and the primes after it stand for unbacked sizes.
const firstPrime = 1009

func newSymbols(g *export.Graph) *symbols {
	s := &symbols{hints: map[string]int64{}, values: map[string]export.Argument{}, sizes: map[string]source{}}
	s.collect(g)
	return s
}

// collect learns the hints of all symbols of a graph.
func (s *symbols) collect(g *export.Graph) {
	var unbacked []string
	see := func(n symbolic.Int) {
		if n.IsConst() {
			return
		}
		e := n.Expr()
		if e.Op == symbolic.OpSymbol && !isUnbacked(e.Name) {
			if _, ok := s.hints[e.Name]; !ok {
				s.hints[e.Name] = n.Hint()
			}
			return
		}
		e.Symbols(func(name string) {
			if isUnbacked(name) {
				unbacked = append(unbacked, name)
			}
		})
	}
	for _, v := range g.Values {
		if m := v.Tensor; m != nil {
			for i := range m.Sizes {
				see(m.Sizes[i])
				see(m.Strides[i])
			}
			see(m.Offset)
		}
		if h, ok := v.Hint.(int64); ok && v.Sym != nil {
			see(symbolic.FromExpr(v.Sym, h))
		} else if v.Sym != nil {
			see(symbolic.FromExpr(v.Sym, 0))
		}
	}
	next := int64(firstPrime)
	for _, name := range unbacked {
		if _, ok := s.hints[name]; !ok {
			s.hints[name], next = next, primeAfter(next)
		}
	}
}

func isUnbacked(name string) bool {
	return strings.HasPrefix(name, "u") || strings.HasPrefix(name, "zu")
}

func primeAfter(n int64) int64 {
	for n++; ; n++ {
		prime := true
		for d := int64(2); d*d <= n && prime; d++ {
			prime = n%d != 0
		}
		if prime {
			return n
		}
	}
}

func (s *symbols) bind(r *recorder) { s.r = r }

// inner is the state for a subgraph: the same hints, no values.
func (s *symbols) inner() *symbols {
	return &symbols{hints: s.hints, decider: s.decider, values: map[string]export.Argument{}, sizes: map[string]source{}}
}

func (s *symbols) env(name string) (any, bool) { v, ok := s.hints[name]; return v, ok }

// rehint gives n the hint that comparisons are to see.
func (s *symbols) rehint(n symbolic.Int) symbolic.Int {
	if n.IsConst() {
		return n
	}
	h, err := n.Expr().EvalInt(s.env)
	if err != nil {
		h = n.Hint()
	}
	return symbolic.FromExpr(n.Expr(), h).Under(s.decider)
}

func (s *symbols) rehints(in []symbolic.Int) []symbolic.Int {
	out := make([]symbolic.Int, len(in))
	for i := range in {
		out[i] = s.rehint(in[i])
	}
	return out
}

// known is a value with recorded metadata.
func (s *symbols) known(m *export.TensorMeta) *aten.Value {
	return &aten.Value{Meta: aten.Meta{DType: m.DType, Sizes: s.rehints(m.Sizes), Strides: s.rehints(m.Strides), Offset: s.rehint(m.Offset)}}
}

// simple writes an expression in normal form where it is a sum of products, and finds out that it is a constant.
func (s *symbols) simple(n symbolic.Int) symbolic.Int {
	if n.IsConst() {
		return n
	}
	return s.rehint(symbolic.FromExpr(n.Expr().Simplify(), n.Hint()))
}

func (s *symbols) simplify(list []symbolic.Int) {
	for i := range list {
		list[i] = s.simple(list[i])
	}
}

// bindTensor notes the symbols that are sizes of a tensor of the graph.
func (s *symbols) bindTensor(v *aten.Value) {
	for d, n := range v.Sizes {
		if e := n.Expr(); !n.IsConst() {
			key := e.Srepr()
			if _, ok := s.sizes[key]; !ok {
				s.sizes[key] = source{v, d}
			}
		}
	}
}

// bindValue notes a symbolic integer of the graph.
func (s *symbols) bindValue(e *symbolic.Expr, v export.Argument) {
	if e == nil || e.Op == symbolic.OpInt {
		return
	}
	s.set(e.Simplify().Srepr(), v)
}

func (s *symbols) set(key string, v export.Argument) {
	if _, ok := s.values[key]; !ok {
		s.values[key] = v
		s.order = append(s.order, key)
	}
}

func (s *symbols) mark() int { return len(s.order) }

// reset forgets the values that were noted since the mark.
func (s *symbols) reset(mark int) {
	for _, k := range s.order[mark:] {
		delete(s.values, k)
	}
	s.order = s.order[:mark]
}

// argument is a number, or the graph's value with the value of an expression, made where there is none yet.
func (s *symbols) argument(n symbolic.Int) export.Argument {
	if err := n.Err(); err != nil {
		panic(&unrecordable{err.Error()})
	}
	if c, ok := n.Const(); ok {
		return c
	}
	return s.expr(n.Expr().Simplify())
}

func (s *symbols) arguments(list []symbolic.Int) export.Argument {
	out := make([]any, len(list))
	constant := true
	for i := range list {
		out[i] = s.argument(list[i])
		_, c := out[i].(int64)
		constant = constant && c
	}
	if !constant {
		return out
	}
	ints := make([]int64, len(list))
	for i := range out {
		ints[i] = out[i].(int64)
	}
	return ints
}

// pythonCalls are the functions that compute expressions in a graph.
var pythonCalls = map[symbolic.Op]string{"Add": "_operator.add", "Mul": "_operator.mul", "FloorDiv": "_operator.floordiv", "CleanDiv": "_operator.floordiv",
	"Mod": "_operator.mod", "PythonMod": "_operator.mod", "Max": "torch.sym_max", "Min": "torch.sym_min", "Pow": "_operator.pow", "PowByNatural": "_operator.pow"}

func (s *symbols) expr(e *symbolic.Expr) export.Argument {
	if e.Op == symbolic.OpInt {
		return e.I
	}
	key := e.Srepr()
	if v, ok := s.values[key]; ok {
		return v
	}
	if src, ok := s.sizes[key]; ok {
		return s.node(e, "torch.ops.aten.sym_size.int", []export.NamedArg{{Name: "self", Value: s.r.use(src.value), Kind: export.Positional}, {Name: "dim", Value: int64(src.dim), Kind: export.Positional}})
	}
	if e.Op == symbolic.OpSymbol {
		if v := s.inverse(e); v != nil {
			return v
		}
		if s.outer != nil {
			if v := s.outer(e); v != nil {
				return v
			}
		}
	}
	target, ok := pythonCalls[e.Op]
	if !ok || len(e.Args) < 2 {
		panic(&unrecordable{"no value of the graph is " + e.String()})
	}
	left := s.expr(e.Args[0])
	for i := 1; i < len(e.Args); i++ {
		part := e
		if len(e.Args) > 2 {
			part = (&symbolic.Expr{Op: e.Op, Args: e.Args[:i+1]}).Simplify()
			if v, ok := s.values[part.Srepr()]; ok {
				left = v
				continue
			}
		}
		right := s.expr(e.Args[i])
		if _, constant := left.(int64); constant && s.r.literal && !s.r.sympy && (e.Op == "Mul" || e.Op == "Add") {
			left, right = right, left
		}
		left = s.node(part, target, []export.NamedArg{{Name: "a", Value: left, Kind: export.Positional}, {Name: "b", Value: right, Kind: export.Positional}})
	}
	return left
}

// inverse computes a symbol from a size a*symbol + b, nil if there is none: derived dimensions may have a root that is no size itself.
func (s *symbols) inverse(e *symbolic.Expr) export.Argument {
	for _, key := range slices.Sorted(maps.Keys(s.sizes)) {
		src := s.sizes[key]
		size := src.value.Sizes[src.dim].Expr()
		name, a, b, ok := size.Linear()
		if !ok || name != e.Name || a < 1 {
			continue
		}
		rest := (&symbolic.Expr{Op: "Add", Args: []*symbolic.Expr{size, symbolic.Const(-b)}}).Simplify()
		v := s.expr(size)
		if b != 0 {
			v = s.node(rest, pythonCalls["Add"], []export.NamedArg{{Name: "a", Value: v, Kind: export.Positional}, {Name: "b", Value: -b, Kind: export.Positional}})
		}
		if a == 1 {
			return v
		}
		return s.node(e, pythonCalls["FloorDiv"], []export.NamedArg{{Name: "a", Value: v, Kind: export.Positional}, {Name: "b", Value: a, Kind: export.Positional}})
	}
	return nil
}

// node records the computation of an expression.
func (s *symbols) node(e *symbolic.Expr, target string, args []export.NamedArg) export.Argument {
	n := &export.Node{Target: target, Op: s.r.build.Reg.Lookup(target), Args: args, Metadata: maps.Clone(s.r.metadata)}
	n.Name = s.r.names.Create(nodeName(target))
	v := s.r.value(n.Name, export.SymIntKind)
	v.Def, v.Sym = n, e
	if h, err := e.EvalInt(s.env); err == nil && !hasUnbacked(e) {
		v.Hint = h
	}
	n.Outputs = []export.Argument{v}
	s.r.g.Nodes = append(s.r.g.Nodes, n)
	s.set(e.Srepr(), v)
	return v
}

func hasUnbacked(e *symbolic.Expr) bool {
	found := false
	e.Symbols(func(name string) { found = found || isUnbacked(name) })
	return found
}

// sameMeta reports equal dtype and equal sizes as expressions.
func sameMeta(a, b *aten.Value) bool {
	if a.DType != b.DType || len(a.Sizes) != len(b.Sizes) {
		return false
	}
	for i := range a.Sizes {
		if !a.Sizes[i].Same(b.Sizes[i]) && !a.Sizes[i].Eq(b.Sizes[i]) {
			return false
		}
	}
	return a.DType != tensor.Invalid
}
