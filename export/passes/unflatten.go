package passes

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/tensor"
)

// Submodule is one module of an unflattened program: a graph of its own, attributes and children.
type Submodule struct {
	Type string // class of the module that was exported, such as "torch.nn.modules.linear.Linear"; "" if not known
	// Graph is what a call computes; nil for a module that only holds others. Its nodes call submodules (export.CallModule) and read
	// attributes (export.GetAttr) besides functions.
	Graph    *export.Graph
	Children *export.OrderedMap[*Submodule] // calls of one module with different graphs share this map
	Attrs    *export.OrderedMap[*Attr]
	// Calls are the graphs of successive calls of a module whose signature was preserved; Graph is nil then.
	Calls []*Submodule
}

// Attr is a parameter, buffer or constant of a module. Modules that share one have the same *Attr.
type Attr struct {
	Kind       export.InputKind // Parameter, Buffer, ConstantTensor, CustomObj, or 0 for a TreeSpec
	Target     string           // the name in the program, the first of its names for a shared one
	Tensor     *tensor.Tensor   // nil for a custom object
	Object     *export.CustomObject
	Spec       *pytree.Spec
	Persistent bool // of a buffer: part of the state dict
}

// UnflattenError says why a program has no hierarchy of modules.
type UnflattenError struct {
	Node string // "" if no single node is at fault
	Msg  string
}

// Error gives PyTorch's words where it has some.
func (e *UnflattenError) Error() string { return "passes: unflatten: " + e.Msg }

// Unflatten rebuilds the hierarchy of modules that a program was exported from: names and classes from what its nodes record
// (nn_module_stack), parameters, buffers and constants with the module that had them, one graph for each call of a module, calls that
// compute the same merged, the others named "m@1", "m@2" and so on. Modules whose signature was preserved at export take and give
// what they did in the model. It is the graph part of PyTorch's torch.export.unflatten; package interp runs the result.
//
// Every node must say which module it belongs to, else the error is an *[UnflattenError].
func Unflatten(p *export.Program) (*Submodule, error) {
	calls := p.ModuleCallGraph()
	if len(calls) == 0 || calls[0].FQN != "" {
		return nil, &UnflattenError{"", "the module call graph does not begin with the program itself"}
	}
	if b, err := p.Signature().BackwardSignature(); err != nil || b != nil {
		return nil, &UnflattenError{"", "Unflattening on JointExportModule NYI"}
	}
	e := p.Edit()
	if err := removeEffectTokens(e); err != nil {
		return nil, err
	}
	dropDead(e.Graph())
	steps := writeMutations(e)
	u := &unflattener{p: p, parts: e.Parts(), root: newSubmodule(rootType(e.Graph())), signatures: map[string]*callSignature{},
		stacks: map[*export.Node][]stackEntry{}, done: map[any]bool{}, users: map[*export.Value][]*export.Node{},
		created: map[string]*Submodule{}, graphs: map[*Submodule]*moduleGraph{}, seen: map[string][]*seenCall{}, reads: map[string]map[string]bool{}, steps: steps,
		names: map[*export.Value]string{}}
	if err := u.prepare(); err != nil {
		return nil, err
	}
	if err := u.outline(); err != nil {
		return nil, err
	}
	u.writeReads()
	u.assignAll()
	if err := u.sinkAll(); err != nil {
		return nil, err
	}
	redirected := u.merge()
	if err := u.dispatch(redirected); err != nil {
		return nil, err
	}
	u.order(redirected)
	return u.root, u.finish()
}

func newSubmodule(class string) *Submodule {
	return &Submodule{Type: class, Children: &export.OrderedMap[*Submodule]{}, Attrs: &export.OrderedMap[*Attr]{}}
}

