package passes

import (
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/tensor"
)

// StoreWeightsAs keeps parameters and persistent buffers of floating point in another dtype, such as tensor.BFloat16 for a file of half
// the size. The program casts them back at its beginning and computes in the dtypes that it was made for, so that its inputs and
// outputs stay what they are and only the rounding of the weights shows. Buffers that the program changes keep their dtype.
func StoreWeightsAs(p *export.Program, dt tensor.DType) (*export.Program, error) {
	if !dt.IsFloat() || dt.IsFloat8() {
		return nil, &export.ArgumentError{Name: "dtype", Got: dt.String(), Want: "float16, bfloat16, float32 or float64"}
	}
	e := p.Edit()
	parts := e.Parts()
	c := &caster{dt: dt, done: map[string]*tensor.Tensor{}}
	changed := writtenState(p)
	state := &export.OrderedMap[*tensor.Tensor]{}
	cast := map[string]bool{}
	for name, t := range parts.State.All() {
		if t.DType().IsFloat() && !t.DType().IsFloat8() && t.DType() != dt && !changed[t.Storage()] {
			var err error
			if t, err = c.cast(t); err != nil {
				return nil, fmt.Errorf("passes: weight %s: %w", name, err)
			}
			cast[name] = true
		}
		state.Set(name, t)
	}
	parts.State = state
	var first *export.Node
	if len(e.Graph().Nodes) > 0 {
		first = e.Graph().Nodes[0]
	}
	op := aten.Builtin().Lookup("aten._to_copy.default")
	for i, s := range parts.Signature.Inputs {
		v := e.Graph().Inputs[i].Value
		if s.Kind != export.Parameter && s.Kind != export.Buffer || !cast[s.Target] || v == nil || v.Tensor == nil {
			continue
		}
		old := v.Tensor
		stored := *old
		stored.DType = dt
		v.Tensor = &stored
		n, err := e.InsertBefore(first, op, v, old.DType)
		if err != nil {
			return nil, err
		}
		out := n.Outputs[0].(*export.Value)
		out.Tensor = old
		e.ReplaceAllUses(v, out, n)
	}
	return e.Program()
}

// writtenState finds the storages that the program changes: those that mutation outputs name and those that nodes may write.
func writtenState(p *export.Program) map[*tensor.Storage]bool {
	out := map[*tensor.Storage]bool{}
	mark := func(target string) {
		if t, ok := p.StateDict().Get(target); ok {
			out[t.Storage()] = true
		}
	}
	for _, s := range p.Signature().Outputs {
		if s.Kind == export.BufferMutation || s.Kind == export.ParameterMutation {
			mark(s.Target)
		}
	}
	if p.Dialect() == export.ATen.Dialect {
		return out
	}
	// In dialect TRAINING whoever writes may write through a view: what decomposition finds written is the answer.
	q, err := RunDecompositions(p, NewDecompTable(), nil)
	if err == nil {
		for _, s := range q.Signature().Outputs {
			if s.Kind == export.BufferMutation || s.Kind == export.ParameterMutation {
				mark(s.Target)
			}
		}
		return out
	}
	for _, s := range p.Signature().Inputs { // unknown: leave all buffers alone
		if s.Kind == export.Buffer {
			mark(s.Target)
		}
	}
	return out
}

// caster converts tensors; equal views of one storage become one tensor.
type caster struct {
	dt   tensor.DType
	done map[string]*tensor.Tensor
}

func (c *caster) cast(t *tensor.Tensor) (*tensor.Tensor, error) {
	key := fmt.Sprintf("%p %v %v %v %v", t.Storage(), t.DType(), t.Offset(), t.Sizes(), t.Strides())
	if d := c.done[key]; d != nil {
		return d, nil
	}
	out, err := aten.Call("_to_copy", t, aten.Kw("dtype", c.dt))
	if err != nil {
		return nil, err
	}
	v, ok := out[0].(*aten.Value)
	if !ok {
		return nil, fmt.Errorf("no tensor came of the cast")
	}
	c.done[key] = v.T
	return v.T, nil
}
