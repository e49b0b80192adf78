package interp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/tensor"
)

// FlatArgsAdapter makes a program's inputs of those of a call that has another structure.
type FlatArgsAdapter interface {
	// Adapt gives the leaves that target describes. input describes args, the leaves of the call, which Adapt may change; metadata is
	// that of the program's graph module, obj the positional arguments as they were given.
	Adapt(target, input *pytree.Spec, args []any, metadata map[string]string, obj any) ([]any, error)
}

// FlatArgPather is a [FlatArgsAdapter] that can tell where its results come from, for messages: one path each.
type FlatArgPather interface {
	FlatArgPaths() []string
}

// UnflattenedModule is a program as a hierarchy of modules, with the names, parameters and buffers that the exported model had. Its
// submodules can be called, read and replaced. Calls of a program that changes its buffers take turns; modules must not be replaced
// while a call is under way.
type UnflattenedModule struct {
	InterpreterModule // the root
	base              *Module
	adapter           FlatArgsAdapter
	adapted           inputChecker // with the adapter's paths
	in, out           *pytree.Spec
}

// Unflatten is PyTorch's torch.export.unflatten: see [passes.Unflatten] for how the hierarchy is made. adapter may be nil; of the
// options those about guards and planning mean nothing: as in PyTorch, sizes and ranges of inputs are checked, and modules run node by node.
func Unflatten(p *export.Program, adapter FlatArgsAdapter, opts Options) (*UnflattenedModule, error) {
	opts.NoGuards, opts.Eager, opts.CheckMeta = true, true, false
	base, err := New(p, opts)
	if err != nil {
		return nil, err
	}
	tree, err := passes.Unflatten(p)
	if err != nil {
		return nil, err
	}
	u := &UnflattenedModule{base: base, adapter: adapter}
	inText, outText := p.CallSpec()
	if u.in, err = pytree.Parse(inText, p.Parts().NamedTuples); err != nil {
		return nil, err
	}
	if u.out, err = pytree.Parse(outText, p.Parts().NamedTuples); err != nil {
		return nil, err
	}
	if u.adapted = base.inputs; adapter != nil {
		paths, err := adapterPaths(adapter, u.in.NumLeaves())
		if err != nil {
			return nil, err
		}
		if u.adapted, err = newInputCheckerAt(p, opts, paths); err != nil {
			return nil, err
		}
	}
	b := &treeBuilder{base: base, compiler: &compiler{reg: base.reg, missing: map[string][]string{}}, made: map[*passes.Submodule]Submodule{},
		attrs: map[*passes.Attr]*attribute{}, children: map[*export.OrderedMap[*passes.Submodule]]*export.OrderedMap[Submodule]{}}
	root, err := b.module(tree)
	if err == nil {
		err = b.compiler.err()
	}
	if err != nil {
		return nil, err
	}
	u.InterpreterModule = *root.(*InterpreterModule)
	u.InterpreterModule.base = base
	return u, nil
}

// adapterPaths are the places of an adapter's results in PyTorch's messages.
func adapterPaths(a FlatArgsAdapter, n int) ([]string, error) {
	var given []string
	if p, ok := a.(FlatArgPather); ok {
		given = p.FlatArgPaths()
	}
	if len(given) > 0 && len(given) != n {
		return nil, &export.ArgumentError{Name: "FlatArgPaths", Got: fmt.Sprintf("%d paths", len(given)), Want: fmt.Sprintf("%d", n)}
	}
	paths := make([]string, n)
	for i := range paths {
		if paths[i] = "<unknown location>"; len(given) > 0 {
			paths[i] = given[i]
		}
	}
	return paths, nil
}

// treeBuilder makes modules of their descriptions.
type treeBuilder struct {
	base     *Module
	compiler *compiler
	made     map[*passes.Submodule]Submodule
	attrs    map[*passes.Attr]*attribute
	children map[*export.OrderedMap[*passes.Submodule]]*export.OrderedMap[Submodule]
}

