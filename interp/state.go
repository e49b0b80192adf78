package interp

import (
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/tensor"
)

// roots is the set of graph inputs whose memory a value may look at.
type roots map[int]bool

// mutatedInputs finds the graph inputs whose memory a run may write, directly or through views and subgraphs.
func mutatedInputs(k *code) map[int]bool {
	in := make([]roots, len(k.graph.Inputs))
	for i := range in {
		in[i] = roots{i: true}
	}
	written := map[int]bool{}
	trace(k, in, written, 0)
	return written
}

// trace follows aliases through k, whose inputs have the given roots; it adds to written and gives the outputs' roots.
func trace(k *code, in []roots, written map[int]bool, depth int) []roots {
	vals := make([]roots, k.nvals)
	for i, x := range k.graph.Inputs {
		if x.Value != nil && i < len(in) {
			vals[x.Value.ID] = in[i]
		}
	}
	for i := range k.steps {
		s := &k.steps[i]
		var out roots
		if s.op != nil {
			out = traceOp(s, vals, written)
		} else {
			out = traceCall(s, vals, written, depth)
		}
		for _, o := range s.node.Outputs {
			export.EachValue(o, func(v *export.Value) { vals[v.ID] = out })
		}
	}
	outs := make([]roots, len(k.outputs))
	for i, r := range k.outputs {
		outs[i] = rootsOf(r, vals)
	}
	return outs
}

func rootsOf(r ref, vals []roots) roots {
	switch r.kind {
	case valueRef:
		return vals[r.id]
	case listRef, tensorRef:
		all := roots{}
		for _, x := range r.list {
			all.add(rootsOf(x, vals))
		}
		return all
	}
	if d, ok := r.val.(*dictRef); ok {
		all := roots{}
		for _, x := range d.vals {
			all.add(rootsOf(x, vals))
		}
		return all
	}
	return nil
}

func (r roots) add(other roots) {
	for k := range other {
		r[k] = true
	}
}

// traceOp: a result with an alias mark may look at the memory of every argument that has one.
func traceOp(s *step, vals []roots, written map[int]bool) roots {
	sig := s.op.Signature()
	out := roots{}
	for _, i := range s.op.Writes {
		if writesSilently(s) {
			for k := range rootsOf(s.args[i], vals) {
				written[k] = true
			}
		}
	}
	aliases := len(sig.Returns) > 0 && sig.Returns[0].Alias != ""
	for i, p := range sig.Params {
		if p.Type.Alias == "" {
			continue
		}
		rs := rootsOf(s.args[i], vals)
		if p.Type.Mutable() {
			for k := range rs {
				written[k] = true
			}
		}
		if aliases {
			out.add(rs)
		}
	}
	return out
}

// traceCall is conservative: whatever a subgraph writes is charged to all operands, and results may alias any of them.
func traceCall(s *step, vals []roots, written map[int]bool, depth int) roots {
	all := roots{}
	for _, r := range s.args {
		all.add(rootsOf(r, vals))
	}
	for _, r := range s.kw {
		all.add(rootsOf(r.ref, vals))
	}
	if depth > maxDepth {
		return all
	}
	for _, r := range s.args {
		sub, ok := r.val.(*code)
		if !ok {
			continue
		}
		in := make([]roots, len(sub.graph.Inputs))
		for i := range in {
			in[i] = all
		}
		trace(sub, in, written, depth+1)
	}
	return all
}

// state is the memory of one instance of a module: a value for each graph input that is no user input. Immutable weights
// are shared with other instances; what a run may write is the instance's own. A change of weights makes a new state.
type state struct {
	values []*aten.Value // by graph input; nil for user inputs and what is no tensor
	// owned gives for the memory with a buffer's initial contents the instance's own.
	owned map[*tensor.Storage]*tensor.Storage
	// shared has the plans, which hold constants made of the weights, so it belongs to all states with the same weights.
	shared *shared
	memory *stateMemory
}

// newState takes the program's tensors, copying those that runs may write. Tensors that share a storage go on sharing.
func newState(p *export.Program, mutable map[int]bool, b *budget) (*state, error) {
	sig := p.Signature()
	tensors := make([]*tensor.Tensor, len(sig.Inputs))
	for i := range sig.Inputs {
		switch sig.Inputs[i].Kind {
		case export.Parameter, export.Buffer, export.ConstantTensor:
		default:
			continue
		}
		t, err := p.InputTensor(&sig.Inputs[i])
		if err != nil {
			return nil, err
		}
		tensors[i] = t
	}
	st := &state{values: make([]*aten.Value, len(sig.Inputs)), owned: map[*tensor.Storage]*tensor.Storage{}, shared: newShared(b), memory: &stateMemory{}}
	for i, t := range tensors {
		if t != nil && mutable[i] {
			st.owned[t.Storage()] = nil
		}
	}
	if err := st.own(b); err != nil {
		return nil, err
	}
	for i, t := range tensors {
		if t == nil {
			continue
		}
		v, err := moved(t, st.owned)
		if err != nil {
			return nil, fmt.Errorf("interp: %s: %w", sig.Inputs[i].Target, err)
		}
		st.values[i] = v
	}
	return st, nil
}

// own makes the instance's memory, a copy of the initial contents.
func (st *state) own(b *budget) error {
	n := int64(0)
	for initial := range st.owned {
		n += int64(len(initial.Bytes()))
	}
	if err := b.hold(n, st.memory); err != nil {
		return err
	}
	for initial := range st.owned {
		st.owned[initial] = copyStorage(initial)
	}
	return nil
}

// moved is t over the memory that takes the place of its own, if there is one.
func moved(t *tensor.Tensor, to map[*tensor.Storage]*tensor.Storage) (*aten.Value, error) {
	st := to[t.Storage()]
	if st == nil {
		return aten.FromTensor(t), nil
	}
	v, err := tensor.View(st, t.DType(), t.Sizes(), t.Strides(), t.Offset())
	if err != nil {
		return nil, err
	}
	return aten.FromTensor(v.WithBits(t.IsConj(), t.IsNeg())), nil
}

// fork is a state of the same weights with buffers of its own in their initial contents.
func (st *state) fork(b *budget) (*state, error) {
	f := &state{values: make([]*aten.Value, len(st.values)), owned: map[*tensor.Storage]*tensor.Storage{}, shared: st.shared, memory: &stateMemory{}}
	for initial := range st.owned {
		f.owned[initial] = nil
	}
	if err := f.own(b); err != nil {
		return nil, err
	}
	to := map[*tensor.Storage]*tensor.Storage{}
	for initial, own := range st.owned {
		to[own] = f.owned[initial]
	}
	for i, v := range st.values {
		if v == nil {
			continue
		}
		var err error
		if f.values[i], err = moved(v.T, to); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func copyStorage(s *tensor.Storage) *tensor.Storage {
	c := tensor.NewStorage(len(s.Bytes()))
	copy(c.Bytes(), s.Bytes())
	return c
}

// reset puts the initial contents back.
func (st *state) reset() {
	for from, to := range st.owned {
		copy(to.Bytes(), from.Bytes())
	}
}

// writesSilently reports that an operator with [aten.Op.Writes] is not known to leave its arguments alone.
func writesSilently(s *step) bool {
	for i, p := range s.op.Signature().Params {
		if p.Name == "training" || p.Name == "use_input_stats" {
			on, constant := s.args[i].val.(bool)
			return on || !constant
		}
	}
	return true
}
