package interp

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/tensor"
)

// Submodule is a module within an [UnflattenedModule]: an [*InterpreterModule], an [*InterpreterModuleDispatcher], or one of yours
// that took the place of one of them. Arguments and results are tensors, numbers and package pytree's containers of them.
type Submodule interface {
	Call(ctx context.Context, args []any, kwargs pytree.Dict) (any, error)
}

// SubmoduleFunc is a function as a [Submodule].
type SubmoduleFunc func(ctx context.Context, args []any, kwargs pytree.Dict) (any, error)

// Call calls f.
func (f SubmoduleFunc) Call(ctx context.Context, args []any, kwargs pytree.Dict) (any, error) {
	return f(ctx, args, kwargs)
}

// attribute is what a module has under a name. Modules that share it have the same attribute.
type attribute struct {
	kind       export.InputKind // 0 for a TreeSpec
	value      any              // *aten.Value, *pytree.Spec or nil
	persistent bool
}

// hierarchy is what modules have in common: attributes and children.
type hierarchy struct {
	ty       string
	attrs    *export.OrderedMap[*attribute]
	children *export.OrderedMap[Submodule]
}

// TypeName is the class of the module that was exported, such as "torch.nn.modules.linear.Linear"; "" if it is not known.
func (h *hierarchy) TypeName() string { return h.ty }

// Submodule finds a module by its path, such as "layers.0"; nil if there is none.
func (h *hierarchy) Submodule(path string) Submodule {
	parent, name := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		parent, name = path[:i], path[i+1:]
	}
	if h = h.find(parent); h == nil {
		return nil
	}
	m, _ := h.children.Get(name)
	return m
}

// Children lists the names of the modules directly within.
func (h *hierarchy) Children() []string { return h.children.Keys() }

// Attr gives a parameter, buffer or constant of the module by its name.
func (h *hierarchy) Attr(name string) (*tensor.Tensor, bool) {
	if a, ok := h.attrs.Get(name); ok {
		if v, ok := a.value.(*aten.Value); ok {
			return v.T, true
		}
	}
	return nil, false
}

// find follows a path to a module of this package.
func (h *hierarchy) find(path string) *hierarchy {
	if path == "" {
		return h
	}
	for _, name := range strings.Split(path, ".") {
		m, _ := h.children.Get(name)
		if h = hierarchyOf(m); h == nil {
			return nil
		}
	}
	return h
}

func hierarchyOf(m Submodule) *hierarchy {
	switch m := m.(type) {
	case *InterpreterModule:
		return &m.hierarchy
	case *InterpreterModuleDispatcher:
		return &m.hierarchy
	}
	return nil
}

// walk visits modules in order, each once unless seen is nil.
func (h *hierarchy) walk(path string, m Submodule, seen map[Submodule]bool, visit func(string, Submodule) bool) bool {
	if seen != nil {
		if seen[m] {
			return true
		}
		seen[m] = true
	}
	if !visit(path, m) {
		return false
	}
	if h == nil {
		return true
	}
	for name, c := range h.children.All() {
		if path != "" {
			name = path + "." + name
		}
		if !hierarchyOf(c).walk(name, c, seen, visit) {
			return false
		}
	}
	return true
}

// InterpreterModule runs a graph node by node. Within an [UnflattenedModule] it is one module of the exported model; a module that only
// holds others has no graph.
type InterpreterModule struct {
	hierarchy
	graph *export.Graph
	body  *code
	base  *Module // whose pool, random numbers and lock calls use
}