func (b *treeBuilder) module(s *passes.Submodule) (Submodule, error) {
	if m := b.made[s]; m != nil {
		return m, nil
	}
	h := hierarchy{attrs: &export.OrderedMap[*attribute]{}}
	for name, a := range s.Attrs.All() {
		x, err := b.attribute(a)
		if err != nil {
			return nil, err
		}
		h.attrs.Set(name, x)
	}
	var err error
	if len(s.Calls) > 0 {
		d := &InterpreterModuleDispatcher{hierarchy: h}
		b.made[s] = d
		for _, c := range s.Calls {
			m, err := b.module(c)
			if err != nil {
				return nil, err
			}
			d.calls = append(d.calls, m.(*InterpreterModule))
		}
		d.ty = s.Type
		d.children, err = b.childrenOf(s)
		return d, err
	}
	m := &InterpreterModule{hierarchy: h, graph: s.Graph, base: b.base}
	m.ty = s.Type
	b.made[s] = m
	if s.Graph != nil {
		if m.body, err = b.compiler.compile(s.Graph); err != nil {
			return nil, err
		}
	}
	m.children, err = b.childrenOf(s)
	return m, err
}

func (b *treeBuilder) childrenOf(s *passes.Submodule) (*export.OrderedMap[Submodule], error) {
	if c := b.children[s.Children]; c != nil {
		return c, nil
	}
	out := &export.OrderedMap[Submodule]{}
	b.children[s.Children] = out
	for name, c := range s.Children.All() {
		m, err := b.module(c)
		if err != nil {
			return nil, err
		}
		out.Set(name, m)
	}
	return out, nil
}

// attribute finds the memory behind an attribute: the instance's own for what runs may write.
func (b *treeBuilder) attribute(a *passes.Attr) (*attribute, error) {
	if x := b.attrs[a]; x != nil {
		return x, nil
	}
	x := &attribute{kind: a.Kind, persistent: a.Persistent}
	b.attrs[a] = x
	switch {
	case a.Spec != nil:
		x.value = a.Spec
	case a.Object != nil:
		x.value = nil // as for programs: only registered operators know what to do with one
	default:
		st := b.base.state.Load()
		v, err := moved(a.Tensor, st.owned)
		if err != nil {
			return nil, fmt.Errorf("interp: %s: %w", a.Target, err)
		}
		x.value = v
	}
	return x, nil
}

// Program is the program that was unflattened.
func (u *UnflattenedModule) Program() *export.Program { return u.base.prog }

// ModuleCallGraph is the program's.
func (u *UnflattenedModule) ModuleCallGraph() []export.ModuleCallEntry {
	return u.base.prog.ModuleCallGraph()
}

// RangeConstraints are the program's.
func (u *UnflattenedModule) RangeConstraints() []export.Range { return u.base.prog.RangeConstraints() }

// Call calls the module with the model's calling convention: args as [pytree.Spec.FlattenCall] takes them. A call of another structure
// goes to the adapter. The result is made of package pytree's values.
func (u *UnflattenedModule) Call(ctx context.Context, args []any, kwargs pytree.Dict) (any, error) {
	leaves, err := u.ProcessForwardInputs(args, kwargs)
	if err != nil {
		return nil, err
	}
	out, err := u.run(ctx, leaves)
	if err != nil {
		return nil, err
	}
	return u.out.Unflatten(out)
}

// Run calls the module on flat inputs, as [Module.Run] does.
func (u *UnflattenedModule) Run(ctx context.Context, inputs ...any) ([]any, error) {
	in, err := normalize(inputs)
	if err != nil {
		return nil, err
	}
	if _, err := u.base.inputs.Check(in); err != nil {
		return nil, err
	}
	return u.run(ctx, in)
}

// ProcessForwardInputs puts keyword arguments in order, flattens the call, has it adapted where its structure is another than the
// program's, and checks sizes and ranges. It gives the flat inputs.
func (u *UnflattenedModule) ProcessForwardInputs(args []any, kwargs pytree.Dict) ([]any, error) {
	leaves, err := u.in.FlattenCall(args, kwargs)
	check := u.base.inputs
	if mismatch := (*pytree.MismatchError)(nil); errors.As(err, &mismatch) && mismatch.Err == nil {
		if u.adapter == nil {
			return nil, fmt.Errorf("interp: There is no flat args adapter specified. Are you sure you are calling this with the right arguments? %w", err)
		}
		if leaves, err = u.adapt(args, kwargs); err != nil {
			return nil, err
		}
		check = u.adapted
	}
	if err != nil {
		return nil, err
	}
	if leaves, err = normalize(leaves); err != nil {
		return nil, err
	}
	_, err = check.Check(leaves)
	return leaves, err
}

