package interp

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/plan"
	"github.com/pt2go/pt2/tensor"
)

// maxPlans bounds the plans that a module keeps, one for each set of input sizes.
const maxPlans = 32

// shared is what states with the same weights have in common: the plans.
type shared struct {
	mu    sync.Mutex
	plans map[string]*planned
	order []string // keys, oldest first
	mem   *budget
	cache plan.Cache
}

// planned is a plan with the frames that wait for the next run. A nil plan stands for inputs that cannot be planned.
type planned struct {
	once sync.Once
	plan *plan.Plan
	user []any // outputs that are no tensors; nil elements are tensors
	err  error
	// outputs are the bytes of the fresh outputs of one run.
	outputs int64
	// dropped is set when the plan was forgotten; frames that still run then are not kept.
	dropped atomic.Bool
}

func newShared(b *budget) *shared { return &shared{plans: map[string]*planned{}, mem: b} }

// constants is what plans made of the weights.
func (s *shared) constants() *plan.Cache { return &s.cache }

func (s *shared) get(key string) *planned {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.plans[key]; p != nil {
		return p
	}
	if len(s.order) >= maxPlans {
		old := s.plans[s.order[0]]
		old.dropped.Store(true)
		s.mem.drop(func(f *idleFrame) bool { return f.of == old })
		delete(s.plans, s.order[0])
		s.order = s.order[1:]
	}
	p := &planned{}
	s.plans[key] = p
	s.order = append(s.order, key)
	return p
}

// planKey is what a plan depends on: dtypes, sizes and strides of tensors, values of everything else.
func planKey(in []any) string {
	b := make([]byte, 0, 64)
	for _, x := range in {
		switch x := x.(type) {
		case *tensor.Tensor:
			b = append(b, 't', byte(x.DType()))
			for i, s := range x.Sizes() {
				b = strconv.AppendInt(append(b, ','), s, 10)
				b = strconv.AppendInt(append(b, ':'), x.Strides()[i], 10)
			}
			if x.IsConj() || x.IsNeg() {
				b = append(b, fmt.Sprint(x.IsConj(), x.IsNeg())...)
			}
		case float64:
			b = strconv.AppendUint(append(b, 'f'), math.Float64bits(x), 16)
		default:
			b = fmt.Appendf(b, "%T%v", x, x)
		}
		b = append(b, ';')
	}
	return string(b)
}

// runPlanned runs by a plan; done is false if the program cannot be planned for these inputs.
func (m *Module) runPlanned(ctx context.Context, in []any) (out []any, done bool, err error) {
	if m.random {
		return nil, false, nil
	}
	if len(in) != len(m.users) {
		return nil, false, nil // eager mode words the error
	}
	st := m.state.Load()
	p := st.shared.get(planKey(in))
	p.once.Do(func() { p.err = m.compile(p, st, in) })
	if p.err != nil || p.plan == nil {
		return nil, false, nil // eager mode runs it, or words the error
	}
	inputs := make([]*tensor.Tensor, len(m.users))
	for i, x := range in {
		inputs[i], _ = x.(*tensor.Tensor)
	}
	if err := m.budget.reserve(p.outputs); err != nil {
		return nil, true, err
	}
	defer m.budget.release(p.outputs)
	f, err := p.frame(m, st, inputs)
	if err != nil {
		return nil, true, err
	}
	res, err := f.Run(ctx, inputs, m.opts.Profile)
	if err != nil {
		m.budget.release(f.Bytes())
		return nil, true, err
	}
	m.budget.keep(f, p, st)
	out = make([]any, len(p.user))
	for i, x := range p.user {
		out[i] = x
		if res[i] != nil {
			out[i] = res[i]
		}
	}
	return out, true, nil
}

