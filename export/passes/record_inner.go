package passes

import (
	"fmt"
	"maps"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
)

// inner is what a [Recorder] of a subgraph knows of the graph around it.
type inner struct {
	parent *Recorder
	lifted map[*export.Value]*export.Value // inputs by the outer values that they stand for
	order  []*export.Value                 // those in the order of first use
}

// Inner starts the graph of a higher-order operator. It knows the symbols of this graph; [Recorder.Lift] makes inputs of its values.
func (r *Recorder) Inner() *Recorder {
	syms := r.d.syms.inner()
	rec := newRecorder(NewDecompTable(), r.d.build.Reg, syms)
	rec.literal = true
	in := &Recorder{d: &decomposer{recorder: rec, env: map[*export.Value]any{}}, inner: &inner{parent: r, lifted: map[*export.Value]*export.Value{}}}
	syms.outer = in.liftSymbol
	return in
}

// Lift gives an inner graph's input that stands for a tensor of the graph around it.
func (r *Recorder) Lift(v *aten.Value) *aten.Value {
	outer := r.inner.parent.Node(v)
	in := r.inner.lifted[outer]
	if in == nil {
		in = r.lift(outer)
	}
	return r.d.env[in].(*aten.Value)
}

func (r *Recorder) lift(outer *export.Value) *export.Value {
	in := r.placeholder(outer)
	r.inner.lifted[outer] = in
	r.inner.order = append(r.inner.order, outer)
	r.d.define(in, in)
	return in
}

// placeholder is an input like an outer value.
func (r *Recorder) placeholder(outer *export.Value) *export.Value {
	in := r.d.value(outer.Name, outer.Kind)
	in.Tensor, in.Sym, in.Hint = outer.Tensor, outer.Sym, outer.Hint
	return in
}

// liftSymbol makes an input of a symbol that is no size of a tensor of the inner graph.
func (r *Recorder) liftSymbol(e *symbolic.Expr) export.Argument {
	outer, ok := r.inner.parent.d.syms.expr(e).(*export.Value)
	if !ok {
		return nil
	}
	if in := r.inner.lifted[outer]; in != nil {
		return in
	}
	return r.lift(outer)
}

// Lifted lists what an inner graph takes from the graph around it, in the order of first use.
func (r *Recorder) Lifted() []*export.Value { return r.inner.order }

// Inside is the inner graph's own value for a tensor's element of [Recorder.Lifted], nil if it has none.
func (r *Recorder) Inside(outer *export.Value) *export.Value { return r.inner.lifted[outer] }

// SharesMemory reports that two tensors of the graph look at the same memory.
func (r *Recorder) SharesMemory(a, b *aten.Value) bool {
	return a.Ref.(*ref).store == b.Ref.(*ref).store
}

// Written reports that a call wrote to the memory of an input.
func (r *Recorder) Written(in *export.Value) bool {
	x, ok := r.d.env[in].(*aten.Value)
	return ok && x.Ref.(*ref).store.written
}

// Aliases reports that a tensor looks at the memory of an input.
func (r *Recorder) Aliases(v *aten.Value, in *export.Value) bool {
	x, ok := r.d.env[in].(*aten.Value)
	return ok && r.SharesMemory(v, x)
}

// FinishInner gives the inner graph. Its inputs are those that were added by name, then one for each of the outer values; name gives
// the name of input i, nil takes those of the outer graph. Single returns a bare value instead of a tuple.
func (r *Recorder) FinishInner(outer []*export.Value, name func(i int) string, outputs []export.Argument, single bool) *export.Graph {
	for _, v := range outer {
		in := r.inner.lifted[v]
		if in == nil {
			in = r.placeholder(v)
		}
		r.d.g.Inputs = append(r.d.g.Inputs, export.GraphInput{Name: in.Name, Value: in})
	}
	names := export.NewNamespace()
	for i := range r.d.g.Inputs {
		in := &r.d.g.Inputs[i]
		if in.Value == nil {
			continue
		}
		if name != nil {
			in.Name = name(i)
		}
		in.Name = names.Create(in.Name)
		in.Value.Name = in.Name
	}
	for _, n := range r.d.g.Nodes {
		old := n.Name
		n.Name = names.Create(nodeName(n.Target))
		for _, o := range n.Outputs {
			export.EachValue(o, func(v *export.Value) {
				if v.Name == old {
					v.Name = n.Name
				} else {
					v.Name = names.Create("getitem")
				}
			})
		}
	}
	r.d.names = names
	r.d.g.SingleReturn = single
	return r.Finish(outputs)
}

