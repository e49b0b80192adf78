// Package pt2 runs PyTorch's exported programs (PT2 archives) in Go: no Python, no libtorch, no cgo.
//
//	m, err := pt2.Load("model.pt2")
//	if err != nil { ... }
//	defer m.Close()
//	out, err := m.Run(ctx, x)   // flat tensors in, flat tensors out
//
// A Model may be called from any number of goroutines. Weights are used where they lie in the mapped file and shared by all
// calls. The packages below this one do the work and are public: archive, loader, export, guards, interp, aten, tensor.
package pt2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/plan"
	"github.com/pt2go/pt2/tensor"
)

// Tensor is a strided array on the CPU; see package tensor for how to make and read one.
type Tensor = tensor.Tensor

// Model is a loaded program, ready to run.
type Model struct {
	contents *loader.Contents // nil for an instance, which does not own the file
	module   *interp.Module
	names    []string
	outNames []string
	spec     *callSpec
	slots    chan struct{}
	single   bool
	pool     *pool.Pool
	ownPool  bool
	life     *life
}

// life keeps the mapped file there while a call is under way. A model and its instances have one.
type life struct {
	sync.RWMutex
	closed bool
}

// ErrClosed is a use of a model, or of an instance of it, after Close. It is also fs.ErrClosed.
var ErrClosed = fmt.Errorf("pt2: the model is closed: %w", fs.ErrClosed)

// enter begins a use of the model, which ends with leave.
func (m *Model) enter() error {
	m.life.RLock()
	if m.life.closed {
		m.life.RUnlock()
		return ErrClosed
	}
	return nil
}

func (m *Model) leave() { m.life.RUnlock() }

type config struct {
	program  string
	runners  int
	single   bool
	threads  int
	ops      []*aten.Op
	interp   interp.Options
	loader   loader.Options
	registry *aten.Registry
}

// Option configures [Load].
type Option func(*config) error

// WithProgram chooses one of several programs of the archive; the default is "model", or the only one.
func WithProgram(name string) Option {
	return func(c *config) error { c.program = name; return nil }
}

// WithRunners bounds how many calls run at the same time; further calls wait. The default is no bound.
func WithRunners(n int) Option {
	return func(c *config) error {
		if n < 1 {
			return fmt.Errorf("pt2: WithRunners(%d): want at least 1", n)
		}
		c.runners = n
		return nil
	}
}

// SingleThreaded is run_single_threaded of torch.export's load_pt2: the caller promises one call at a time, and a second one beside it
// is an error instead of waiting. It excludes [WithRunners] of more than 1.
func SingleThreaded() Option {
	return func(c *config) error { c.single = true; return nil }
}

// WithDeviceIndex is device_index of torch.export's load_pt2. This library runs on the CPU: -1, the default, is the only index that
// it has.
func WithDeviceIndex(k int) Option {
	return func(*config) error {
		if k != -1 {
			return fmt.Errorf("pt2: WithDeviceIndex(%d): there is no CUDA device; this library runs on the CPU, which is -1", k)
		}
		return nil
	}
}

// WithThreads sets how many goroutines one call may use; the default is GOMAXPROCS, shared by the whole process.
func WithThreads(n int) Option {
	return func(c *config) error {
		if n < 1 {
			return fmt.Errorf("pt2: WithThreads(%d): want at least 1", n)
		}
		c.threads = n
		return nil
	}
}

// WithOps adds operators of your own, such as one for "mylib::op", or replaces built-in ones for this model.
func WithOps(ops ...*aten.Op) Option {
	return func(c *config) error { c.ops = append(c.ops, ops...); return nil }
}

// WithoutGuards leaves out the guards that the archive records; sizes and ranges are still checked.
func WithoutGuards() Option {
	return func(c *config) error { c.interp.NoGuards = true; return nil }
}

// WithEager turns planned mode off: every call goes node by node.
func WithEager() Option {
	return func(c *config) error { c.interp.Eager = true; return nil }
}

// WithoutPasses leaves out passes of the planner by name, such as "pointwise"; package plan lists them. It is for finding out which
// pass is at fault, or what it brings.
func WithoutPasses(names ...string) Option {
	return func(c *config) error {
		for _, n := range names {
			if !plan.HasPass(n) {
				return fmt.Errorf("pt2: WithoutPasses: there is no pass %q", n)
			}
		}
		c.interp.WithoutPasses = append(c.interp.WithoutPasses, names...)
		return nil
	}
}