// NewInterpreterModule makes a module of a graph that reads no attributes and calls no modules. class is the name that
// [InterpreterModule.TypeName] gives.
func NewInterpreterModule(g *export.Graph, class string, opts Options) (*InterpreterModule, error) {
	if g == nil {
		return nil, &export.ArgumentError{Name: "g", Got: "nil", Want: "a graph"}
	}
	if err := g.Lint(); err != nil {
		return nil, err
	}
	reg := opts.Registry
	if reg == nil {
		reg = aten.Builtin()
	}
	c := &compiler{reg: reg, missing: map[string][]string{}}
	k, err := c.compile(g)
	if err == nil {
		err = c.err()
	}
	if err != nil {
		return nil, err
	}
	m := &InterpreterModule{hierarchy: hierarchy{ty: class, attrs: &export.OrderedMap[*attribute]{}, children: &export.OrderedMap[Submodule]{}}, graph: g, body: k,
		base: &Module{opts: opts, reg: reg, rand: aten.NewGenerator(opts.Seed), stateful: true}}
	m.base.budget = newBudget(&opts)
	return m, nil
}

// Graph is what a call computes, nil for a module that only holds others.
func (m *InterpreterModule) Graph() *export.Graph { return m.graph }

// String prints the module as a Python class, as PyTorch's print_readable does.
func (m *InterpreterModule) String() string { return m.text("InterpreterModule") }

func (m *InterpreterModule) text(class string) string {
	g := m.graph
	if g == nil {
		g = &export.Graph{}
	}
	var b strings.Builder
	b.WriteString(g.Code(class))
	seen := map[Submodule]bool{}
	for name, c := range m.children.All() {
		if c, ok := c.(*InterpreterModule); ok && !seen[c] && c.graph != nil {
			seen[c] = true
			b.WriteString("\n    " + strings.ReplaceAll(strings.ReplaceAll(c.text(name), "\n", "\n    "), "\n    \n", "\n\n"))
		}
	}
	return b.String()
}

// Call runs the graph: args are its inputs in order, keywords go by the names of inputs. An error of a node is a *[NodeError]. Shape
// guards belong to whole programs; here an argument that does not fit fails at the operator that takes it.
func (m *InterpreterModule) Call(ctx context.Context, args []any, kwargs pytree.Dict) (out any, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, &PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	m.base.mu.Lock()
	defer m.base.mu.Unlock()
	return outside(m.execute(m.base.newRunner(ctx), inside(args), keywordArgs(kwargs)))
}

func keywordArgs(kwargs pytree.Dict) []aten.KwArg {
	var out []aten.KwArg
	for _, e := range kwargs {
		name, _ := e.Key.(string)
		out = append(out, aten.Kw(name, pytree.Map(e.Value, toValue)))
	}
	return out
}

func inside(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = pytree.Map(a, toValue)
	}
	return out
}

// outside gives a result as callers see it: tensors, containers of tensors.
func outside(x any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if list, ok := x.([]*aten.Value); ok {
		out := make([]any, len(list))
		for i, v := range list {
			out[i] = toTensor(v)
		}
		return pytree.List(out), nil
	}
	if list, ok := x.([]any); ok {
		x = pytree.List(list)
	}
	return pytree.Map(x, toTensor), nil
}

func toValue(x any) any {
	switch x := x.(type) {
	case *tensor.Tensor:
		if x == nil {
			return nil
		}
		return aten.FromTensor(x)
	case int:
		return int64(x)
	}
	return x
}

func toTensor(x any) any {
	if v, ok := x.(*aten.Value); ok {
		if v == nil {
			return nil
		}
		return v.T
	}
	return x
}

// execute runs the graph within a run.
func (m *InterpreterModule) execute(r *runner, args []any, kw []aten.KwArg) (any, error) {
	if m.body == nil {
		return nil, fmt.Errorf("interp: a module of class %q holds others and computes nothing itself", m.ty)
	}
	names := m.graph.Inputs[min(len(args), len(m.graph.Inputs)):]
	if len(args)+len(kw) != len(m.graph.Inputs) {
		return nil, fmt.Errorf("interp: the module takes %d inputs, got %d and %d by name", len(m.graph.Inputs), len(args), len(kw))
	}
	args = append([]any(nil), args...)
	for _, in := range names {
		found := false
		for _, k := range kw {
			if found = k.Name == in.Name; found {
				args = append(args, k.Value)
				break
			}
		}
		if !found {
			return nil, fmt.Errorf("interp: the module's input %q is missing", in.Name)
		}
	}
	was := r.within
	r.within = &m.hierarchy
	defer func() { r.within = was }()
	out, err := r.run(m.body, args)
	if err != nil {
		return nil, err
	}
	if m.graph.SingleReturn && len(out) == 1 {
		return out[0], nil
	}
	return out, nil
}

