package passes

import (
	"fmt"
	"maps"
	"runtime"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// recorder writes the calls of operators into a new graph. Values carry what is known of them: a *ref in their Ref.
type recorder struct {
	build *aten.Build
	table *DecompTable
	g     *export.Graph
	names *export.Namespace
	syms  *symbols
	// metadata is that of the node being taken apart; orig is that node while its own operator is called, nil inside its formula.
	metadata map[string]string
	orig     *export.Node
	made     map[string]*export.Value // new values by the old names
	depth    int
	again    *viewStep // the view being made again
	near     *ref      // says where tensors belong that a formula makes of nothing
	literal  bool      // calls are recorded as they are, writes too
	sympy    bool      // expressions are computed in sympy's order, and not as code would write them
	writes   int       // counts writes to stores, which cannot be taken back
	describe func(op *aten.Op, a *aten.Args, ask func(a *aten.Args) ([]*aten.Value, error)) ([]*aten.Value, error)
	// cast gives the arguments that a call within autocast computes with.
	cast func(op *aten.Op, a *aten.Args) *aten.Args
}

// ref is where a value stands in the graph and in memory.
type ref struct {
	node  *export.Value
	store *store
	chain []viewStep // how it is seen from its store
	gen   int        // of the store when node was current
	grad  bool
	dev   aten.Device
}

// SameMemory reports values that may see the same memory.
func (r *ref) SameMemory(v *aten.Value) bool {
	o, ok := v.Ref.(*ref)
	return ok && o.store == r.store
}

// unrecordable ends a formula that does what a graph cannot hold.
type unrecordable struct{ why string }

func (e *unrecordable) Error() string { return e.why }

func newRecorder(table *DecompTable, reg *aten.Registry, syms *symbols) *recorder {
	r := &recorder{table: table, g: &export.Graph{}, names: export.NewNamespace(), syms: syms, made: map[string]*export.Value{}}
	syms.bind(r)
	r.build = aten.NewBuild(noMemory{}, reg)
	r.build.Intercept = r.intercept
	return r
}

// noMemory is the executor below the recorder, which only numbers reach.
type noMemory struct{}

func (noMemory) View(*aten.Meta) *aten.Value  { panic(&unrecordable{"a view without an operator"}) }
func (noMemory) Alloc(*aten.Meta) *aten.Value { panic(&unrecordable{"memory without an operator"}) }
func (noMemory) Run(op *aten.Op, _ *aten.Args, _ []*aten.Value) {
	panic(&unrecordable{op.Name() + " run by hand"})
}
func (noMemory) Dynamic(op *aten.Op, _ *aten.Args) []*aten.Value {
	panic(&unrecordable{op.Name() + " run by hand"})
}

// Result gives a number that is known from shapes.
func (noMemory) Result(op *aten.Op, a *aten.Args) any {
	if op.Tags&aten.DataDependent != 0 {
		panic(&unrecordable{op.Name() + " reads data"})
	}
	return op.Result(a)
}

// maxFormulas bounds formulas within formulas.
const maxFormulas = 50

// intercept does what the table says with a call: a formula, or a node.
func (r *recorder) intercept(op *aten.Op, a *aten.Args) ([]*aten.Value, bool) {
	if r.depth++; r.depth > maxFormulas {
		panic(&unrecordable{"formulas within formulas"})
	}
	defer func() { r.depth-- }()
	if r.literal {
		markWritten(op, a)
		return r.record(op, a), true
	}
	if name := op.Name(); name != "aten.linear.default" && name != "aten.matmul.default" { // those look at memory in their formulas
		r.refreshAll(a)
	}
	if writes(op, a) {
		return r.mutate(op, a), true
	}
	if f := r.table.formula(op); f != nil {
		if out, ok := r.try(f, op, a); ok {
			return out, true
		}
	}
	return r.record(op, a), true
}

// writes reports that the schema of op marks an argument as written.
func writes(op *aten.Op, a *aten.Args) bool {
	s := op.Signature()
	for i := range s.Params {
		if s.Params[i].Type.Mutable() && a.V[i] != nil {
			return true
		}
	}
	return false
}

// try runs a formula; if it cannot be recorded, what it recorded is taken back.
func (r *recorder) try(f Decomp, op *aten.Op, a *aten.Args) (out []*aten.Value, ok bool) {
	nodes, values, names, orig, near := len(r.g.Nodes), len(r.g.Values), r.names.Clone(), r.orig, r.near
	stores, writes := r.syms.mark(), r.writes
	r.near = r.firstRef(a)
	defer func() {
		r.orig, r.near = orig, near
		if e := recover(); e != nil {
			switch e.(type) {
			case *unrecordable, *aten.Error, *aten.DataError:
			case runtime.Error:
				if _, err := r.shapes(op, a); err != nil { // what the formula did not expect
					panic(err)
				}
				panic(e)
			default:
				panic(e)
			}
			if r.writes != writes {
				panic(&MutationError{op.Name(), fmt.Sprint("its formula writes and then cannot go on: ", e)})
			}
			r.g.Nodes, r.g.Values, r.names = r.g.Nodes[:nodes], r.g.Values[:values], names
			r.syms.reset(stores)
			out, ok = nil, false
		}
	}()
	r.orig = nil
	out = f(r.build, &aten.Args{Op: op, V: a.V})
	if orig != nil && orig.Op == op {
		r.orig = orig
		if want, known := r.recorded(op); known && !consistent(out, want) {
			panic(&unrecordable{"the formula of " + op.Name() + " has other sizes than the program records"})
		}
	}
	return out, true
}

// record writes a call as a node and gives its results.
func (r *recorder) record(op *aten.Op, a *aten.Args) []*aten.Value {
	outs := r.infer(op, a)
	in := r.firstRef(a)
	if r.orig == nil && r.near != nil {
		r.explicit(op, a, in)
	}
	n := &export.Node{Target: "torch.ops." + op.Name(), Op: op, Args: r.encode(op, a), Metadata: maps.Clone(r.metadata)}
	n.Name = r.names.Create(nodeName(n.Target))
	var results []*aten.Value
	i := 0
	for j, ret := range op.Signature().Returns {
		many := len(op.Signature().Returns) > 1
		if !ret.List {
			v, arg := r.result(n, outs[i], in, many)
			if v != nil {
				r.relate(op, a, v, outs[i], 0)
				r.bindData(v)
			}
			results, n.Outputs = append(results, v), append(n.Outputs, arg)
			i++
			continue
		}
		rest := len(outs) - i - (len(op.Signature().Returns) - 1 - j)
		list := make([]*export.Value, 0, rest)
		for k := range rest {
			v, arg := r.result(n, outs[i], in, true)
			w, _ := arg.(*export.Value)
			if v != nil {
				r.relate(op, a, v, outs[i], k)
				r.bindData(v)
			}
			results, list = append(results, v), append(list, w)
			i++
		}
		n.Outputs = append(n.Outputs, list)
	}
	r.g.Nodes = append(r.g.Nodes, n)
	return results
}

// bindData notes sizes that data decides, when calls are recorded as they are.
func (r *recorder) bindData(v *aten.Value) {
	for d, n := range v.Sizes {
		if e := n.Expr(); r.literal && e.Op == symbolic.OpSymbol && isUnbacked(e.Name) {
			if _, ok := r.syms.sizes[e.Srepr()]; !ok {
				r.syms.sizes[e.Srepr()] = source{v, d}
			}
		}
	}
}

// firstRef is that of the first tensor among the arguments, which says where results belong.
func (r *recorder) firstRef(a *aten.Args) *ref {
	var out *ref
	grad := false
	see := func(v *aten.Value) {
		if v == nil {
			return
		}
		if x, ok := v.Ref.(*ref); ok {
			if out == nil {
				out = x
			}
			grad = grad || x.grad
		}
	}
	for _, v := range a.V {
		switch v := v.(type) {
		case *aten.Value:
			see(v)
		case []*aten.Value:
			for _, x := range v {
				see(x)
			}
		}
	}
	res := &ref{dev: aten.Device{Type: "cpu", Index: -1}}
	if out != nil {
		res.dev, res.grad = out.dev, grad
	} else if r.near != nil {
		res.dev = r.near.dev
	}
	for i, p := range a.Op.Signature().Params {
		if d, ok := a.V[i].(aten.Device); ok && p.Type.Base == "Device" {
			res.dev = d
		}
	}
	return res
}

// explicit fills in what PyTorch's formulas say of the tensors that they make, though it is what they would have anyway.
func (r *recorder) explicit(op *aten.Op, a *aten.Args, in *ref) {
	set := func(name string, v any) {
		if i := a.Index(name); i >= 0 && a.V[i] == nil {
			a.V[i] = v
		}
	}
	switch op.Name() {
	case "aten.arange.start_step", "aten.full.default":
		set("layout", aten.StridedLayout)
		set("device", in.dev)
		set("pin_memory", false)
	case "aten.scalar_tensor.default":
		if a.V[a.Index("device")] == nil { // else the formula says all that PyTorch's says
			set("layout", aten.StridedLayout)
			set("device", in.dev)
		}
	case "aten.full_like.default":
		set("pin_memory", false)
		set("memory_format", aten.PreserveFormat)
	}
}

// result makes the graph's value for one result, nil for an undefined one.
func (r *recorder) result(n *export.Node, m *aten.Value, in *ref, element bool) (*aten.Value, export.Argument) {
	if m == nil || m.DType == tensor.Invalid {
		return nil, nil
	}
	grad := in.grad && (m.DType.IsFloat() || m.DType.IsComplex())
	name := n.Name
	if element {
		name = r.names.Create("getitem")
	}
	gv := r.value(name, export.TensorKind)
	gv.Def = n
	gv.Tensor = &export.TensorMeta{DType: m.DType, Sizes: m.Sizes, Strides: m.Strides, Offset: m.Offset, RequiresGrad: grad, Device: in.dev, Layout: aten.StridedLayout}
	v := &aten.Value{Meta: m.Meta}
	v.View = nil
	v.Ref = &ref{node: gv, store: &store{}, grad: grad, dev: in.dev}
	v.Ref.(*ref).store.value = v
	return v, gv
}

func (r *recorder) value(name string, kind export.ValueKind) *export.Value {
	v := &export.Value{Name: name, Kind: kind, ID: len(r.g.Values)}
	r.g.Values = append(r.g.Values, v)
	return v
}

// nodeName is the name that PyTorch gives the call of a target while it traces.
func nodeName(target string) string {
	parts := strings.Split(target, ".")
	if len(parts) == 5 && strings.HasPrefix(target, "torch.ops.") && parts[3] != "sym_size" {
		return parts[3]
	}
	return export.TargetName(target)
}

// infer gives what is known of a call's results before it runs: by the shape function, or, where that cannot go on or loses a symbol,
// by what the program records of the node.
func (r *recorder) infer(op *aten.Op, a *aten.Args) []*aten.Value {
	var recorded []*aten.Value
	ok := false
	if r.orig != nil && r.orig.Op == op {
		recorded, ok = r.recorded(op)
	}
	ask := func(a *aten.Args) ([]*aten.Value, error) { return r.shapes(op, a) }
	var outs []*aten.Value
	var err error
	if r.describe != nil {
		outs, err = r.describe(op, a, ask)
	} else {
		outs, err = ask(a)
	}
	switch {
	case err == nil && (!ok || consistent(outs, recorded)):
		return outs
	case ok:
		return recorded
	}
	if v := r.likeSelf(op, a); v != nil {
		return []*aten.Value{v}
	}
	if r.literal {
		panic(err)
	}
	panic(&unrecordable{fmt.Sprintf("the shapes of %s are not known: %v", op.Name(), err)})
}

// consistent reports that inferred values have the recorded dtypes and sizes, symbols where there are symbols.
func consistent(got, want []*aten.Value) bool {
	if len(got) != len(want) {
		return false
	}
	for i, w := range want {
		g := got[i]
		if (g == nil || g.DType == tensor.Invalid) != (w == nil) {
			return false
		}
		if w == nil {
			continue
		}
		if g.DType != w.DType || len(g.Sizes) != len(w.Sizes) {
			return false
		}
		for j := range w.Sizes {
			if g.Sizes[j].IsConst() != w.Sizes[j].IsConst() || !g.Sizes[j].Eq(w.Sizes[j]) {
				return false
			}
		}
	}
	return true
}

// shapes asks the shape function.
func (r *recorder) shapes(op *aten.Op, a *aten.Args) ([]*aten.Value, error) {
	b := aten.NewBuild(aten.Fake{}, r.build.Reg)
	if r.cast != nil {
		a = r.cast(op, a)
	}
	res, err := b.Do(op, &aten.Args{Op: op, V: a.V})
	if err != nil {
		return nil, err
	}
	var outs []*aten.Value
	for _, x := range res {
		switch x := x.(type) {
		case *aten.Value:
			outs = append(outs, x)
		case []*aten.Value:
			outs = append(outs, x...)
		default:
			return nil, &unrecordable{op.Name() + " gives a number"}
		}
	}
	for _, v := range outs {
		if v != nil {
			v.Offset = r.syms.simple(v.Offset)
			r.syms.simplify(v.Sizes)
			r.syms.simplify(v.Strides)
		}
	}
	return outs, nil
}

// likeSelf describes the result of an operator that replaces some elements of its first argument, or sees it again, where a shape
// function cannot go on because an index or a mask is not known.
func (r *recorder) likeSelf(op *aten.Op, a *aten.Args) *aten.Value {
	if r.again != nil && r.again.op == op {
		return &aten.Value{Meta: r.again.meta}
	}
	self, ok := a.V[0].(*aten.Value)
	switch base := op.Signature().Base; {
	case !ok:
	case strings.HasSuffix(base, "_scatter"), strings.HasPrefix(base, "index_"), strings.HasPrefix(base, "masked_"), base == "_unsafe_index_put", base == "copy":
		if base != "index_select" && base != "masked_select" {
			return &aten.Value{Meta: self.Meta}
		}
	}
	return nil
}

// recorded gives the results that the program records of the original node, if they are tensors in the form of the schema.
func (r *recorder) recorded(op *aten.Op) ([]*aten.Value, bool) {
	if len(r.orig.Outputs) != len(op.Signature().Returns) {
		return nil, false
	}
	var outs []*aten.Value
	add := func(v *export.Value) bool {
		if v == nil || v.Kind != export.TensorKind || v.Tensor == nil {
			return v == nil
		}
		outs = append(outs, r.syms.known(v.Tensor))
		return true
	}
	for i, o := range r.orig.Outputs {
		switch o := o.(type) {
		case nil:
			outs = append(outs, nil)
		case *export.Value:
			if op.Signature().Returns[i].List || !add(o) || o == nil {
				return nil, false
			}
		case []*export.Value:
			for _, v := range o {
				if v == nil || !add(v) {
					return nil, false
				}
			}
		default:
			return nil, false
		}
	}
	return outs, true
}

// encode writes bound arguments as a node's, as PyTorch's dispatcher hands them to its tracer: positional ones up to the last that
// has not its default, and of the keywords those that have not theirs.
func (r *recorder) encode(op *aten.Op, a *aten.Args) []export.NamedArg {
	s := op.Signature()
	given := func(i int) bool { return !r.isDefault(op, a, i) }
	last := -1
	for i := range s.Params {
		if !s.Params[i].KwOnly && given(i) {
			last = i
		}
	}
	var out []export.NamedArg
	for i := range s.Params {
		switch p := &s.Params[i]; {
		case !p.KwOnly && i <= last:
			out = append(out, export.NamedArg{Name: p.Name, Value: r.argument(a.V[i]), Kind: export.Positional})
		case p.KwOnly && given(i):
			out = append(out, export.NamedArg{Name: p.Name, Value: r.argument(a.V[i]), Kind: export.Keyword})
		}
	}
	return out
}

func (r *recorder) isDefault(op *aten.Op, a *aten.Args, i int) bool {
	d, err := op.Default(i)
	return err == nil && op.Signature().Params[i].HasDefault && sameArg(d, a.V[i])
}

func sameArg(x, y any) bool {
	switch x := x.(type) {
	case nil:
		return y == nil
	case *aten.Value, []*aten.Value:
		return false
	case symbolic.Int:
		z, ok := y.(symbolic.Int)
		return ok && x.Same(z)
	default:
		return fmt.Sprintf("%T%v", x, x) == fmt.Sprintf("%T%v", y, y)
	}
}

// argument writes one argument in the form of the program model.
func (r *recorder) argument(x any) export.Argument {
	switch x := x.(type) {
	case *aten.Value:
		if x == nil {
			return nil
		}
		return r.use(x)
	case []*aten.Value:
		out := make([]*export.Value, len(x))
		for i, v := range x {
			if v == nil {
				continue
			}
			w, ok := r.use(v).(*export.Value)
			if !ok {
				panic(&unrecordable{"a number in a list of tensors"})
			}
			out[i] = w
		}
		return out
	case symbolic.Int:
		return r.syms.argument(x)
	case []symbolic.Int:
		return r.syms.arguments(x)
	case aten.Scalar:
		return r.scalar(x)
	case []aten.Scalar:
		out := make([]any, len(x))
		for i := range x {
			out[i] = r.scalar(x[i])
		}
		return plainList(out)
	case []float64, []bool, float64, bool, string, tensor.DType, aten.MemoryFormat, aten.Layout, aten.Device, nil:
		return x
	}
	panic(&unrecordable{fmt.Sprintf("an argument of type %T", x)})
}

func (r *recorder) scalar(s aten.Scalar) export.Argument {
	if v, ok := s.Ref.(*export.Value); ok {
		return v
	}
	switch s.Kind {
	case aten.BoolScalar:
		return s.Bool()
	case aten.IntScalar:
		return r.syms.argument(s.I)
	case aten.FloatScalar:
		return s.F
	}
	return s.C
}

// plainList gives a list of constants of one kind its own type.
func plainList(list []any) export.Argument {
	ints, floats := make([]int64, 0, len(list)), make([]float64, 0, len(list))
	for _, x := range list {
		switch x := x.(type) {
		case int64:
			ints = append(ints, x)
		case float64:
			floats = append(floats, x)
		}
	}
	switch len(list) {
	case len(ints):
		return ints
	case len(floats):
		return floats
	}
	return list
}

// use is the graph's value behind x, or the number that x stands for.
func (r *recorder) use(x *aten.Value) export.Argument {
	if p, ok := x.Ref.(*ref); ok {
		return p.node
	}
	if x.Wrapped {
		switch n := x.Ref.(type) {
		case symbolic.Int:
			return r.syms.argument(n)
		case *export.Value:
			return n
		}
	}
	if x.T != nil && x.Wrapped {
		s, err := aten.Item(x.T)
		if err == nil {
			return r.scalar(s)
		}
	}
	panic(&unrecordable{"a tensor that no node makes"})
}

// isHOP reports a higher-order operator.
func isHOP(target string) bool {
	return strings.HasPrefix(target, "torch.ops.higher_order.") || strings.HasPrefix(target, "torch._higher_order_ops.")
}
