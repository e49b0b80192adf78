package interp

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/plan"
	"github.com/pt2go/pt2/tensor"
)

// Options configure a [Module]. The zero value is the default.
type Options struct {
	// Eager turns planned mode off.
	Eager bool
	// Pool splits the work of one call; nil takes the process-wide default.
	Pool *pool.Pool
	// Registry has the operators; nil takes the built-in ones.
	Registry *aten.Registry
	// NoGuards leaves out the recorded guards; NoInputChecks also the checks of sizes and ranges.
	NoGuards, NoInputChecks bool
	// Seed starts the random number generator, as torch.manual_seed does.
	Seed uint64
	// MemoryLimit bounds what runs and buffers may take in bytes, see [Memory]; 0 for no limit. What would exceed it is an
	// *[aten.LimitError] before the memory is taken.
	MemoryLimit int64
	// IdleTimeout is how long the memory of a run is kept for the next one; 0 takes a minute, a negative one keeps it for ever.
	IdleTimeout time.Duration
	// CheckMeta compares every value with the dtype, sizes and strides that the archive records. It implies Eager.
	CheckMeta bool
	// WithoutPasses names passes of the planner to leave out, see [plan.Passes].
	WithoutPasses []string
	// Profile, if not nil, receives how long each instruction of planned runs takes.
	Profile *plan.Profile
}

// Module is a program ready to run. Run may be called from any number of goroutines: calls of a program that changes its own
// buffers (or draws random numbers) take turns, as they see each other's changes; all other calls run side by side.
type Module struct {
	prog     *export.Program
	opts     Options
	reg      *aten.Registry
	code     *code
	users    []int        // graph inputs that the caller gives, in order
	mutable  map[int]bool // graph inputs whose memory runs may write
	random   bool
	exact    bool // plans keep PyTorch's strides for every value
	inputs   inputChecker
	budget   *budget
	mu       sync.Mutex // held by a run of a stateful program
	state    atomic.Pointer[state]
	rand     *aten.Generator
	stateful bool
}

// inputChecker decides whether a call's leaves fit the program and gives the values of its symbols.
type inputChecker interface {
	Check(leaves []any) (map[string]int64, error)
}

// New makes a program ready. Operators that are missing are reported all at once by a [*MissingError].
func New(p *export.Program, opts Options) (*Module, error) {
	reg := opts.Registry
	if reg == nil {
		reg = aten.Builtin()
	}
	c := &compiler{reg: reg, missing: map[string][]string{}}
	k, err := c.compile(p.Graph())
	if err != nil {
		return nil, err
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	m := &Module{prog: p, opts: opts, reg: reg, code: k, rand: aten.NewGenerator(opts.Seed)}
	m.opts.Eager = opts.Eager || opts.CheckMeta
	sig := p.Signature()
	if len(sig.Inputs) != len(p.Graph().Inputs) || len(sig.Outputs) != len(p.Graph().Outputs) {
		return nil, fmt.Errorf("interp: the signature has %d inputs and %d outputs, the graph %d and %d",
			len(sig.Inputs), len(sig.Outputs), len(p.Graph().Inputs), len(p.Graph().Outputs))
	}
	m.mutable = mutatedInputs(k)
	for i := range sig.Inputs {
		if sig.Inputs[i].Kind == export.UserInput {
			m.users = append(m.users, i)
		}
	}
	if err := m.markTargets(); err != nil {
		return nil, err
	}
	m.random, m.exact = drawsRandom(k), readsStrides(k)
	m.budget = newBudget(&m.opts)
	st, err := newState(p, m.mutable, m.budget)
	if err != nil {
		return nil, err
	}
	m.state.Store(st)
	m.stateful = len(st.owned) > 0 || m.random
	if m.inputs, err = newInputChecker(p, opts); err != nil {
		return nil, err
	}
	return m, nil
}

// markTargets adds the buffers and parameters that mutation outputs update to what runs may write.
func (m *Module) markTargets() error {
	sig := m.prog.Signature()
	for _, o := range sig.Outputs {
		var kind export.InputKind
		switch o.Kind {
		case export.BufferMutation:
			kind = export.Buffer
		case export.ParameterMutation:
			kind = export.Parameter
		default:
			continue
		}
		i := m.inputOf(kind, o.Target)
		if i < 0 {
			return fmt.Errorf("interp: output %s updates %q, which is no input of the graph", o.Arg.ArgName(), o.Target)
		}
		m.mutable[i] = true
	}
	return nil
}

func (m *Module) inputOf(kind export.InputKind, target string) int {
	for i, s := range m.prog.Signature().Inputs {
		if s.Kind == kind && s.Target == target {
			return i
		}
	}
	return -1
}

func drawsRandom(k *code) bool {
	found := false
	k.each(func(s *step) { found = found || (s.op != nil && s.op.Tags&aten.Random != 0 && !inference(s)) })
	return found
}

// inference reports that a call such as dropout's is known not to be a training one: it draws nothing.
func inference(s *step) bool {
	for i, p := range s.op.Signature().Params {
		if p.Name == "train" || p.Name == "training" {
			on, constant := s.args[i].val.(bool)
			return constant && !on
		}
		if p.Name == "dropout_p" {
			rate, constant := s.args[i].val.(float64)
			return constant && rate == 0
		}
	}
	return false
}

// each visits all steps, those of subgraphs included.
func (k *code) each(f func(s *step)) {
	for i := range k.steps {
		f(&k.steps[i])
		for _, r := range k.steps[i].args {
			if sub, ok := r.val.(*code); ok {
				sub.each(f)
			}
		}
	}
}

// Program is the program that m runs.
func (m *Module) Program() *export.Program { return m.prog }

// Stateful reports that calls change buffers or draw random numbers, so that they take turns.
func (m *Module) Stateful() bool { return m.stateful }

// Instance makes another module over the same program, plans and weights (those of now, if [Module.LoadStateDict] changed them), with
// buffers of its own in their initial state and a generator of its own.
func (m *Module) Instance() (*Module, error) {
	st, err := m.state.Load().fork(m.budget)
	if err != nil {
		return nil, err
	}
	i := &Module{prog: m.prog, opts: m.opts, reg: m.reg, code: m.code, users: m.users, mutable: m.mutable, random: m.random, exact: m.exact,
		inputs: m.inputs, budget: m.budget, rand: aten.NewGenerator(m.opts.Seed), stateful: m.stateful}
	i.state.Store(st)
	return i, nil
}

// Seed restarts the random number generator, as torch.manual_seed does.
func (m *Module) Seed(seed uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rand.Seed(seed)
}

// Reset puts all buffers back to their initial contents and restarts the generator.
func (m *Module) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.Load().reset()
	m.rand.Seed(m.opts.Seed)
}

