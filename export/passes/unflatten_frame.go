package passes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pt2go/pt2/export"
)

func itoa(i int) string { return strconv.Itoa(i) }

// seenCall is one call of a module.
type seenCall struct {
	parentPath string
	parent     *Submodule
	node       *export.Node // the call in the parent
	path       string
	call       int
	module     *Submodule
}

// moduleFrame is a module while its nodes are taken from the flat graph: it begins with the module's first node and ends with the
// first node of another.
type moduleFrame struct {
	u      *unflattener
	parent *moduleFrame
	stack  []stackEntry
	path   string // of the module
	name   string // of this call of it
	module *Submodule
	graph  *moduleGraph
	node   *export.Node  // the call in the parent; nil for the root
	result *export.Value // what it gives there
	// mapped has for values of the flat graph those of the module's, in the order of mappedKeys; holders those that came in as inputs.
	mapped     map[*export.Value]*export.Value
	mappedKeys []*export.Value
	holders    map[*export.Value]*export.Value
}

// outline walks through the flat graph and fills the modules' graphs.
func (u *unflattener) outline() error {
	f := &moduleFrame{u: u, stack: []stackEntry{{}}, module: u.root, graph: u.graphOf(u.root),
		mapped: map[*export.Value]*export.Value{}, holders: map[*export.Value]*export.Value{}}
	for _, in := range u.parts.Graph.Inputs {
		if in.Value == nil {
			in.Name = f.graph.names.Create(in.Name)
			f.graph.Inputs = append(f.graph.Inputs, in)
			continue
		}
		v := f.graph.input(in.Name, in.Value, false)
		f.set(in.Value, v)
		u.names[in.Value] = v.Name
		u.done[in.Value] = true
	}
	if _, err := f.runFrom(0); err != nil {
		return err
	}
	var fault error
	for _, o := range u.parts.Graph.Outputs {
		f.graph.Outputs = append(f.graph.Outputs, export.MapValues(o, func(v *export.Value) export.Argument {
			w, err := f.remap(v)
			if err != nil {
				fault = err
			}
			return w
		}))
	}
	return fault
}

func (f *moduleFrame) set(old, new *export.Value) {
	if f.mapped[old] == nil {
		f.mappedKeys = append(f.mappedKeys, old)
	}
	f.mapped[old] = new
}

// runFrom takes nodes from number i on and gives the number of the first that is not the module's.
func (f *moduleFrame) runFrom(i int) (int, error) {
	u := f.u
	depth := len(f.stack)
	for i < len(u.parts.Graph.Nodes) {
		n := u.parts.Graph.Nodes[i]
		stack := u.stacks[n]
		if stack == nil {
			stack = f.stack
		}
		if len(stack) < depth || !sameStack(stack[:depth], f.stack) {
			return i, f.finish()
		}
		if len(stack) > depth {
			inner, err := u.enter(f, stack[:depth+1])
			if err != nil {
				return i, err
			}
			if i, err = inner.runFrom(i); err != nil {
				return i, err
			}
			continue
		}
		if err := f.graph.copyNode(n, n.Name, f.remap, f.set); err != nil {
			return i, err
		}
		u.done[n] = true
		i++
	}
	if f.parent != nil {
		return i, f.finish()
	}
	return i, nil
}

func sameStack(a, b []stackEntry) bool {
	return slices.EqualFunc(a, b, func(x, y stackEntry) bool { return x.path == y.path && x.class == y.class && x.call == y.call })
}

