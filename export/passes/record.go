package passes

import (
	"maps"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
)

// Recorder writes calls of operators into a graph of dialect TRAINING, for whoever makes programs from code. Calls are recorded as
// they are made: nothing is taken apart, writes stay writes.
type Recorder struct{ d *decomposer }

// RecorderOptions say how a [Recorder] treats sizes.
type RecorderOptions struct {
	// Hints are the values that symbols have where sizes are compared.
	Hints map[string]int64
	// Registry resolves operators, nil takes the built-in ones.
	Registry *aten.Registry
	// Decider is in charge of all symbolic sizes; nil lets hints decide.
	Decider symbolic.Decider
	// Dynamic describes the results of operators that size their own outputs; nil results mean that it cannot.
	Dynamic func(op *aten.Op, a *aten.Args) []*aten.Value
}

// NewRecorder starts an empty graph.
func NewRecorder(o RecorderOptions) *Recorder {
	syms := newSymbols(&export.Graph{})
	maps.Copy(syms.hints, o.Hints)
	syms.decider = o.Decider
	return startRecorder(o.Registry, syms, o.Dynamic)
}

func startRecorder(reg *aten.Registry, syms *symbols, dynamic func(op *aten.Op, a *aten.Args) []*aten.Value) *Recorder {
	r := newRecorder(NewDecompTable(), reg, syms)
	r.literal, r.dynamic = true, dynamic
	return &Recorder{&decomposer{recorder: r, env: map[*export.Value]any{}}}
}

// Inner starts the graph of a higher-order operator: it knows the same symbols, but none of this graph's values.
func (r *Recorder) Inner() *Recorder {
	return startRecorder(r.d.build.Reg, r.d.syms.inner(), r.d.dynamic)
}

// Reserve takes a name, so that no node gets it. It gives the name that was free.
func (r *Recorder) Reserve(name string) string { return r.d.names.Create(name) }

// Input adds a tensor input under a name that was reserved.
func (r *Recorder) Input(name string, m export.TensorMeta) *aten.Value {
	v := r.d.value(name, export.TensorKind)
	v.Tensor = &m
	r.d.g.Inputs = append(r.d.g.Inputs, export.GraphInput{Name: name, Value: v})
	r.d.define(v, v)
	return r.d.env[v].(*aten.Value)
}

// SymInput adds an input that is a symbolic integer.
func (r *Recorder) SymInput(name string, n symbolic.Int) symbolic.Int {
	v := r.d.value(name, export.SymIntKind)
	v.Sym, v.Hint = n.Expr(), hintOf(n)
	r.d.g.Inputs = append(r.d.g.Inputs, export.GraphInput{Name: name, Value: v})
	r.d.syms.bindValue(v.Sym, v)
	return r.Size(n)
}

func hintOf(n symbolic.Int) any {
	if hasUnbacked(n.Expr()) {
		return nil
	}
	return n.Hint()
}

// ConstantInput adds an input that the program is specialised for: int64, float64, bool, string or nil.
func (r *Recorder) ConstantInput(name string, c any) {
	r.d.g.Inputs = append(r.d.g.Inputs, export.GraphInput{Name: name, Constant: c})
}

// Build is what calls go through.
func (r *Recorder) Build() *aten.Build { return r.d.build }

// SetMetadata gives what nodes recorded from now on say of themselves.
func (r *Recorder) SetMetadata(m map[string]string) { r.d.metadata = m }

// SetHint gives a symbol that appears while recording the value that comparisons see.
func (r *Recorder) SetHint(symbol string, v int64) { r.d.syms.hints[symbol] = v }

// Size is a size with the hint that comparisons see.
func (r *Recorder) Size(n symbolic.Int) symbolic.Int { return r.d.syms.rehint(n) }

// BindSizes notes the symbols that are sizes of a tensor of the graph.
func (r *Recorder) BindSizes(v *aten.Value) { r.d.syms.bindTensor(v) }

// Node is the graph's value behind a tensor.
func (r *Recorder) Node(v *aten.Value) *export.Value { return v.Ref.(*ref).node }

// Argument is a bound argument, or a size, as an argument of a node.
func (r *Recorder) Argument(x any) export.Argument { return r.d.argument(x) }

// Scalar records a call whose only result is a symbolic integer or bool with the value of e.
func (r *Recorder) Scalar(target string, kind export.ValueKind, e *symbolic.Expr, args ...export.NamedArg) *export.Value {
	n := r.start(target, args)
	v := r.d.value(n.Name, kind)
	v.Def, v.Sym = n, e
	if x, err := e.Eval(r.d.syms.env); err == nil && kind == export.SymIntKind && !hasUnbacked(e) {
		v.Hint = x
	}
	n.Outputs = []export.Argument{v}
	if kind == export.SymIntKind {
		r.d.syms.bindValue(e, v)
	}
	return v
}

// Effect records a call without results.
func (r *Recorder) Effect(target string, args ...export.NamedArg) { r.start(target, args) }

// Tensors records a call of something that is no operator of the registry, such as a higher-order one, with results like the given
// ones. A tuple's members get names of their own.
func (r *Recorder) Tensors(target string, metas []*aten.Value, tuple bool, args ...export.NamedArg) []*aten.Value {
	n := r.start(target, args)
	one := !tuple
	n.SingleTensor = &one
	out := make([]*aten.Value, len(metas))
	list := make([]*export.Value, len(metas))
	for i, m := range metas {
		in, _ := m.Ref.(*ref)
		if in == nil {
			in = &ref{dev: aten.Device{Type: "cpu", Index: -1}}
		}
		v, arg := r.d.result(n, m, in, tuple)
		out[i], list[i] = v, arg.(*export.Value)
		n.Outputs = append(n.Outputs, list[i])
	}
	return out
}

func (r *Recorder) start(target string, args []export.NamedArg) *export.Node {
	n := &export.Node{Target: target, Op: r.d.build.Reg.Lookup(target), Args: args, Metadata: maps.Clone(r.d.metadata)}
	n.Name = r.d.names.Create(nodeName(target))
	r.d.g.Nodes = append(r.d.g.Nodes, n)
	return n
}

// Graph is the graph as far as it is recorded.
func (r *Recorder) Graph() *export.Graph { return r.d.g }

// Finish gives the graph with these outputs, which are arguments over its values. Calls whose results nobody uses go away, unless
// they write, draw or check.
func (r *Recorder) Finish(outputs []export.Argument) *export.Graph {
	r.d.g.Outputs = outputs
	r.d.finish()
	return r.d.g
}