// unflattener is the work on one program.
type unflattener struct {
	p          *export.Program
	parts      *export.Parts
	root       *Submodule
	signatures map[string]*callSignature
	stacks     map[*export.Node][]stackEntry
	users      map[*export.Value][]*export.Node // nil stands for the graph's output
	done       map[any]bool                     // nodes and graph inputs that were copied
	names      map[*export.Value]string         // of inputs, in the root's graph
	created    map[string]*Submodule            // modules that hold others and were not called yet
	graphs     map[*Submodule]*moduleGraph
	seen       map[string][]*seenCall // by the key of the module in the stack
	seenKeys   []string               // in order
	reads      map[string]map[string]bool
	steps      map[*export.Value]bool // values that a buffer or input takes on its way to what it is updated to
}

// stackEntry is one module of a node's stack.
type stackEntry struct {
	key   string // "L__self___layers_0", one for all names and calls of a module
	path  string
	class string
	call  int
}

// callSignature is a preserved calling convention.
type callSignature struct {
	*export.ModuleCallSignature
	in, out *pytree.Spec
}

// emptyStack is the key that marks a node outside of all modules.
const emptyStack = "_empty_nn_module_stack_from_metadata_hook"

// prepare reads stacks and signatures.
func (u *unflattener) prepare() error {
	for _, c := range u.parts.ModuleCallGraph {
		if c.Signature == nil {
			continue
		}
		s := &callSignature{ModuleCallSignature: c.Signature}
		if c.FQN != "" {
			var err error
			if s.in, err = pytree.Parse(c.Signature.InSpec, u.parts.NamedTuples); err != nil {
				return err
			}
			if s.out, err = pytree.Parse(c.Signature.OutSpec, u.parts.NamedTuples); err != nil {
				return err
			}
			if !s.in.IsCall() {
				return &UnflattenError{"", fmt.Sprintf("the signature of %q takes no (args, kwargs): %v", c.FQN, s.in)}
			}
		}
		u.signatures[c.FQN] = s
	}
	for _, n := range u.parts.Graph.Nodes {
		stack, err := parseStack(n)
		if err != nil {
			return err
		}
		u.stacks[n] = stack
		for _, a := range n.Args {
			export.EachValue(a.Value, func(v *export.Value) { u.users[v] = append(u.users[v], n) })
		}
	}
	for _, o := range u.parts.Graph.Outputs {
		export.EachValue(o, func(v *export.Value) { u.users[v] = append(u.users[v], nil) })
	}
	return nil
}

// parseStack reads a node's nn_module_stack and cuts it where a path is not within the one before. A stack that is empty on purpose is
// nil: the node belongs to the module that is being executed.
func parseStack(n *export.Node) ([]stackEntry, error) {
	text := n.Metadata["nn_module_stack"]
	if text == "" {
		return nil, &UnflattenError{n.Name, "Unable to find nn_module_stack for node " + n.Name}
	}
	var out []stackEntry
	for _, item := range strings.Split(text, ";") {
		parts := splitOutside(item)
		if len(parts) != 3 {
			return nil, &UnflattenError{n.Name, fmt.Sprintf("node %s: the nn_module_stack %q has no key, path and class", n.Name, item)}
		}
		e := stackEntry{key: parts[0], path: parts[1], class: parts[2]}
		if base, num, ok := strings.Cut(e.key, "@"); ok {
			if i := strings.LastIndexByte(num, '@'); i >= 0 {
				num = num[i+1:]
			}
			var err error
			if e.call, err = strconv.Atoi(num); err != nil {
				return nil, &UnflattenError{n.Name, fmt.Sprintf("node %s: the module %q has no number of a call", n.Name, e.key)}
			}
			e.key = base
		}
		if e.path == "" {
			e.class = ""
		}
		if len(out) > 0 && !longerPath(withoutCall(out[len(out)-1].path), withoutCall(e.path)) {
			break
		}
		out = append(out, e)
	}
	if len(out) == 1 && out[0].key == emptyStack {
		return nil, nil
	}
	return out, nil
}

// longerPath is PyTorch's test that the module at path b stands within the one at a.
func longerPath(a, b string) bool { return len(a) < len(b) && strings.HasPrefix(b, a) }