// enter begins a call of the module on top of the stack.
func (u *unflattener) enter(parent *moduleFrame, stack []stackEntry) (*moduleFrame, error) {
	top := stack[len(stack)-1]
	f := &moduleFrame{u: u, parent: parent, stack: slices.Clone(stack), path: top.path, name: callName(top.path, top.call),
		mapped: map[*export.Value]*export.Value{}, holders: map[*export.Value]*export.Value{}}
	if f.module = u.created[f.path]; f.module == nil {
		f.module = newSubmodule(top.class)
	}
	f.graph = u.graphOf(f.module)
	target, err := accessor(parent.path, f.name)
	if err != nil {
		return nil, err
	}
	u.addSubmodule(parent, target, top.class, f.module)
	f.result = parent.graph.call(export.CallModule, target, snakeCase(target), nil)
	f.node = f.result.Def
	if calls := u.seen[top.key]; len(calls) > 0 {
		f.module.Children = calls[0].module.Children
	} else {
		u.seenKeys = append(u.seenKeys, top.key)
	}
	u.seen[top.key] = append(u.seen[top.key], &seenCall{parentPath: parent.path, parent: parent.module, node: f.node, path: f.path, call: top.call, module: f.module})
	if s := u.signatures[f.name]; s != nil {
		return f, f.enterPreserved(s)
	}
	return f, nil
}

// addSubmodule hangs a module below the parent's, with modules on the way that only hold others.
func (u *unflattener) addSubmodule(parent *moduleFrame, target, class string, module *Submodule) {
	parts := strings.Split(target, ".")
	at := parent.module
	for i, part := range parts[:len(parts)-1] {
		next, ok := at.Children.Get(part)
		if !ok {
			path := strings.Join(parts[:i+1], ".")
			if parent.path != "" {
				path = parent.path + "." + path
			}
			if next = u.created[path]; next == nil {
				next = newSubmodule(class)
				u.created[path] = next
			}
			at.Children.Set(part, next)
		}
		at = next
	}
	at.Children.Set(parts[len(parts)-1], module)
}