// Run calls the program on flat inputs: the leaves of (args, kwargs) in order, each a *tensor.Tensor, int64, int, float64,
// bool, string or nil. It gives the flat outputs in the same forms. Inputs that the program changes in place are changed.
// The outputs are the caller's; they share memory with an input only where PyTorch's would.
func (m *Module) Run(ctx context.Context, inputs ...any) (outputs []any, err error) {
	defer func() {
		if r := recover(); r != nil {
			outputs, err = nil, &PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	in, err := normalize(inputs)
	if err != nil {
		return nil, err
	}
	defer func() { m.resolve(outputs) }()
	if m.stateful {
		m.mu.Lock()
		defer m.mu.Unlock()
	}
	symbols, err := m.inputs.Check(in)
	if err != nil {
		return nil, err
	}
	if !m.opts.Eager {
		out, done, err := m.runPlanned(ctx, in)
		if done || err != nil {
			return out, err
		}
	}
	return m.runEager(ctx, in, symbols)
}

// resolve computes lazily conjugated and negated outputs, which few callers know to handle.
func (m *Module) resolve(outputs []any) {
	for i, x := range outputs {
		if t, ok := x.(*tensor.Tensor); ok && t != nil && (t.IsConj() || t.IsNeg()) {
			c := tensor.New(t.DType(), t.Sizes()...)
			aten.Copy(m.opts.Pool, c, t)
			outputs[i] = c
		}
	}
}

// PanicError is a fault of this library that surfaced while a program ran.
type PanicError struct {
	Value any
	Stack []byte // where
}

// Error gives what was recovered.
func (e *PanicError) Error() string { return fmt.Sprintf("interp: internal error: %v", e.Value) }

func normalize(inputs []any) ([]any, error) {
	out := make([]any, len(inputs))
	for i, x := range inputs {
		switch x := x.(type) {
		case nil, int64, float64, bool, string, complex128:
			out[i] = x
		case int:
			out[i] = int64(x)
		case float32:
			out[i] = float64(x)
		case *tensor.Tensor:
			if x == nil {
				break
			}
			out[i] = x
		default:
			return nil, fmt.Errorf("interp: input %d is a %T; give a *tensor.Tensor, int64, float64, bool, string or nil", i, x)
		}
	}
	return out, nil
}

// runEager goes node by node.
func (m *Module) runEager(ctx context.Context, in []any, symbols map[string]int64) ([]any, error) {
	eager := &aten.Eager{Pool: m.opts.Pool, Rand: m.rand}
	r := &runner{ctx: ctx, build: aten.NewBuild(eager, m.reg)}
	if ctx.Done() != nil {
		r.build.Ctx = ctx
	}
	if m.opts.CheckMeta {
		r.onValue = newMetaChecker(symbols).check
	}
	st := m.state.Load()
	args, err := m.graphInputs(st, in)
	if err != nil {
		return nil, err
	}
	if r.meter = newMeter(m.budget, args); r.meter != nil {
		eager.Reserve = r.meter.reserve
		defer r.meter.end()
	}
	out, err := r.run(m.code, args)
	if err != nil {
		return nil, err
	}
	return m.finish(r.build, st, args, out)
}

// graphInputs puts the caller's leaves and the state in graph order.
func (m *Module) graphInputs(st *state, in []any) ([]any, error) {
	if len(in) != len(m.users) {
		return nil, fmt.Errorf("interp: the program takes %d inputs, got %d", len(m.users), len(in))
	}
	args := make([]any, len(m.code.graph.Inputs))
	for i, v := range st.values {
		if v != nil {
			args[i] = v
		}
	}
	for j, i := range m.users {
		args[i] = in[j]
		if t, ok := in[j].(*tensor.Tensor); ok {
			args[i] = aten.FromTensor(t)
		}
	}
	return args, nil
}

// finish writes mutation outputs back and gives the user's outputs.
func (m *Module) finish(b *aten.Build, st *state, args, out []any) ([]any, error) {
	user, err := m.writeBack(b, args, out)
	if err != nil {
		return nil, err
	}
	for i, x := range user {
		if v, ok := x.(*aten.Value); ok {
			user[i] = nil
			if v != nil {
				user[i] = m.detach(st, v.T)
			}
		}
	}
	return user, nil
}

// writeBack copies mutation outputs to what they update, in output order, and gives the user's outputs; one that is also a
// mutation is the updated tensor.
func (m *Module) writeBack(b *aten.Build, args, out []any) ([]any, error) {
	var user []any
	updated := map[*aten.Value]*aten.Value{}
	copyOp := b.Reg.Lookup("aten.copy_.default")
	for i, o := range m.prog.Signature().Outputs {
		switch o.Kind {
		case export.BufferMutation, export.ParameterMutation, export.UserInputMutation:
			target, err := m.mutationTarget(&o, args)
			if err != nil {
				return nil, err
			}
			v, ok := out[i].(*aten.Value)
			if !ok || v == nil {
				return nil, fmt.Errorf("interp: output %s updates %q with %T", o.Arg.ArgName(), o.Target, out[i])
			}
			if v != target {
				if _, err := b.Do(copyOp, &aten.Args{Op: copyOp, V: []any{target, v, false}}); err != nil {
					return nil, err
				}
			}
			updated[v] = target
		case export.OutputToken:
		default:
			user = append(user, out[i])
		}
	}
	for i, x := range user {
		if v, ok := x.(*aten.Value); ok && v != nil && updated[v] != nil {
			user[i] = updated[v]
		}
	}
	return user, nil
}

// detach keeps a module's own memory from the caller: an output that looks at state that later runs may write, or at mapped
// weights, is a copy.
func (m *Module) detach(st *state, t *tensor.Tensor) *tensor.Tensor {
	own := t.Storage().ReadOnly()
	for _, s := range st.owned {
		own = own || s == t.Storage()
	}
	if !own {
		for _, v := range st.values {
			own = own || (v != nil && v.T.Storage() == t.Storage())
		}
	}
	if !own {
		return t
	}
	c := tensor.NewStrided(t.DType(), t.Sizes(), denseStrides(t))
	aten.Copy(m.opts.Pool, c, t)
	return c
}

func denseStrides(t *tensor.Tensor) []int64 {
	v := aten.FromTensor(t)
	return aten.Int64s(aten.FormatStrides(aten.PreserveFormat, v.Sizes, v))
}

func (m *Module) mutationTarget(o *export.OutputSpec, args []any) (*aten.Value, error) {
	i := -1
	switch o.Kind {
	case export.BufferMutation:
		i = m.inputOf(export.Buffer, o.Target)
	case export.ParameterMutation:
		i = m.inputOf(export.Parameter, o.Target)
	default:
		for j, s := range m.prog.Signature().Inputs {
			if s.Kind == export.UserInput && s.Arg.ArgName() == o.Target {
				i = j
			}
		}
	}
	if i >= 0 {
		if v, ok := args[i].(*aten.Value); ok {
			return v, nil
		}
	}
	return nil, fmt.Errorf("interp: output %s updates %q, which is no tensor input", o.Arg.ArgName(), o.Target)
}