// InterpreterModuleDispatcher stands for a module that the model calls several times in different ways: successive calls go to
// successive modules, and after the last to the first again. Within an [UnflattenedModule] each run counts for itself.
type InterpreterModuleDispatcher struct {
	hierarchy
	calls []*InterpreterModule
	mu    sync.Mutex
	next  int
}

// NewInterpreterModuleDispatcher makes a dispatcher that shares the first module's children, and those of its attributes that are named.
func NewInterpreterModuleDispatcher(attrs []string, calls []*InterpreterModule) (*InterpreterModuleDispatcher, error) {
	if len(calls) == 0 {
		return nil, &export.ArgumentError{Name: "calls", Got: "no modules", Want: "at least one"}
	}
	d := &InterpreterModuleDispatcher{calls: calls}
	d.hierarchy = hierarchy{ty: calls[0].ty, children: calls[0].children, attrs: &export.OrderedMap[*attribute]{}}
	for _, name := range attrs {
		a, ok := calls[0].attrs.Get(name)
		if !ok {
			return nil, &export.ArgumentError{Name: "attrs", Got: name, Want: "an attribute of the first module"}
		}
		d.attrs.Set(name, a)
	}
	return d, nil
}

// CallModules are the modules in the order of their calls.
func (d *InterpreterModuleDispatcher) CallModules() []*InterpreterModule { return d.calls }

// String prints all modules one after the other.
func (d *InterpreterModuleDispatcher) String() string {
	texts := make([]string, len(d.calls))
	for i, m := range d.calls {
		texts[i] = m.String()
	}
	return strings.Join(texts, "\n")
}

// Call calls the next module. After an error the first is the next.
func (d *InterpreterModuleDispatcher) Call(ctx context.Context, args []any, kwargs pytree.Dict) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.calls[d.next]
	d.next = (d.next + 1) % len(d.calls)
	out, err := m.Call(ctx, args, kwargs)
	if err != nil {
		d.next = 0
	}
	return out, err
}

// newRunner makes the runner of one call.
func (m *Module) newRunner(ctx context.Context) *runner {
	r := &runner{ctx: ctx, build: aten.NewBuild(&aten.Eager{Pool: m.opts.Pool, Rand: m.rand}, m.reg), turns: map[*InterpreterModuleDispatcher]int{}}
	if ctx.Done() != nil {
		r.build.Ctx = ctx
	}
	return r
}

// errNoHierarchy is a graph of an unflattened module that is run by itself.
var errNoHierarchy = errors.New("the graph reads modules or attributes, which only an unflattened module has")

// runCallModule calls a submodule.
func runCallModule(r *runner, s *step, f frame) ([]any, error) {
	args, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	kw, err := r.keywords(s, f)
	if err != nil {
		return nil, err
	}
	if r.within == nil {
		return nil, errNoHierarchy
	}
	m := r.within.Submodule(s.node.Target)
	if m == nil {
		return nil, fmt.Errorf("there is no module %q", s.node.Target)
	}
	out, err := r.callModule(m, args, kw)
	return []any{out}, err
}

func (r *runner) callModule(m Submodule, args []any, kw []aten.KwArg) (any, error) {
	switch m := m.(type) {
	case *InterpreterModule:
		return m.execute(r, args, kw)
	case *InterpreterModuleDispatcher:
		i := r.turns[m]
		r.turns[m] = (i + 1) % len(m.calls)
		return m.calls[i].execute(r, args, kw)
	}
	given := make([]any, len(args))
	for i, a := range args {
		given[i], _ = outside(a, nil)
	}
	var named pytree.Dict
	for _, k := range kw {
		x, _ := outside(k.Value, nil)
		named = append(named, pytree.Entry{Key: k.Name, Value: x})
	}
	out, err := m.Call(r.ctx, given, named)
	return pytree.Map(out, toValue), err
}