// withoutCall is a path without the number of a call.
func withoutCall(path string) string {
	base, _, _ := strings.Cut(path, "@")
	return base
}

// splitOutside splits at commas outside of brackets.
func splitOutside(s string) []string {
	var out []string
	start, depth := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, s[start:i])
				start = i + 1
			}
		}
	}
	return append(out, s[start:])
}

// rootType is the class of the whole model.
func rootType(g *export.Graph) string {
	for _, n := range g.Nodes {
		for _, item := range strings.Split(n.Metadata["nn_module_stack"], ";") {
			if parts := splitOutside(item); len(parts) == 3 && parts[1] == "" {
				return parts[2]
			}
		}
	}
	return ""
}

// callName is the name of a module's call number n, from 0: m, m@1, m@2.
func callName(base string, n int) string {
	if n == 0 {
		return base
	}
	return base + "@" + strconv.Itoa(n)
}

// isCallName reports whether name is a call of base.
func isCallName(name, base string) bool {
	rest, ok := strings.CutPrefix(name, base)
	if !ok || rest == "" {
		return ok
	}
	_, err := strconv.ParseUint(strings.TrimPrefix(rest, "@"), 10, 32)
	return rest[0] == '@' && err == nil
}

// accessor is the path of a module seen from one that holds it.
func accessor(parent, child string) (string, error) {
	if parent == "" {
		return child, nil
	}
	p, c := strings.Split(parent, "."), strings.Split(child, ".")
	if len(c) < len(p) || !slices.Equal(c[:len(p)], p) {
		return "", &UnflattenError{"", fmt.Sprintf("Child module '%s' is not a descendant of parent module '%s'.This is currently unsupported."+
			"Please try to make child module attach to parent module directly.", child, parent)}
	}
	return strings.Join(c[len(p):], "."), nil
}

// writeMutations puts what a program returns for its buffers and inputs into them where it is computed, as the model did. It gives the
// values that these take on the way there, by the first arguments of the calls.
func writeMutations(e *export.Editor) map[*export.Value]bool {
	steps, written := map[*export.Value]bool{}, map[*export.Node]bool{}
	g, sig := e.Graph(), e.Parts().Signature
	places := map[string]*export.Value{}
	for i, s := range sig.Inputs {
		switch s.Kind {
		case export.Parameter, export.Buffer:
			places["state "+s.Target] = g.Inputs[i].Value
		case export.UserInput:
			places["input "+s.Arg.ArgName()] = g.Inputs[i].Value
		}
	}
	var outputs []export.Argument
	var specs []export.OutputSpec
	for i, s := range sig.Outputs {
		var place *export.Value
		switch s.Kind {
		case export.BufferMutation, export.ParameterMutation:
			place = places["state "+s.Target]
		case export.UserInputMutation:
			place = places["input "+s.Target]
		}
		v, ok := g.Outputs[i].(*export.Value)
		if place == nil || !ok {
			outputs, specs = append(outputs, g.Outputs[i]), append(specs, s)
			continue
		}
		for x := v; x != nil && x != place && x.Def != nil && len(x.Def.Args) > 0; x, _ = x.Def.Args[0].Value.(*export.Value) {
			steps[x] = true
		}
		writeAfter(e, v, place, written)
	}
	g.Outputs, sig.Outputs = outputs, specs
	return steps
}