func (u *UnflattenedModule) adapt(args []any, kwargs pytree.Dict) ([]any, error) {
	flat, spec, err := pytree.Flatten(pytree.Tuple{pytree.Tuple(args), kwargs})
	if err != nil {
		return nil, err
	}
	leaves, err := u.adapter.Adapt(u.in, spec, flat, u.base.prog.Parts().Metadata, args)
	if err != nil {
		return nil, err
	}
	if len(leaves) != u.in.NumLeaves() {
		return nil, fmt.Errorf("interp: Flat args adaption failed, number of args mismatch Adapted: %d Exported module: %d", len(leaves), u.in.NumLeaves())
	}
	return leaves, nil
}

// run executes the root on checked inputs.
func (u *UnflattenedModule) run(ctx context.Context, inputs []any) (out []any, err error) {
	m := u.base
	if m.stateful {
		m.mu.Lock()
		defer m.mu.Unlock()
	}
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, &PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	args := make([]any, len(inputs))
	for i, x := range inputs {
		args[i] = toValue(x)
	}
	r := m.newRunner(ctx)
	res, err := u.execute(r, args, nil)
	if err != nil {
		return nil, err
	}
	st := m.state.Load()
	for _, x := range asList(res) {
		if v, ok := x.(*aten.Value); ok {
			if x = nil; v != nil {
				x = m.detach(st, v.T)
			}
		}
		out = append(out, x)
	}
	m.resolve(out)
	return out, nil
}

// String prints all modules as Python classes, as PyTorch's print_readable does.
func (u *UnflattenedModule) String() string { return u.text("UnflattenedModule") }

// SetSubmodule puts a module in the place of the one at a path such as "layers.0". It is called as the model called the one that was
// there if that one's signature was preserved at export; else with the values that its graph takes, see [InterpreterModule.Graph].
func (u *UnflattenedModule) SetSubmodule(path string, m Submodule) error {
	parent, name := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		parent, name = path[:i], path[i+1:]
	}
	h := u.find(parent)
	if h == nil || name == "" {
		return &export.ArgumentError{Name: "path", Got: fmt.Sprintf("%q", path), Want: "the path of a module"}
	}
	if m == nil {
		return &export.ArgumentError{Name: "m", Got: "nil", Want: "a module"}
	}
	h.children.Set(name, m)
	return nil
}

// NamedModules iterates over all modules with their paths, the root first under "", each module once.
func (u *UnflattenedModule) NamedModules() iter.Seq2[string, Submodule] {
	return func(yield func(string, Submodule) bool) {
		u.hierarchy.walk("", &u.InterpreterModule, map[Submodule]bool{}, yield)
	}
}

// NamedParameters iterates over the parameters, shared ones once.
func (u *UnflattenedModule) NamedParameters() iter.Seq2[string, *tensor.Tensor] {
	return u.named(func(a *attribute) bool { return a.kind == export.Parameter }, true)
}

// NamedBuffers iterates over the buffers, shared ones once. What they hold changes with the module's calls.
func (u *UnflattenedModule) NamedBuffers() iter.Seq2[string, *tensor.Tensor] {
	return u.named(func(a *attribute) bool { return a.kind == export.Buffer }, true)
}

// StateDict holds the parameters and persistent buffers under all their names in the exported model.
func (u *UnflattenedModule) StateDict() *export.OrderedMap[*tensor.Tensor] {
	out := &export.OrderedMap[*tensor.Tensor]{}
	saved := func(a *attribute) bool {
		return a.kind == export.Parameter || a.kind == export.Buffer && a.persistent
	}
	for name, t := range u.named(saved, false) {
		out.Set(name, t)
	}
	return out
}

func (u *UnflattenedModule) named(want func(*attribute) bool, once bool) iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) {
		seen := map[*attribute]bool{}
		modules := map[Submodule]bool{}
		if !once {
			modules = nil
		}
		u.hierarchy.walk("", &u.InterpreterModule, modules, func(path string, m Submodule) bool {
			h := hierarchyOf(m)
			if h == nil {
				return true
			}
			for name, a := range h.attrs.All() {
				v, ok := a.value.(*aten.Value)
				if !ok || !want(a) || once && seen[a] {
					continue
				}
				seen[a] = true
				if path != "" {
					name = path + "." + name
				}
				if !yield(name, v.T) {
					return false
				}
			}
			return true
		})
	}
}
