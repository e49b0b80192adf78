package tracer

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
)

// Option configures [Export].
type Option func(*exporter) error

// WithDynamic lets dimension dim of the named input, a tensor, be any size that d allows. Dimensions that share a Dim have equal sizes.
func WithDynamic(input string, dim int, d DimSpec) Option {
	return func(e *exporter) error {
		e.dynamic = append(e.dynamic, dynamicDim{input, dim, d})
		return nil
	}
}

type dynamicDim struct {
	input string
	dim   int
	d     DimSpec
}

// WithShapes says what sizes may become, as dynamic_shapes of torch.export.export: a [Shapes], a [ShapesList] or a [ShapesSpec].
func WithShapes(spec any) Option {
	return func(e *exporter) error {
		e.shapes = spec
		return nil
	}
}

// WithKwargs gives the example's keyword arguments, by names that InputNames lists.
func WithKwargs(kwargs pytree.Dict) Option {
	return func(e *exporter) error {
		e.kwargs = kwargs
		return nil
	}
}

// WithRegistry tells which Go structs stand for Python dataclasses among inputs and outputs.
func WithRegistry(r *pytree.Registry) Option {
	return func(e *exporter) error {
		e.reg = r
		return nil
	}
}

// PreferDeferredRuntimeAsserts makes the program check what the code asks of sizes, instead of refusing a [Dim] that promises more or
// guarding its inputs, as prefer_deferred_runtime_asserts_over_guards of torch.export.
func PreferDeferredRuntimeAsserts() Option {
	return func(e *exporter) error {
		e.deferred = true
		return nil
	}
}

// WithOps adds operators of your own, such as one with the schema "mylib::scaled(Tensor x, float a) -> Tensor", which the model calls as
// "mylib::scaled" or "mylib.scaled.default". [Export] needs an operator's Shape, which is register_fake of torch.library; [RunCall] its
// CPU, the kernel. Whoever loads the program registers the operator there: in Go with pt2.WithOps, in Python with torch.library.
func WithOps(ops ...*aten.Op) Option {
	return func(e *exporter) error {
		e.ops = append(e.ops, ops...)
		return nil
	}
}

// PreserveModuleCallSignature keeps the calling convention of the sub-modules with these paths, so that unflattened programs call them
// as the model does. Each must be called by [Call].
func PreserveModuleCallSignature(paths ...string) Option {
	return func(e *exporter) error {
		e.preserve = append(e.preserve, paths...)
		return nil
	}
}

type exporter struct {
	kwargs      pytree.Dict
	reg         *pytree.Registry
	shapes      any
	dynamic     []dynamicDim
	draft       *draft // of a draft export
	relax       bool   // Dims become automatic
	deferred    bool
	vars        []varPlace
	assumptions []*Assumption
	ops         []*aten.Op
	preserve    []string
	operators   *aten.Registry
	strict      bool

	call    *call
	tree    *tree
	specs   []leafSpec
	sizes   [][]symbolic.Int // of each leaf that is a tensor
	values  []symbolic.Int   // of each leaf that is a free integer, else a constant
	symbols []*symbol
}