// frame is one that waits, or a new one.
func (p *planned) frame(m *Module, st *state, inputs []*tensor.Tensor) (*plan.Frame, error) {
	if f := m.budget.take(p, st); f != nil {
		return f, nil
	}
	if err := m.budget.reserve(p.plan.Arena()); err != nil {
		return nil, err
	}
	states := make([]*tensor.Tensor, len(st.values))
	for i, v := range st.values {
		if v != nil {
			states[i] = v.T
		}
	}
	f, err := p.plan.NewFrame(inputs, states, m.opts.Pool)
	if err != nil {
		m.budget.release(p.plan.Arena())
	}
	return f, err
}

// compile records the program for inputs like in. p.plan stays nil if that is not possible.
func (m *Module) compile(p *planned, st *state, in []any) error {
	cache := st.shared.constants()
	var outputs []*aten.Value
	rec, ok, err := plan.Record(func(r *plan.Recorder) error { return m.record(r, st, in, &outputs, &p.user) }, m.opts.Pool, m.exact)
	if err != nil || !ok {
		return err
	}
	var exact []*aten.Value
	if rec.Relaxed() {
		// A second recording tells the strides that the caller must see, and what follows from those within.
		ex, ok, err := plan.Record(func(r *plan.Recorder) error { return m.record(r, st, in, &exact, &p.user) }, m.opts.Pool, true)
		if err != nil || !ok {
			return err
		}
		rec.Follow(ex)
	}
	if p.plan, err = rec.Finish(outputs, exact, plan.Options{Without: m.opts.WithoutPasses, Cache: cache}); err != nil {
		return err
	}
	p.outputs = p.plan.OutputBytes()
	return nil
}

// Plan compiles the program for inputs like these, as [Module.Run] does on its first call with such sizes. It is nil if the program
// cannot be planned for them, for instance because shapes depend on data.
func (m *Module) Plan(inputs ...any) (*plan.Plan, error) {
	in, err := normalize(inputs)
	if err != nil {
		return nil, err
	}
	if len(in) != len(m.users) {
		return nil, fmt.Errorf("interp: the program takes %d inputs, got %d", len(m.users), len(in))
	}
	if m.random {
		return nil, nil
	}
	st := m.state.Load()
	p := st.shared.get(planKey(in))
	p.once.Do(func() { p.err = m.compile(p, st, in) })
	return p.plan, p.err
}

// record runs the program through r. outputs receives the tensors that the caller gets, user the other outputs.
func (m *Module) record(r *plan.Recorder, st *state, in []any, outputs *[]*aten.Value, user *[]any) error {
	if m.sharesWritten(st) {
		return &plan.Unplannable{Why: "buffers share memory that the program writes"}
	}
	run := &runner{ctx: context.Background(), build: aten.NewBuild(r, m.reg)}
	args := make([]any, len(m.code.graph.Inputs))
	for i, v := range st.values {
		switch {
		case v == nil:
		case m.mutable[i]:
			args[i] = r.External(plan.State, i, v.T)
		default:
			args[i] = v
		}
	}
	for j, i := range m.users {
		args[i] = in[j]
		if t, isTensor := in[j].(*tensor.Tensor); isTensor {
			args[i] = r.External(plan.Input, j, t)
		}
	}
	out, err := run.run(m.code, args)
	if err != nil {
		return err
	}
	if *user, err = m.writeBack(run.build, args, out); err != nil {
		return err
	}
	*outputs = make([]*aten.Value, len(*user))
	for i, x := range *user {
		if v, isTensor := x.(*aten.Value); isTensor {
			(*outputs)[i], (*user)[i] = v, nil
		}
	}
	return nil
}

// readsStrides reports that the program has an operator whose meaning depends on strides.
func readsStrides(k *code) bool {
	found := false
	k.each(func(s *step) { found = found || (s.op != nil && plan.ReadsStrides(s.op)) })
	return found
}

// sharesWritten reports state that the program may write and that other state looks at: a recording takes each for memory of
// its own.
func (m *Module) sharesWritten(st *state) bool {
	for i, v := range st.values {
		if v == nil || !m.mutable[i] {
			continue
		}
		for j, w := range st.values {
			if j != i && w != nil && w.T.Storage() == v.T.Storage() {
				return true
			}
		}
	}
	return false
}