// writeAfter inserts copy_(place, v) behind v and the writes there, or behind the last node that reads what stood in place before.
func writeAfter(e *export.Editor, v, place *export.Value, written map[*export.Node]bool) {
	g := e.Graph()
	seen := map[*export.Value]bool{place: true} // place and what looks at its memory
	at := 0
	for i, n := range g.Nodes {
		reads := false
		for _, a := range n.Args {
			export.EachValue(a.Value, func(x *export.Value) { reads = reads || seen[x] })
		}
		view := reads && n.Op != nil && n.Op.IsView()
		for _, o := range n.Outputs {
			export.EachValue(o, func(x *export.Value) {
				if x == v {
					at = i + 1
				}
				seen[x] = seen[x] || view
			})
		}
		if reads {
			at = i + 1
		}
	}
	for at < len(g.Nodes) && written[g.Nodes[at]] {
		at++
	}
	copied := &export.Node{Name: e.Name("copy__default"), Target: "torch.ops.aten.copy_.default", Metadata: map[string]string{},
		Args: []export.NamedArg{{Name: "self", Value: place, Kind: export.Positional}, {Name: "src", Value: v, Kind: export.Positional}}}
	if v.Def != nil {
		copied.Metadata = maps.Clone(v.Def.Metadata)
	} else if at > 0 {
		copied.Metadata = maps.Clone(g.Nodes[at-1].Metadata)
	}
	w := *v
	w.Name, w.Def, w.ID = copied.Name, copied, len(g.Values)
	g.Values = append(g.Values, &w)
	copied.Outputs = []export.Argument{&w}
	swap := func(x *export.Value) export.Argument {
		if x == v {
			return &w
		}
		return x
	}
	for _, n := range g.Nodes[at:] {
		for i := range n.Args {
			n.Args[i].Value = export.MapValues(n.Args[i].Value, swap)
		}
	}
	g.Nodes = slices.Insert(g.Nodes, at, copied)
	written[copied] = true
}

const withEffects = "torch.ops.higher_order.with_effects"

// removeEffectTokens calls operators with effects by themselves and takes away the tokens that keep their order.
func removeEffectTokens(e *export.Editor) error {
	g, sig := e.Graph(), e.Parts().Signature
	tokens := map[*export.Value]bool{}
	for i, s := range sig.Inputs {
		if s.Kind == export.InputToken {
			tokens[g.Inputs[i].Value] = true
		}
	}
	for _, n := range g.Nodes {
		if n.Target != withEffects || len(n.Args) < 2 || len(n.Outputs) < 1 {
			continue
		}
		op, ok := n.Args[1].Value.(export.Operator)
		if !ok {
			return &UnflattenError{n.Name, fmt.Sprintf("node %s: want an operator, got %T", n.Name, n.Args[1].Value)}
		}
		if t, ok := n.Outputs[0].(*export.Value); ok {
			tokens[t] = true
		}
		n.Target, n.Args, n.Outputs = string(op), n.Args[2:], n.Outputs[1:]
		for i := range n.Args {
			if n.Args[i].Kind != export.Keyword {
				n.Args[i].Name = ""
			}
		}
	}
	for i := len(sig.Inputs) - 1; i >= 0; i-- {
		if sig.Inputs[i].Kind == export.InputToken {
			sig.Inputs, g.Inputs = slices.Delete(sig.Inputs, i, i+1), slices.Delete(g.Inputs, i, i+1)
		}
	}
	for i := len(sig.Outputs) - 1; i >= 0; i-- {
		if sig.Outputs[i].Kind == export.OutputToken {
			sig.Outputs, g.Outputs = slices.Delete(sig.Outputs, i, i+1), slices.Delete(g.Outputs, i, i+1)
		}
	}
	for _, n := range g.Nodes {
		for _, a := range n.Args {
			used := false
			export.EachValue(a.Value, func(v *export.Value) { used = used || tokens[v] })
			if used {
				return &UnflattenError{n.Name, fmt.Sprintf("node %s takes a token of effects into a subgraph", n.Name)}
			}
		}
	}
	return nil
}

// dropDead removes calls whose results nobody uses, and marks results of others that nobody uses, as PyTorch's eliminate_dead_code.
func dropDead(g *export.Graph) {
	kept, used := live(g, nil)
	g.Nodes = kept
	for _, n := range kept {
		if len(n.Outputs) < 2 {
			continue
		}
		for i, o := range n.Outputs {
			if v, ok := o.(*export.Value); ok && !used[v] {
				n.Outputs[i] = export.Unused{}
			}
		}
	}
}