// SubgraphName is the next attribute for a subgraph, such as true_graph_0.
func (r *Recorder) SubgraphName(prefix string) string {
	if r.subgraphs == nil {
		r.subgraphs = map[string]int{}
	}
	n := r.subgraphs[prefix]
	r.subgraphs[prefix]++
	return fmt.Sprintf("%s_%d", prefix, n)
}

// HigherOrder records a call of a higher-order operator whose results, the members of a tuple, are like the given tensors, which may be
// of an inner graph.
func (r *Recorder) HigherOrder(target string, results []*aten.Value, args ...export.Argument) []*aten.Value {
	n := &export.Node{Target: target, Metadata: maps.Clone(r.d.metadata), SingleTensor: new(bool)}
	for _, a := range args {
		n.Args = append(n.Args, export.NamedArg{Value: a, Kind: export.Positional})
	}
	n.Name = r.d.names.Create(nodeName(target))
	r.d.g.Nodes = append(r.d.g.Nodes, n)
	out := make([]*aten.Value, len(results))
	for i, m := range results {
		in, _ := m.Ref.(*ref)
		if in == nil {
			in = &ref{dev: aten.Device{Type: "cpu", Index: -1}}
		}
		v, arg := r.d.result(n, m, in, true)
		out[i] = v
		n.Outputs = append(n.Outputs, arg)
	}
	return out
}

// Inputs are the values of the graph's inputs so far, those that were lifted excluded.
func (r *Recorder) Inputs() []*export.Value {
	var out []*export.Value
	for _, in := range r.d.g.Inputs {
		if in.Value != nil {
			out = append(out, in.Value)
		}
	}
	return out
}

// Like is a tensor that no node makes, for its description: it stands on the device of v, and needs a gradient if v does.
func (r *Recorder) Like(v *aten.Value, m aten.Meta) *aten.Value {
	of := r.Node(v)
	node := &export.Value{Name: of.Name, Kind: export.TensorKind, Tensor: &export.TensorMeta{DType: m.DType, Sizes: m.Sizes, Strides: m.Strides, Offset: symbolic.N(0),
		RequiresGrad: of.Tensor.RequiresGrad, Device: of.Tensor.Device, Layout: of.Tensor.Layout}}
	p := v.Ref.(*ref)
	return &aten.Value{Meta: m, Ref: &ref{node: node, store: &store{}, grad: p.grad, dev: p.dev}}
}

// NotPointwise names an operator of the graph that is neither pointwise nor a view, "" if there is none.
func (r *Recorder) NotPointwise() string {
	for _, n := range r.d.g.Nodes {
		if n.Op != nil && n.Op.Tags&aten.Pointwise == 0 && !n.Op.IsView() {
			return n.Op.Name()
		}
	}
	return ""
}

// WithGrad is a tensor's description that needs a gradient only if it may.
func (r *Recorder) WithGrad(v *aten.Value, may bool) *aten.Value {
	p := *v.Ref.(*ref)
	p.grad = p.grad && may
	return &aten.Value{Meta: v.Meta, Ref: &p}
}

// SetAutocast describes results as those of calls with other arguments, which cast gives: what wrap_with_autocast does.
func (r *Recorder) SetAutocast(cast func(op *aten.Op, a *aten.Args) *aten.Args) { r.d.cast = cast }