// runGetAttr reads a parameter, buffer, constant or TreeSpec.
func runGetAttr(r *runner, s *step, _ frame) ([]any, error) {
	if r.within == nil {
		return nil, errNoHierarchy
	}
	path, name := "", s.node.Target
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		path, name = name[:i], name[i+1:]
	}
	if h := r.within.find(path); h != nil {
		if a, ok := h.attrs.Get(name); ok {
			return []any{a.value}, nil
		}
	}
	return nil, fmt.Errorf("there is no attribute %q", s.node.Target)
}

// runGetItem is container[key].
func runGetItem(r *runner, s *step, f frame) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(2, v); err != nil {
		return nil, err
	}
	x, ok := itemOf(v[0], v[1])
	if !ok {
		return nil, fmt.Errorf("%T has no item %v", v[0], v[1])
	}
	return []any{x}, nil
}

func itemOf(of, key any) (any, bool) {
	var list []any
	switch c := of.(type) {
	case pytree.Dict:
		return c.Get(key)
	case pytree.OrderedDict:
		return c.Get(key)
	case pytree.Tuple:
		list = c
	case pytree.List:
		list = c
	case pytree.NamedTuple:
		list = c.Values
	case *pytree.Node:
		list = c.Children
	default:
		list = asList(of)
	}
	i, ok := key.(int64)
	if !ok || i < 0 || i >= int64(len(list)) {
		return nil, false
	}
	return list[i], true
}

// runTreeFlattenSpec takes a container apart as a TreeSpec says.
func runTreeFlattenSpec(r *runner, s *step, f frame) ([]any, error) {
	v, spec, err := r.treeAndSpec(s, f)
	if err != nil {
		return nil, err
	}
	leaves, err := spec.Flatten(v)
	return []any{pytree.List(leaves)}, err
}

// runTreeUnflatten builds the container that a TreeSpec describes.
func runTreeUnflatten(r *runner, s *step, f frame) ([]any, error) {
	v, spec, err := r.treeAndSpec(s, f)
	if err != nil {
		return nil, err
	}
	leaves, ok := v.(pytree.Tuple)
	if !ok {
		leaves = asList(v)
	}
	x, err := spec.Unflatten(leaves)
	return []any{x}, err
}

func (r *runner) treeAndSpec(s *step, f frame) (any, *pytree.Spec, error) {
	if len(s.args) < 2 {
		return nil, nil, fmt.Errorf("got %d arguments, want a tree and a TreeSpec", len(s.args))
	}
	x, err := r.resolve(s.args[1], f)
	if err != nil {
		return nil, nil, err
	}
	spec, ok := x.(*pytree.Spec)
	if !ok {
		return nil, nil, fmt.Errorf("want a TreeSpec, got %T", x)
	}
	v, err := r.tree(s.args[0], f)
	return v, spec, err
}

// tree is resolve for a nest of tuples and dicts.
func (r *runner) tree(a ref, f frame) (any, error) {
	if d, ok := a.val.(*dictRef); ok {
		out := pytree.Dict{}
		for i, k := range d.keys {
			x, err := r.tree(d.vals[i], f)
			if err != nil {
				return nil, err
			}
			out = append(out, pytree.Entry{Key: k, Value: x})
		}
		return out, nil
	}
	if a.kind != listRef {
		return r.resolve(a, f)
	}
	out := make(pytree.Tuple, len(a.list))
	for i, x := range a.list {
		var err error
		if out[i], err = r.tree(x, f); err != nil {
			return nil, err
		}
	}
	return out, nil
}