// WithProfile collects in p how long each instruction of the plan takes.
func WithProfile(p *plan.Profile) Option {
	return func(c *config) error { c.interp.Profile = p; return nil }
}

// WithSeed starts the model's random number generator as torch.manual_seed does; the default seed is 0.
func WithSeed(seed uint64) Option {
	return func(c *config) error { c.interp.Seed = seed; return nil }
}

// WithMemoryLimit bounds what the model's calls may take at any time, in bytes: the memory of running calls, that which is kept for
// the next ones, and the buffers that calls change. A call that would need more fails with a *[LimitError] before it takes the
// memory. Weights, inputs and outputs in the caller's hands are not counted. The default is no limit.
func WithMemoryLimit(bytes int64) Option {
	return func(c *config) error {
		if bytes < 1 {
			return fmt.Errorf("pt2: WithMemoryLimit(%d): want at least 1", bytes)
		}
		c.interp.MemoryLimit = bytes
		return nil
	}
}

// WithIdleTimeout sets how long the memory of a call is kept for the next one; the default is a minute, 0 keeps none and a negative
// time keeps it for ever. See also [Model.Trim].
func WithIdleTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d == 0 {
			d = 1 // a nanosecond
		}
		c.interp.IdleTimeout = d
		return nil
	}
}

// ErrBusy is a call beside another one on a model that was loaded with [SingleThreaded].
var ErrBusy = errors.New("pt2: the model is in use by another call, and was loaded for one at a time")

// LimitError is a call that would exceed the limit of [WithMemoryLimit].
type LimitError = aten.LimitError

// WithExpectedOpset demands versions of operator sets, such as {"aten": 10}.
func WithExpectedOpset(v map[string]int) Option {
	return func(c *config) error { c.loader.ExpectedOpset = v; return nil }
}

// Load maps the archive at path and makes its program ready. The file must stay unchanged until Close.
func Load(path string, opts ...Option) (*Model, error) {
	return load(opts, func(o loader.Options) (*loader.Contents, error) { return loader.Open(path, o) })
}

// LoadBytes loads an archive in memory, such as one from go:embed; b must stay unchanged until Close.
func LoadBytes(b []byte, opts ...Option) (*Model, error) {
	return load(opts, func(o loader.Options) (*loader.Contents, error) { return loader.OpenBytes(b, o) })
}

// LoadFS loads an archive from a file system.
func LoadFS(fsys fs.FS, name string, opts ...Option) (*Model, error) {
	return load(opts, func(o loader.Options) (*loader.Contents, error) { return loader.OpenFS(fsys, name, o) })
}

// LoadReader loads an archive of the given size through r, which is read while loading only.
func LoadReader(r io.ReaderAt, size int64, opts ...Option) (*Model, error) {
	return load(opts, func(o loader.Options) (*loader.Contents, error) { return loader.OpenReader(r, size, o) })
}

func load(opts []Option, open func(loader.Options) (*loader.Contents, error)) (*Model, error) {
	var c config
	for _, o := range opts {
		if err := o(&c); err != nil {
			return nil, err
		}
	}
	if c.single && c.runners > 1 {
		return nil, fmt.Errorf("pt2: num_runners must be 1 when run_single_threaded is true, got %d", c.runners)
	}
	if len(c.ops) > 0 {
		reg, err := aten.NewRegistry(aten.Builtin(), c.ops...)
		if err != nil {
			return nil, err
		}
		c.registry, c.loader.Registry, c.interp.Registry = reg, reg, reg
	}
	contents, err := open(c.loader)
	if err != nil {
		return nil, err
	}
	m, err := newModel(contents, &c)
	if err != nil {
		contents.Close()
		return nil, err
	}
	return m, nil
}

func newModel(contents *loader.Contents, c *config) (*Model, error) {
	p, err := contents.Program(c.program)
	if err != nil {
		return nil, err
	}
	m := &Model{contents: contents, pool: pool.Default(), life: &life{}}
	if c.threads > 0 {
		m.pool, m.ownPool = pool.New(c.threads), true
	}
	c.interp.Pool = m.pool
	if m.module, err = interp.New(p, c.interp); err != nil {
		return nil, err
	}
	if m.single = c.single; m.single {
		m.slots = make(chan struct{}, 1)
	} else if c.runners > 0 {
		m.slots = make(chan struct{}, c.runners)
	}
	m.names, m.spec = interp.InputNames(p), newCallSpec(p)
	for _, o := range p.Signature().Outputs {
		if o.Kind == export.UserOutput || o.Kind == export.LossOutput {
			m.outNames = append(m.outNames, o.Arg.ArgName())
		}
	}
	return m, nil
}

