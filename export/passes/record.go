package passes

import (
	"maps"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
)

// Recorder writes calls of operators into a graph of dialect TRAINING, for whoever makes programs from code. Calls are recorded as
// they are made: nothing is taken apart, writes stay writes.
type Recorder struct {
	d         *decomposer
	inner     *inner         // nil for the graph of a program
	subgraphs map[string]int // how many there are, by the prefix of their names
	kept      []*export.Value
}

// RecorderOptions say how a [Recorder] treats sizes.
type RecorderOptions struct {
	// Hints are the values that symbols have where sizes are compared.
	Hints map[string]int64
	// Registry resolves operators, nil takes the built-in ones.
	Registry *aten.Registry
	// Decider is in charge of all symbolic sizes; nil lets hints decide.
	Decider symbolic.Decider
	// Shapes, if not nil, describes the results of calls: ask runs the shape function of op on arguments, those of the call or others.
	Shapes func(op *aten.Op, a *aten.Args, ask func(a *aten.Args) ([]*aten.Value, error)) ([]*aten.Value, error)
}

// NewRecorder starts an empty graph.
func NewRecorder(o RecorderOptions) *Recorder {
	syms := newSymbols(&export.Graph{})
	maps.Copy(syms.hints, o.Hints)
	syms.decider = o.Decider
	r := newRecorder(NewDecompTable(), o.Registry, syms)
	r.literal, r.describe = true, o.Shapes
	return &Recorder{d: &decomposer{recorder: r, env: map[*export.Value]any{}}}
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

// Size is a size with the hint that comparisons see.
func (r *Recorder) Size(n symbolic.Int) symbolic.Int { return r.d.syms.rehint(n) }

// Node is the graph's value behind a tensor.
func (r *Recorder) Node(v *aten.Value) *export.Value { return v.Ref.(*ref).node }

// Rename gives the call that made v, whose only result it is, the next free name for a wish.
func (r *Recorder) Rename(v *aten.Value, wish string) {
	n := r.Node(v)
	n.Name = r.d.names.Create(wish)
	n.Def.Name = n.Name
}

// Argument is a bound argument, or a size, as an argument of a node.
func (r *Recorder) Argument(x any) export.Argument { return r.d.argument(x) }

// Keep makes a value stay though nobody uses it.
func (r *Recorder) Keep(v *export.Value) { r.kept = append(r.kept, v) }

// Finish gives the graph with these outputs, which are arguments over its values. Calls whose results nobody uses go away, unless
// they write, draw or check.
func (r *Recorder) Finish(outputs []export.Argument) *export.Graph {
	r.d.g.Outputs = outputs
	r.d.keep = r.kept
	r.d.finish()
	return r.d.g
}
