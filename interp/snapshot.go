package interp

import (
	"fmt"
	"slices"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
)

// Snapshot is a copy of the buffers that a module's calls change, with the state of its random number generator.
type Snapshot struct {
	prog   *export.Program
	values map[int][]byte // by graph input
	rand   aten.Generator
}

// Snapshot copies the module's own state.
func (m *Module) Snapshot() *Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &Snapshot{prog: m.prog, values: map[int][]byte{}, rand: *m.rand}
	for i, v := range m.state.Load().values {
		if v != nil && m.mutable[i] {
			s.values[i] = slices.Clone(v.T.Storage().Bytes())
		}
	}
	return s
}

// Restore puts a snapshot back, which must be of a module of the same program.
func (m *Module) Restore(s *Snapshot) error {
	if s.prog != m.prog {
		return fmt.Errorf("interp: the snapshot is of another program")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, b := range s.values {
		copy(m.state.Load().values[i].T.Storage().Bytes(), b)
	}
	*m.rand = s.rand
	return nil
}

// LoadStateDict replaces weights and buffers by name; see pt2.Model.LoadStateDict.
func (m *Module) LoadStateDict(state map[string]*tensor.Tensor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.state.Load()
	next := slices.Clone(st.values)
	found := map[string]bool{}
	for i, s := range m.prog.Signature().Inputs {
		t, ok := state[s.Target]
		if !ok || next[i] == nil {
			continue
		}
		found[s.Target] = true
		old := next[i].T
		if t.DType() != old.DType() || !slices.Equal(t.Sizes(), old.Sizes()) {
			return fmt.Errorf("interp: %s: got %v %v, the program has %v %v", s.Target, t.DType(), t.Sizes(), old.DType(), old.Sizes())
		}
		if m.mutable[i] {
			continue
		}
		c := tensor.NewStrided(old.DType(), old.Sizes(), aten.Int64s(aten.ContiguousStrides(next[i].Sizes)))
		aten.Copy(m.opts.Pool, c, t)
		next[i] = aten.FromTensor(c)
	}
	for name := range state {
		if !found[name] {
			return fmt.Errorf("interp: the program has no weight or buffer %q", name)
		}
	}
	for i, s := range m.prog.Signature().Inputs {
		if t, ok := state[s.Target]; ok && m.mutable[i] {
			aten.Copy(m.opts.Pool, st.values[i].T, t)
		}
	}
	m.state.Store(st.with(next))
	m.shared.weightsChanged()
	return nil
}

// with is the same memory with other values, for an atomic swap.
func (st *state) with(values []*aten.Value) *state {
	return &state{values: values, owned: st.owned}
}

// ExampleLeaves flattens the example inputs that the archive records.
func ExampleLeaves(p *export.Program) ([]any, error) {
	ex, ok := p.ExampleInputs()
	if !ok {
		return nil, fmt.Errorf("interp: the archive holds no example inputs that can be read; give inputs")
	}
	var out []any
	for _, a := range ex.Args {
		out = leaves(out, a)
	}
	for _, k := range ex.Kwargs {
		out = leaves(out, k.Value)
	}
	n := 0
	for _, s := range p.Signature().Inputs {
		if s.Kind == export.UserInput {
			n++
		}
	}
	if len(out) != n {
		return nil, fmt.Errorf("interp: the example inputs have %d leaves, the program takes %d", len(out), n)
	}
	return out, nil
}

func leaves(out []any, v any) []any {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			out = leaves(out, x)
		}
	case tensorio.Tuple:
		for _, x := range v {
			out = leaves(out, x)
		}
	case *tensorio.Dict:
		for _, x := range v.Values {
			out = leaves(out, x)
		}
	default:
		out = append(out, v)
	}
	return out
}