// Export traces a model on example inputs and gives its program, of dialect TRAINING, as torch.export.export does: parameters and
// buffers are lifted, sizes are fixed unless [WithShapes] or [WithDynamic] frees them, control flow of Go code has vanished. The example
// inputs become part of the program.
//
// The model has a method InputNames, and a method Forward with as many parameters: *[Tensor] for tensors, Go structs (see
// [pytree.RegisterStruct]), maps and slices of them for dataclasses, dicts and lists, [symbolic.Int] for integers that may be free,
// int64, float64, bool and string for constants, which the program is specialised for. The results are such values, too. The signature
// of [Module] serves where all are tensors. Args are what Forward is called with, with *[tensor.Tensor] or *[Tensor] (see [Example])
// for tensors.
//
// Code that compares sizes is answered by the examples; the answers that other sizes would change become guards of the program, or,
// if they contradict what a [Dim] allows, a CONSTRAINT_VIOLATION with suggested fixes.
func Export[A any](m any, args []A, opts ...Option) (*export.Program, error) {
	e, err := newExporter(m, args, opts)
	if err != nil {
		return nil, err
	}
	if e.tree, err = walk(m); err != nil {
		return nil, err
	}
	if err := e.checkPreserved(); err != nil {
		return nil, err
	}
	if err := e.prepare(); err != nil {
		return nil, err
	}
	for {
		env := newEnv(e.symbols)
		p, err := e.run(env)
		if err != nil {
			return nil, err
		}
		again, err := e.settle(env)
		if err != nil {
			return nil, err
		}
		if !again {
			return p, nil
		}
	}
}

// newExporter takes the options and the arguments of one call.
func newExporter[A any](m any, args []A, opts []Option) (*exporter, error) {
	e := &exporter{}
	for _, o := range opts {
		if err := o(e); err != nil {
			return nil, err
		}
	}
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	var err error
	if len(e.ops) > 0 {
		if e.operators, err = aten.NewRegistry(aten.Builtin(), e.ops...); err != nil {
			return nil, &UserError{Kind: InvalidInput, Msg: "the operators: " + err.Error(), Err: err}
		}
	}
	e.call, err = newCall(m, list, e.kwargs, e.reg)
	return e, err
}

// trace records one run.
func (e *exporter) trace(env *env) (*export.Program, error) {
	hints := map[string]int64{}
	for _, s := range e.symbols {
		hints[s.name] = s.example
	}
	rec := passes.NewRecorder(passes.RecorderOptions{Hints: hints, Decider: env, Shapes: env.describe, Registry: e.operators})
	s := &session{env: env, build: rec.Build(), rec: rec, state: map[any]*Tensor{}, names: e.tree.names(), calls: map[string]int{}, fqns: map[any]string{}, preserve: e.preserve}
	env.rec, env.session, env.deferred, env.draft = rec, s, e.deferred, e.draft
	if e.draft != nil {
		e.draft.real = aten.NewBuild(&aten.Eager{Pool: pool.Default(), Rand: aten.NewGenerator(0)}, e.operators)
		e.draft.of, e.draft.report.Failures = map[*aten.Value]*tensor.Tensor{}, nil
	}
	if err := e.spread(env); err != nil {
		return nil, err
	}
	parts := export.Parts{Signature: &export.GraphSignature{}, State: &export.OrderedMap[*tensor.Tensor]{}, Constants: &export.OrderedMap[any]{},
		Verifiers: []string{export.Training.Dialect}, RequiresGrad: map[string]bool{}, OpsetVersion: map[string]int{"aten": 10}}
	for _, name := range e.call.input {
		rec.Reserve(name)
	}
	e.lift(s, &parts)
	leaves := make([]any, len(e.call.leaves))
	for i, l := range e.call.leaves {
		leaves[i] = e.input(s, i, l, &parts)
	}
	out, err := s.forward(e.call.model, func() any { return e.call.invoke(leaves) })
	if err != nil {
		return nil, err
	}
	env.closed = true
	if err := e.finish(s, &parts, out); err != nil {
		return nil, err
	}
	parts.RangeConstraints, parts.GuardsCode = e.ranges(env), e.guards(env)
	return export.New(parts)
}