// Close ends the model and gives the file back. It waits for calls that are under way; later ones are [ErrClosed], and the tensors
// of [Model.Program] must not be used any more. Tensors that Run gave stay valid. Closing an instance, or closing twice, does nothing.
func (m *Model) Close() error {
	if m.contents == nil {
		return nil
	}
	m.life.Lock()
	defer m.life.Unlock()
	if m.life.closed {
		return nil
	}
	m.life.closed = true
	m.module.Trim()
	if m.ownPool {
		m.pool.Close()
	}
	return m.contents.Close()
}

// Program is the exported program behind the model.
func (m *Model) Program() *export.Program { return m.module.Program() }

// Plan compiles the program for inputs like these, as Run does on its first call with such sizes; see [plan.Plan]. It is nil if the
// program cannot be planned for them.
func (m *Model) Plan(inputs ...any) (*plan.Plan, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.leave()
	return m.module.Plan(inputs...)
}

// ExtraFiles are the archive's extra files by name.
func (m *Model) ExtraFiles() map[string]string {
	if m.contents == nil {
		return nil
	}
	return m.contents.ExtraFiles
}

// Run calls the program on its flat inputs, the leaves of (args, kwargs) in order: *Tensor, int64, float64, bool, string or
// nil. The outputs are the leaves of the result in the same forms and belong to the caller. ctx is checked between operators.
func (m *Model) Run(ctx context.Context, inputs ...any) ([]any, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.leave()
	if m.slots != nil {
		select {
		case m.slots <- struct{}{}:
		default:
			if m.single {
				return nil, ErrBusy
			}
			select {
			case m.slots <- struct{}{}:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		defer func() { <-m.slots }()
	}
	return m.module.Run(ctx, inputs...)
}

// RunTensors is [Model.Run] for programs whose inputs and outputs are all tensors.
func (m *Model) RunTensors(ctx context.Context, inputs ...*Tensor) ([]*Tensor, error) {
	in := make([]any, len(inputs))
	for i, t := range inputs {
		in[i] = t
	}
	out, err := m.Run(ctx, in...)
	if err != nil {
		return nil, err
	}
	res := make([]*Tensor, len(out))
	for i, x := range out {
		t, ok := x.(*Tensor)
		if !ok {
			return nil, fmt.Errorf("pt2: output %d is a %T, not a tensor; use Run", i, x)
		}
		res[i] = t
	}
	return res, nil
}

// RunNamed is [Model.Run] with inputs by the names that [Model.Signature] lists, as tensors or as Go values like those of [Model.Call];
// outputs are by name too.
func (m *Model) RunNamed(ctx context.Context, inputs map[string]any) (map[string]any, error) {
	in := make([]any, len(m.names))
	used := 0
	for i, n := range m.names {
		v, ok := inputs[n]
		if !ok {
			return nil, fmt.Errorf("pt2: input %q is missing; the program takes %q", n, m.names)
		}
		leaf, err := m.spec.encode(i, v)
		if err != nil {
			return nil, fmt.Errorf("pt2: input %q: %w", n, err)
		}
		in[i] = leaf
		used++
	}
	if used != len(inputs) {
		for n := range inputs {
			if !contains(m.names, n) {
				return nil, fmt.Errorf("pt2: no input is called %q; the program takes %q", n, m.names)
			}
		}
	}
	out, err := m.Run(ctx, in...)
	if err != nil {
		return nil, err
	}
	res := make(map[string]any, len(out))
	for i, x := range out {
		res[m.outName(i)] = x
	}
	return res, nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func (m *Model) outName(i int) string {
	if i < len(m.outNames) && m.outNames[i] != "" {
		return m.outNames[i]
	}
	return fmt.Sprintf("output_%d", i)
}

// Port describes one input or output of a model.
type Port struct {
	Name  string
	Kind  string   // "tensor", "int", "float", "bool", "constant"
	DType string   // of a tensor, "float32"
	Sizes []string // of a tensor: numbers, or expressions over symbols such as "s77"
	Value any      // of a constant
}

// Signature describes a model's inputs and outputs, in the order of the leaves.
type Signature struct {
	Inputs, Outputs []Port
	// Ranges are the allowed values of the symbols, such as "s77" to "VR[2, 100]".
	Ranges map[string]string
}

// Signature describes what Run takes and gives.
func (m *Model) Signature() Signature {
	p := m.Program()
	s := Signature{Ranges: map[string]string{}}
	j := 0
	for i, in := range p.Signature().Inputs {
		if in.Kind != export.UserInput {
			continue
		}
		gi := p.Graph().Inputs[i]
		port := describe(gi.Value, gi.Constant)
		port.Name = m.names[j]
		j++
		s.Inputs = append(s.Inputs, port)
	}
	for i, o := range p.Signature().Outputs {
		if o.Kind != export.UserOutput && o.Kind != export.LossOutput {
			continue
		}
		v, _ := p.Graph().Outputs[i].(*export.Value)
		port := describe(v, p.Graph().Outputs[i])
		port.Name = m.outName(len(s.Outputs))
		s.Outputs = append(s.Outputs, port)
	}
	for _, r := range p.RangeConstraints() {
		s.Ranges[r.Expr] = r.String()
	}
	return s
}

func describe(v *export.Value, constant any) Port {
	if v == nil {
		return Port{Kind: "constant", Value: constant}
	}
	switch v.Kind {
	case export.SymIntKind:
		return Port{Kind: "int"}
	case export.SymFloatKind:
		return Port{Kind: "float"}
	case export.SymBoolKind:
		return Port{Kind: "bool"}
	}
	p := Port{Kind: "tensor"}
	if v.Tensor != nil {
		p.DType = v.Tensor.DType.String()
		p.Sizes = make([]string, len(v.Tensor.Sizes))
		for i, n := range v.Tensor.Sizes {
			p.Sizes[i] = n.String()
		}
	}
	return p
}

// Stateful reports that calls change the model's buffers or draw random numbers. Such calls take turns; give each stream of
// data an [Model.Instance] of its own.
func (m *Model) Stateful() bool { return m.module.Stateful() }

// Instance makes a model over the same weights with buffers of its own, in their initial state. It is valid until m is closed.
func (m *Model) Instance() (*Model, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.leave()
	mod, err := m.module.Instance()
	if err != nil {
		return nil, err
	}
	return &Model{module: mod, names: m.names, outNames: m.outNames, spec: m.spec, slots: m.slots, single: m.single, pool: m.pool, life: m.life}, nil
}

// Reset puts all buffers back to their initial contents and restarts the random number generator.
func (m *Model) Reset() {
	if m.enter() == nil {
		m.module.Reset()
		m.leave()
	}
}

// Snapshot copies the buffers that calls change.
func (m *Model) Snapshot() *interp.Snapshot { return m.module.Snapshot() }

// Restore puts a snapshot of this model or of an instance of it back.
func (m *Model) Restore(s *interp.Snapshot) error { return m.module.Restore(s) }

// LoadStateDict replaces weights and buffers by name on a live model: calls that have begun finish with the old ones, later
// ones use the new ones. Names, dtypes and sizes must match; names that are not given keep their values.
func (m *Model) LoadStateDict(state map[string]*Tensor) error {
	if err := m.enter(); err != nil {
		return err
	}
	defer m.leave()
	return m.module.LoadStateDict(state)
}

// Memory tells what the model and its instances have allocated for calls.
func (m *Model) Memory() interp.Memory { return m.module.Memory() }

// Trim lets go of the memory that is kept for later calls, for instance after a peak. It is safe at any time. Go's garbage collector
// gives it back to the system by and by, or at once by debug.FreeOSMemory.
func (m *Model) Trim() { m.module.Trim() }

// Warmup runs the recorded example inputs once, so that the first call is as fast as later ones, and puts the buffers back.
func (m *Model) Warmup(ctx context.Context) error {
	in, err := interp.ExampleLeaves(m.Program())
	if err != nil {
		return err
	}
	s := m.module.Snapshot()
	if _, err := m.Run(ctx, in...); err != nil {
		return err
	}
	return m.module.Restore(s)
}
