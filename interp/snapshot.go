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
	if err := m.checkState(st, state); err != nil {
		return err
	}
	next, err := st.replaced(m.prog.Signature(), state, m)
	if err != nil {
		return err
	}
	m.state.Store(next)
	m.budget.drop(func(f *idleFrame) bool { return f.state == st })
	return nil
}

// checkState refuses names that the program does not have, and tensors that do not fit.
func (m *Module) checkState(st *state, state map[string]*tensor.Tensor) error {
	found := map[string]bool{}
	for i, s := range m.prog.Signature().Inputs {
		t, ok := state[s.Target]
		if !ok || st.values[i] == nil {
			continue
		}
		found[s.Target] = true
		old := st.values[i].T
		switch {
		case t == nil:
			return fmt.Errorf("interp: %s: got nil, the program has %v %v", s.Target, old.DType(), old.Sizes())
		case t.DType() != old.DType() || !slices.Equal(t.Sizes(), old.Sizes()):
			return fmt.Errorf("interp: %s: got %v %v, the program has %v %v", s.Target, t.DType(), t.Sizes(), old.DType(), old.Sizes())
		}
	}
	for name := range state {
		if !found[name] {
			return fmt.Errorf("interp: the program has no weight or buffer %q", name)
		}
	}
	return nil
}

// replaced is a state with other tensors for some names. Weights that share memory change together, as in PyTorch. Buffers change
// in place, since no run is under way, and have the new contents as their initial ones.
func (st *state) replaced(sig *export.GraphSignature, with map[string]*tensor.Tensor, m *Module) (*state, error) {
	p := m.opts.Pool
	initial := map[*tensor.Storage]*tensor.Storage{} // of the instance's own memory
	next := &state{values: make([]*aten.Value, len(st.values)), owned: map[*tensor.Storage]*tensor.Storage{}, shared: newShared(m.budget), memory: st.memory}
	for from, own := range st.owned {
		initial[own] = from
	}
	to := map[*tensor.Storage]*tensor.Storage{} // where new contents go
	for i, s := range sig.Inputs {
		t, ok := with[s.Target]
		if !ok || st.values[i] == nil {
			continue
		}
		old := st.values[i].T
		own := old.Storage()
		if to[own] == nil {
			to[own] = copyStorage(own)
			if initial[own] != nil {
				to[own] = copyStorage(initial[own])
				initial[own] = to[own]
			}
		}
		v, err := moved(old, to)
		if err != nil {
			return nil, err
		}
		aten.Copy(p, v.T, t)
		if initial[own] != nil {
			aten.Copy(p, old, t)
		}
	}
	for own, from := range initial {
		next.owned[from] = own
		delete(to, own)
	}
	for i, v := range st.values {
		if v == nil {
			continue
		}
		var err error
		if next.values[i], err = moved(v.T, to); err != nil {
			return nil, err
		}
	}
	return next, nil
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