// input adds leaf i to the graph, and gives what Forward sees of it.
func (e *exporter) input(s *session, i int, leaf any, parts *export.Parts) any {
	name := e.call.input[i]
	spec := export.InputSpec{Kind: export.UserInput}
	var x any
	switch l := leaf.(type) {
	case *tensor.Tensor:
		sizes := make([]symbolic.Int, len(e.sizes[i]))
		for k := range sizes {
			sizes[k] = s.rec.Size(e.sizes[i][k])
		}
		v := s.rec.Input(name, export.TensorMeta{DType: l.DType(), Sizes: sizes, Strides: strides(l, sizes), Device: cpu, Layout: aten.StridedLayout})
		s.env.hold(i, s.rec.Node(v))
		e.draft.hold(v, l)
		x, spec.Arg = &Tensor{v: v, s: s}, export.TensorArg{Name: name}
	default:
		if n := e.values[i]; !n.IsConst() {
			x, spec.Arg = s.rec.SymInput(name, n), export.SymIntArg{Name: name}
			if v, ok := s.rec.Argument(n).(*export.Value); ok {
				s.env.hold(i, v)
			}
			break
		}
		s.rec.ConstantInput(name, leaf)
		x, spec.Arg = leaf, export.ConstantArg{Name: name, Value: leaf}
	}
	parts.Signature.Inputs = append(parts.Signature.Inputs, spec)
	return x
}

var cpu = aten.Device{Type: "cpu", Index: -1}

