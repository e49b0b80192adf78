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

// NewRecorder starts an empty graph. Hints are the values that symbols have where sizes are compared; reg resolves operators, nil
// takes the built-in ones.
func NewRecorder(hints map[string]int64, reg *aten.Registry) *Recorder {
	syms := newSymbols(&export.Graph{})
	maps.Copy(syms.hints, hints)
	r := newRecorder(NewDecompTable(), reg, syms)
	r.literal = true
	return &Recorder{&decomposer{recorder: r, env: map[*export.Value]any{}}}
}

// Reserve takes a name, so that no node gets it.
func (r *Recorder) Reserve(name string) { r.d.names.Create(name) }

// Input adds a tensor input under a name that was reserved.
func (r *Recorder) Input(name string, m export.TensorMeta) *aten.Value {
	v := r.d.value(name, export.TensorKind)
	v.Tensor = &m
	r.d.g.Inputs = append(r.d.g.Inputs, export.GraphInput{Name: name, Value: v})
	r.d.define(v, v)
	return r.d.env[v].(*aten.Value)
}

// Build is what calls go through.
func (r *Recorder) Build() *aten.Build { return r.d.build }

// SetMetadata gives what nodes recorded from now on say of themselves.
func (r *Recorder) SetMetadata(m map[string]string) { r.d.metadata = m }

// Size is a size with the hint that comparisons see.
func (r *Recorder) Size(n symbolic.Int) symbolic.Int { return r.d.syms.rehint(n) }

// Node is the graph's value behind a tensor.
func (r *Recorder) Node(v *aten.Value) *export.Value { return v.Ref.(*ref).node }

// Finish gives the graph with these outputs. Calls whose results nobody uses go away, unless they write, draw or check.
func (r *Recorder) Finish(outputs []*aten.Value) *export.Graph {
	for _, o := range outputs {
		r.d.g.Outputs = append(r.d.g.Outputs, r.Node(o))
	}
	r.d.finish()
	return r.d.g
}