// snakeCase is the name that PyTorch derives from the path of a module or attribute.
func snakeCase(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		if c >= 'A' && c <= 'Z' {
			if i > 0 && path[i-1] >= 'a' && path[i-1] <= 'z' {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// enterPreserved gives a module the inputs that it had in the model, and its call the arguments.
func (f *moduleFrame) enterPreserved(s *callSignature) error {
	args, kwargs := s.in.Children[0], s.in.Children[1]
	names := kwargs.KeyNames()
	positional := make(export.Tuple, len(args.Children))
	for i := range positional {
		positional[i] = f.graph.input("_positional_arg_"+itoa(i), nil, false)
	}
	keyword := &export.Dict{Keys: names}
	for _, name := range names {
		keyword.Values = append(keyword.Values, f.graph.input(name, nil, false))
	}
	spec := f.u.addSpec(f.module, &Attr{Spec: s.in})
	flat := f.graph.call(export.CallFunction, TreeFlattenSpec, "tree_flatten_spec", nil, export.Tuple{positional, keyword}, spec)
	for i, arg := range s.Inputs {
		name := arg.ArgName()
		if _, constant := arg.(export.ConstantArg); constant {
			f.graph.call(export.CallFunction, getItem, "_constant_"+itoa(i), nil, flat, int64(i))
			continue
		}
		v := f.u.flatValue(name)
		w := f.graph.call(export.CallFunction, getItem, name, v, flat, int64(i))
		if v != nil {
			f.holders[v] = w
		}
	}
	return f.passArguments(s, names)
}

// passArguments builds the arguments in the parent, as a tree, and takes it apart into those of the call.
func (f *moduleFrame) passArguments(s *callSignature, names []string) error {
	p := f.parent
	return p.graph.before(f.node, func() error {
		leaves := make([]any, len(s.Inputs))
		for i, arg := range s.Inputs {
			if c, ok := arg.(export.ConstantArg); ok {
				leaves[i] = c.Value
				continue
			}
			v := f.u.flatValue(arg.ArgName())
			if v == nil {
				continue
			}
			w, err := p.remap(v)
			if err != nil {
				return err
			}
			leaves[i] = w
		}
		tree := p.graph.call(export.CallFunction, TreeUnflatten, "tree_unflatten", nil, leaves, f.u.addSpec(p.module, &Attr{Spec: s.in}))
		args, kwargs := p.graph.item(tree, int64(0), nil), p.graph.item(tree, int64(1), nil)
		var list []export.NamedArg
		for i := range s.in.Children[0].Children {
			list = append(list, export.NamedArg{Value: p.graph.item(args, int64(i), nil), Kind: export.Positional})
		}
		for _, name := range names {
			list = append(list, export.NamedArg{Name: name, Value: p.graph.item(kwargs, name, nil), Kind: export.Keyword})
		}
		f.node.Args = list
		return nil
	})
}

// flatValue finds a value of the flat graph that was computed already.
func (u *unflattener) flatValue(name string) *export.Value {
	for _, v := range u.parts.Graph.Values {
		if v.Name == name && (v.Def == nil && u.done[v] || v.Def != nil && u.done[v.Def]) {
			return v
		}
	}
	return nil
}

// remap gives the module's value for one of the flat graph. One that comes from outside becomes an input, or, where inputs are fixed by a
// preserved signature, is computed again.
func (f *moduleFrame) remap(v *export.Value) (*export.Value, error) {
	if w := f.mapped[v]; w != nil {
		return w, nil
	}
	if w := f.holders[v]; w != nil {
		return w, nil
	}
	preserved := f.u.signatures[f.path] != nil
	switch {
	case v.Def == nil || !preserved:
		return f.addInput(v)
	case copyable(v.Def):
		err := f.graph.copyNode(v.Def, export.TargetName(v.Def.Target), f.remap, f.set)
		return f.mapped[v], err
	}
	return f.readMutated(v)
}

func (f *moduleFrame) addInput(v *export.Value) (*export.Value, error) {
	if f.parent == nil {
		return nil, &UnflattenError{v.Name, fmt.Sprintf("Cannot add placeholder %s to root module", v.Name)}
	}
	name := v.Name
	if v.Def == nil {
		name = f.u.names[v]
	}
	w := f.graph.input(name, v, true)
	f.holders[v] = w
	return w, f.parent.graph.before(f.node, func() error {
		x, err := f.parent.remap(v)
		f.node.Args = slices.Insert(f.node.Args, 0, export.NamedArg{Value: x, Kind: export.Positional})
		return err
	})
}

// copyable reports the calls that PyTorch makes again in a module whose signature has no place for their result: export computes
// sizes once for the whole program.
func copyable(n *export.Node) bool {
	switch n.Target {
	case "torch.ops.aten.sym_size.int", "torch.ops.aten.item.default", "torch.ops.aten.unbind.int", "torch.ops.aten.sum.dim_IntList",
		"torch.ops.aten.view.default", "torch.ops.aten.diff.default":
		return true
	}
	return strings.HasPrefix(n.Target, "_operator.")
}

// readMutated reads in a module whose inputs are fixed a value that an earlier module made of a tensor by changing it. The tensor is read
// instead: an operator that writes to its argument has changed it, and where the change is functional the earlier module writes it
// back, see writeReads.
func (f *moduleFrame) readMutated(v *export.Value) (*export.Value, error) {
	n := v.Def
	var first *export.Value
	if len(n.Args) > 0 {
		first, _ = n.Args[0].Value.(*export.Value)
	}
	writes := n.Op != nil && n.Op.Mutates()
	if first == nil || len(n.Outputs) != 1 || !writes && !f.u.steps[v] && !unchanged(n, first, v) {
		return nil, &UnflattenError{n.Name, fmt.Sprintf("Could not run remap_input() on op type: call_function for node %s", n.Name)}
	}
	if stack := f.u.stacks[n]; !writes && len(stack) > 0 {
		path := stack[len(stack)-1].path
		if f.u.reads[path] == nil {
			f.u.reads[path] = map[string]bool{}
		}
		f.u.reads[path][n.Name] = true
	}
	return f.remap(first)
}

// unchanged reports a conversion to the dtype that a tensor has.
func unchanged(n *export.Node, from, to *export.Value) bool {
	if from.Tensor == nil || to.Tensor == nil || from.Tensor.DType != to.Tensor.DType || from.Tensor.Device != to.Tensor.Device {
		return false
	}
	return strings.HasPrefix(n.Target, "torch.ops.aten.to.") || n.Target == "torch.ops.aten._to_copy.default"
}

// writeReads makes modules write values to buffers that others read there, see readMutated.
func (u *unflattener) writeReads() {
	for _, key := range u.seenKeys {
		for _, c := range u.seen[key] {
			g := u.graphOf(c.module)
			for _, n := range slices.Clone(g.Nodes) {
				if !u.reads[c.path][n.Name] {
					continue
				}
				if i := slices.Index(g.Nodes, n); i+1 < len(g.Nodes) {
					g.at = g.Nodes[i+1]
				}
				v, _ := n.Outputs[0].(*export.Value)
				g.call(export.CallFunction, "torch.ops.aten.copy_.default", "copy__default", v, n.Args[0].Value, v)
				g.at = nil
			}
		}
	}
}

// finish ends a call: the module returns what is used outside, and the parent takes it.
func (f *moduleFrame) finish() error {
	delete(f.u.created, f.path)
	if s := f.u.signatures[f.name]; s != nil {
		return f.finishPreserved(s)
	}
	var out []*export.Value
	for _, v := range f.mappedKeys {
		for _, user := range f.u.users[v] {
			if user == nil || !f.u.done[user] {
				out = append(out, v)
				break
			}
		}
	}
	if len(out) == 1 {
		f.graph.Outputs, f.graph.SingleReturn = []export.Argument{f.mapped[out[0]]}, true
		f.describe(out[0])
		f.parent.set(out[0], f.result)
		return nil
	}
	list := make([]*export.Value, len(out))
	for i, v := range out {
		list[i] = f.mapped[v]
	}
	f.graph.Outputs, f.graph.SingleReturn = []export.Argument{list}, true
	for i, v := range out {
		f.parent.set(v, f.parent.graph.item(f.result, int64(i), v))
	}
	return nil
}

// describe gives the call's result in the parent the type of the value that it is.
func (f *moduleFrame) describe(v *export.Value) {
	name, def := f.result.Name, f.result.Def
	*f.result = *v
	f.result.Name, f.result.Def = name, def
}

func (f *moduleFrame) finishPreserved(s *callSignature) error {
	if f.parent == nil {
		return &UnflattenError{f.path, "the program itself is called as one of its modules"}
	}
	leaves := make(export.Tuple, len(s.Outputs))
	values := make([]*export.Value, len(s.Outputs))
	for i, o := range s.Outputs {
		switch o.(type) {
		case export.CustomObjArg, export.TokenArg:
			return &UnflattenError{o.ArgName(), fmt.Sprintf("Unsupported data type for output node: %v", o)}
		}
		if c, ok := o.(export.ConstantArg); ok {
			leaves[i] = c.Value
			continue
		}
		v := f.u.flatValue(o.ArgName())
		if v == nil {
			continue
		}
		values[i] = v
		switch {
		case f.mapped[v] != nil:
			leaves[i] = f.mapped[v]
		case f.holders[v] != nil:
			leaves[i] = f.holders[v]
		default:
			return &UnflattenError{v.Name, fmt.Sprintf("Could not find output node %s. Graph: %v", v.Name, f.graph.Graph)}
		}
	}
	tree := f.graph.call(export.CallFunction, TreeUnflatten, "tree_unflatten", nil, leaves, f.u.addSpec(f.module, &Attr{Spec: s.out}))
	f.graph.Outputs, f.graph.SingleReturn = []export.Argument{tree}, true
	p := f.parent
	flat := p.graph.call(export.CallFunction, TreeFlattenSpec, "tree_flatten_spec", nil, f.result, f.u.addSpec(p.module, &Attr{Spec: s.out}))
	for i, v := range values {
		if v != nil {
			p.set(v, p.graph.item(flat, int64(i), v))
		}
	}
	return nil
}