// strides are those of the example where all sizes are fixed, else dense ones over the symbols in the order of the example's.
func strides(a *tensor.Tensor, sizes []symbolic.Int) []symbolic.Int {
	fixed := true
	for _, n := range sizes {
		fixed = fixed && n.IsConst()
	}
	if fixed || a.Dim() < 2 {
		return aten.Ints(a.Strides()...)
	}
	if a.IsContiguous() {
		return aten.ContiguousStrides(sizes)
	}
	// From the least stride on, each is the one before times its size, as far as the example's are dense.
	out := aten.Ints(a.Strides()...)
	step, at := int64(1), symbolic.N(1)
	done := make([]bool, len(sizes))
	for range sizes {
		for k := range sizes {
			if !done[k] && a.Strides()[k] == step {
				out[k], done[k] = at, true
				step, at = step*a.Sizes()[k], at.Mul(sizes[k])
				break
			}
		}
	}
	return out
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9]`)

// lift makes inputs of parameters and buffers.
func (e *exporter) lift(s *session, parts *export.Parts) {
	for _, kind := range []export.InputKind{export.Parameter, export.Buffer} {
		for i := range e.tree.entries {
			en := &e.tree.entries[i]
			if (en.param != nil) != (kind == export.Parameter) {
				continue
			}
			key, prefix := any(en.param), "p_"
			spec := export.InputSpec{Kind: kind, Target: en.fqn}
			t, grad := en.tensor(), false
			if en.param == nil {
				key, prefix = en.buffer, "b_"
				persistent := en.buffer.Persistent
				spec.Persistent = &persistent
			} else {
				grad = en.param.RequiresGrad
				parts.RequiresGrad[en.fqn] = grad
			}
			if kind == export.Parameter || en.buffer.Persistent {
				parts.State.Set(en.fqn, t)
			} else {
				parts.Constants.Set(en.fqn, t)
			}
			if s.state[key] != nil { // a tied weight: one input under its first name
				if parts.IsParameter == nil {
					parts.IsParameter = map[string]bool{}
				}
				parts.IsParameter[en.fqn] = kind == export.Parameter
				continue
			}
			s.fqns[key] = stateKey(en.fqn, kind == export.Parameter)
			name := s.rec.Reserve(prefix + strings.ToLower(notInName.ReplaceAllString(en.fqn, "_")))
			m := aten.MetaOf(t)
			v := s.rec.Input(name, export.TensorMeta{DType: m.DType, Sizes: m.Sizes, Strides: m.Strides, Offset: m.Offset, RequiresGrad: grad, Device: cpu, Layout: aten.StridedLayout})
			s.state[key] = &Tensor{v: v, s: s}
			e.draft.hold(v, t)
			spec.Arg = export.TensorArg{Name: name}
			parts.Signature.Inputs = append(parts.Signature.Inputs, spec)
		}
	}
}

// finish fills in what comes after the nodes.
func (e *exporter) finish(s *session, parts *export.Parts, out any) error {
	leaves, spec, err := e.call.reg.Flatten(out)
	if err != nil {
		return &UserError{Kind: InvalidInput, Msg: "Forward's result: " + err.Error(), Err: err}
	}
	args := make([]export.Argument, len(leaves))
	for i, l := range leaves {
		if args[i], err = s.output(i, l); err != nil {
			return err
		}
	}
	s.keepCalls()
	parts.Graph = s.rec.FinishChecked(args, passes.RuntimeAsserts{Conditions: s.env.unbacked.asserts, Range: s.env.bounds, Inputs: s.env.inputs})
	for _, arg := range parts.Graph.Outputs {
		parts.Signature.Outputs = append(parts.Signature.Outputs, export.OutputSpec{Kind: export.UserOutput, Arg: specOf(arg)})
	}
	signatures, err := s.signatures()
	if err != nil {
		return err
	}
	root := &export.ModuleCallSignature{InSpec: e.call.spec.Encode(), OutSpec: spec.Encode(), ForwardArgNames: e.call.names}
	parts.ModuleCallGraph = e.moduleCalls(root, signatures)
	values, err := e.call.spec.Unflatten(e.call.leaves)
	if err != nil {
		return fmt.Errorf("tracer: the example inputs: %w", err)
	}
	parts.ExampleInputs = exampleOf(values.(pytree.Tuple))
	return nil
}

// output is a leaf of Forward's result as an output of the graph.
func (s *session) output(i int, leaf any) (export.Argument, error) {
	switch l := leaf.(type) {
	case *Tensor:
		if l == nil {
			return nil, invalid("Forward gives nil for output %d", i)
		}
		return s.rec.Node(l.v), nil
	case symbolic.Int:
		return s.rec.Argument(l), nil
	case Float:
		return l.argument(), nil
	case Bool:
		return nil, invalid("Forward gives a tracer.Bool for output %d, which archives cannot hold as an output; give the tensor that it was taken from", i)
	case int64, float64, bool, string, nil:
		return l, nil
	}
	return nil, invalid("Forward gives a %T for output %d; want tensors, numbers, strings and containers of them", leaf, i)
}

// specOf is the argument of an output's specification.
func specOf(arg export.Argument) export.Arg {
	v, ok := arg.(*export.Value)
	if !ok {
		return export.ConstantArg{Value: arg}
	}
	switch v.Kind {
	case export.SymIntKind:
		return export.SymIntArg{Name: v.Name}
	case export.SymFloatKind:
		return export.SymFloatArg{Name: v.Name}
	}
	return export.TensorArg{Name: v.Name}
}

// exampleOf is (args, kwargs) in the form of a torch.save file; nil if it has named tuples or dataclasses, whose Python classes nobody knows.
func exampleOf(both pytree.Tuple) *export.Example {
	ok := true
	var plain func(x any) any
	list := func(xs []any) []any {
		out := make([]any, len(xs))
		for i, x := range xs {
			out[i] = plain(x)
		}
		return out
	}
	plain = func(x any) any {
		switch x := x.(type) {
		case pytree.Tuple:
			return tensorio.Tuple(list(x))
		case pytree.List:
			return list(x)
		case pytree.Dict:
			d := &tensorio.Dict{}
			for _, e := range x {
				d.Keys, d.Values = append(d.Keys, e.Key), append(d.Values, plain(e.Value))
			}
			return d
		case nil, int64, float64, bool, string, *tensor.Tensor:
			return x
		}
		ok = false
		return nil
	}
	ex := &export.Example{Args: list(both[0].(pytree.Tuple))}
	for _, k := range both[1].(pytree.Dict) {
		ex.Kwargs = append(ex.Kwargs, export.KwExample{Name: k.Key.(string), Value: plain(k.Value)})
	}
	if !ok {
		return nil
	}
	return ex
}
