package passes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
)

// NodeError is a node that a pass cannot deal with.
type NodeError struct {
	Node, Target string
	Err          error
}

// Error names the node.
func (e *NodeError) Error() string {
	return fmt.Sprintf("passes: node %s (%s): %v", e.Node, e.Target, e.Err)
}

// Unwrap gives the cause.
func (e *NodeError) Unwrap() error { return e.Err }

// RunDecompositions gives the program in dialect ATEN: operators that the table holds are taken apart (nil: the table of
// [DefaultDecompositions]), no operator writes to its arguments, and what the program did write leaves as mutation outputs before
// the user's. It computes the same. Reg resolves the operators of the formulas; nil takes the built-in ones. Programs with
// gradients (joint programs) are refused.
func RunDecompositions(p *export.Program, table *DecompTable, reg *aten.Registry) (out *export.Program, err error) {
	if table == nil {
		table = DefaultDecompositions()
	}
	if b, err := p.Signature().BackwardSignature(); err != nil || b != nil {
		return nil, &export.ArgumentError{Name: "program", Got: "a joint program, with a loss and gradients", Want: "an inference program"}
	}
	parts := p.Parts()
	d := &decomposer{recorder: newRecorder(table, reg, newSymbols(parts.Graph)), env: map[*export.Value]any{}}
	if err := d.graph(parts.Graph); err != nil {
		return nil, err
	}
	sig, err := d.signature(&parts)
	if err != nil {
		return nil, err
	}
	parts.Graph, parts.Signature, parts.Verifiers = d.g, sig, []string{export.ATen.Dialect}
	d.finish()
	parts.ModuleCallGraph = d.moduleCalls(parts.ModuleCallGraph)
	return export.New(parts)
}

// decomposer walks a graph and records a new one.
type decomposer struct {
	*recorder
	env  map[*export.Value]any // *aten.Value for tensors, an argument of the new graph for the rest
	keep []*export.Value       // what stays though nobody uses it
}

// graph records all nodes; inputs and outputs get the same places.
func (d *decomposer) graph(g *export.Graph) error {
	d.g.SingleReturn = g.SingleReturn
	for _, in := range g.Inputs {
		d.names.Create(in.Name)
		d.input(in)
	}
	for _, n := range g.Nodes {
		if err := d.node(n); err != nil {
			return &NodeError{n.Name, n.Target, err}
		}
	}
	for _, o := range g.Outputs {
		a, err := d.mapped(o)
		if err != nil {
			return err
		}
		d.g.Outputs = append(d.g.Outputs, a)
	}
	return nil
}

func (d *decomposer) input(in export.GraphInput) {
	if in.Value != nil {
		old := in.Value
		in.Value = d.clone(old, nil)
		d.define(old, in.Value)
	}
	d.g.Inputs = append(d.g.Inputs, in)
}

// clone makes the new graph's value for an old one, under the old name or, with a node, the node's.
func (d *decomposer) clone(old *export.Value, def *export.Node) *export.Value {
	v := *old
	v.ID, v.Def = len(d.g.Values), def
	d.g.Values = append(d.g.Values, &v)
	return &v
}

// define notes what stands for an old value.
func (d *decomposer) define(old, v *export.Value) {
	d.made[old.Name] = v
	switch {
	case v.Kind == export.TensorKind && v.Tensor != nil:
		x := d.syms.known(v.Tensor)
		x.Ref = &ref{node: v, store: &store{value: x}, grad: v.Tensor.RequiresGrad, dev: v.Tensor.Device}
		d.env[old] = x
		d.syms.bindTensor(x)
	case v.Kind == export.SymIntKind:
		d.env[old] = v
		d.syms.bindValue(v.Sym, v)
	default:
		d.env[old] = v
	}
}

// dropped are calls that mean nothing in a graph without gradients.
var dropped = map[string]bool{"torch._C._set_grad_enabled": true, "torch.autograd.grad_mode.set_grad_enabled": true}

func (d *decomposer) node(n *export.Node) (err error) {
	defer func() {
		if e := recover(); e != nil {
			switch e := e.(type) {
			case *unrecordable:
				err = e
			case *MutationError:
				err = e
			default:
				err = aten.RecoverError(n.Op, e)
			}
		}
	}()
	d.metadata = n.Metadata
	if dropped[n.Target] {
		return nil
	}
	if n.Op == nil || n.Op.Signature() == nil || n.Op.Signature().Namespace == "prims" && len(n.Outputs) == 0 {
		return d.verbatim(n)
	}
	results := n.Op.Signature().Returns
	for _, t := range results {
		if t.Base != "Tensor" {
			return d.verbatim(n)
		}
	}
	a, ok, err := d.bind(n)
	if err != nil {
		return err
	}
	if !ok {
		return d.verbatim(n)
	}
	d.orig = n
	outs, err := d.build.Do(n.Op, a)
	d.orig = nil
	if err != nil {
		return plain(err)
	}
	return d.store(n, outs)
}

// plain takes this package's own errors out of what package aten made of them.
func plain(err error) error {
	var internal *aten.InternalError
	if errors.As(err, &internal) {
		switch e := internal.Value.(type) {
		case *MutationError:
			return e
		case *unrecordable:
			return e
		}
	}
	return err
}

// store notes the results of a node.
func (d *decomposer) store(n *export.Node, outs []any) error {
	for i, o := range n.Outputs {
		if i >= len(outs) {
			return fmt.Errorf("%d results for %d outputs", len(outs), len(n.Outputs))
		}
		var list []*aten.Value
		switch x := outs[i].(type) {
		case *aten.Value:
			list = []*aten.Value{x}
		case []*aten.Value:
			list = x
		}
		j := 0
		export.EachValue(o, func(v *export.Value) {
			if j < len(list) && list[j] != nil {
				d.env[v] = list[j]
				if p, ok := list[j].Ref.(*ref); ok {
					d.made[v.Name] = p.node
					d.bindRecorded(v, list[j])
				}
			}
			j++
		})
	}
	return nil
}

// bindRecorded notes the symbols that the program says are sizes of a value.
func (d *decomposer) bindRecorded(old *export.Value, x *aten.Value) {
	if old.Tensor == nil || len(old.Tensor.Sizes) != len(x.Sizes) {
		return
	}
	for i, n := range old.Tensor.Sizes {
		if !n.IsConst() && x.Sizes[i].IsConst() {
			panic(&unrecordable{fmt.Sprintf("size %d of %s, %v, became the constant %v", i, old.Name, n, x.Sizes[i])})
		}
	}
	known := d.syms.known(old.Tensor)
	known.Ref = x.Ref
	d.syms.bindTensor(known)
}

// bind gives the arguments of a node in the form that operators take; not ok if one of them has no such form.
func (d *decomposer) bind(n *export.Node) (a *aten.Args, ok bool, err error) {
	sig := n.Op.Signature()
	a = &aten.Args{Op: n.Op, V: make([]any, len(sig.Params))}
	given := make([]bool, len(sig.Params))
	for pos, arg := range n.Args {
		i := pos
		if arg.Name != "" {
			i = a.Index(arg.Name)
		}
		if i < 0 || i >= len(given) || given[i] {
			return nil, false, fmt.Errorf("argument %q is not in the schema %v, or given twice", arg.Name, sig)
		}
		x, ok := d.operand(arg.Value)
		if !ok {
			return nil, false, nil
		}
		if a.V[i], err = n.Op.ConvertArg(i, x); err != nil {
			return nil, false, err
		}
		given[i] = true
	}
	for i := range given {
		if !given[i] {
			if a.V[i], err = n.Op.Default(i); err != nil {
				return nil, false, err
			}
		}
	}
	return a, true, nil
}

// operand gives an argument in the form that [aten.Op.ConvertArg] takes.
func (d *decomposer) operand(arg export.Argument) (any, bool) {
	switch x := arg.(type) {
	case *export.Value:
		return d.valueOperand(x)
	case []*export.Value:
		list := make([]any, len(x))
		for i, v := range x {
			if v == nil {
				continue
			}
			o, ok := d.valueOperand(v)
			if !ok {
				return nil, false
			}
			list[i] = o
		}
		return list, true
	case []any:
		list := make([]any, len(x))
		for i := range x {
			o, ok := d.operand(x[i])
			if !ok {
				return nil, false
			}
			list[i] = o
		}
		return list, true
	case [][]*export.Value, *export.Subgraph, *export.Dict, export.Operator:
		return nil, false
	}
	return arg, true
}

func (d *decomposer) valueOperand(v *export.Value) (any, bool) {
	switch x := d.env[v].(type) {
	case *aten.Value:
		return x, true
	case *export.Value:
		if x.Kind != export.SymIntKind || v.Sym == nil {
			return nil, false
		}
		return d.syms.rehint(symbolic.FromExpr(v.Sym, 0)), true
	case int64, float64, bool:
		return x, true
	}
	return nil, false
}

// mapped is an argument over the new graph's values.
func (d *decomposer) mapped(arg export.Argument) (export.Argument, error) {
	var err error
	if sub, ok := arg.(*export.Subgraph); ok {
		return d.subgraph(sub)
	}
	if dict, ok := arg.(*export.Dict); ok {
		out := &export.Dict{Keys: dict.Keys}
		for _, x := range dict.Values {
			y, err := d.mapped(x)
			if err != nil {
				return nil, err
			}
			out.Values = append(out.Values, y)
		}
		return out, nil
	}
	res := export.MapValues(arg, func(v *export.Value) export.Argument {
		switch x := d.env[v].(type) {
		case *aten.Value:
			d.refresh(x)
			return d.use(x)
		case nil:
			err = fmt.Errorf("nothing stands for %s", v.Name)
			return nil
		default:
			return x
		}
	})
	return res, err
}

// subgraph decomposes the graph of a higher-order operator. It must not write to its inputs.
func (d *decomposer) subgraph(s *export.Subgraph) (export.Argument, error) {
	syms := d.syms.inner()
	inner := &decomposer{recorder: newRecorder(d.table, d.build.Reg, syms), env: map[*export.Value]any{}}
	if err := inner.graph(s.Graph); err != nil {
		return nil, fmt.Errorf("subgraph %s: %w", s.Name, err)
	}
	for _, in := range s.Graph.Inputs {
		if x, ok := inner.env[in.Value].(*aten.Value); ok && in.Value != nil && x.Ref.(*ref).store.gen > 0 {
			return nil, fmt.Errorf("subgraph %s: %w", s.Name, &MutationError{"the subgraph", "it writes to its input " + in.Name})
		}
	}
	inner.finish()
	return &export.Subgraph{Name: s.Name, Graph: inner.g}, nil
}

// renamed are operators that keep their arguments and results under another name.
var renamed = map[string]string{"torch.ops.aten.item.default": "torch.ops.aten._local_scalar_dense.default"}

// verbatim records a node as it is.
func (d *decomposer) verbatim(n *export.Node) error {
	if n.Op != nil && n.Op.Mutates() {
		return &MutationError{n.Op.Name(), "an argument depends on data"}
	}
	m := &export.Node{Target: n.Target, Op: n.Op, Metadata: maps.Clone(n.Metadata), SingleTensor: n.SingleTensor}
	if t, ok := renamed[n.Target]; ok && d.table.Has(n.Target) {
		m.Target, m.Op = t, d.build.Reg.Lookup(t)
	}
	for _, a := range n.Args {
		x, err := d.mapped(a.Value)
		if err != nil {
			return err
		}
		m.Args = append(m.Args, export.NamedArg{Name: a.Name, Value: x, Kind: a.Kind})
	}
	if m.Op != nil && m.Op != n.Op { // by the parameter names of the other
		for i := range m.Args {
			if i < len(m.Op.Signature().Params) {
				m.Args[i].Name = m.Op.Signature().Params[i].Name
			}
		}
	}
	m.Name = d.names.Create(nodeName(m.Target))
	single := len(n.Outputs) == 1 && (n.SingleTensor == nil || *n.SingleTensor)
	for _, o := range n.Outputs {
		_, one := o.(*export.Value)
		m.Outputs = append(m.Outputs, export.MapValues(o, func(v *export.Value) export.Argument {
			w := d.clone(v, m)
			w.Name = m.Name
			if !single || !one {
				w.Name = d.names.Create("getitem")
			}
			d.define(v, w)
			return w
		}))
	}
	d.g.Nodes = append(d.g.Nodes, m)
	return nil
}

// signature describes the new graph: tokens and mutations before the user's outputs.
func (d *decomposer) signature(parts *export.Parts) (*export.GraphSignature, error) {
	out := &export.GraphSignature{Inputs: slices.Clone(parts.Signature.Inputs)}
	var tokens, mutations, rest []export.OutputSpec
	var tokenArgs, mutationArgs, restArgs []export.Argument
	for i, s := range parts.Signature.Outputs {
		arg := d.g.Outputs[i]
		s.Arg = rename(s.Arg, arg)
		switch s.Kind {
		case export.OutputToken:
			tokens, tokenArgs = append(tokens, s), append(tokenArgs, arg)
		case export.BufferMutation, export.ParameterMutation, export.UserInputMutation:
			mutations, mutationArgs = append(mutations, s), append(mutationArgs, arg)
		default:
			rest, restArgs = append(rest, s), append(restArgs, arg)
		}
	}
	for i, s := range parts.Signature.Inputs {
		in := parts.Graph.Inputs[i]
		x, ok := d.env[in.Value].(*aten.Value)
		if in.Value == nil || !ok || x.Ref.(*ref).store.gen == 0 {
			continue
		}
		spec := export.OutputSpec{Kind: export.UserInputMutation, Target: s.Arg.ArgName()}
		switch s.Kind {
		case export.Buffer:
			spec.Kind, spec.Target = export.BufferMutation, s.Target
		case export.Parameter:
			spec.Kind, spec.Target = export.ParameterMutation, s.Target
		case export.UserInput:
		case export.ConstantTensor: // what is written is no constant: a buffer that the weights do not hold
			no := false
			out.Inputs[i].Kind, out.Inputs[i].Persistent = export.Buffer, &no
			spec.Kind, spec.Target = export.BufferMutation, s.Target
		default:
			return nil, &MutationError{"the program", fmt.Sprintf("it writes to %v %s", s.Kind, s.Target)}
		}
		v := x.Ref.(*ref).store.value.Ref.(*ref).node
		spec.Arg = export.TensorArg{Name: v.Name}
		mutations, mutationArgs = append(mutations, spec), append(mutationArgs, v)
	}
	out.Outputs = slices.Concat(tokens, mutations, rest)
	d.g.Outputs = slices.Concat(tokenArgs, mutationArgs, restArgs)
	return out, nil
}

// rename gives a spec's argument the name of the value that stands for it now.
func rename(a export.Arg, arg export.Argument) export.Arg {
	v, ok := arg.(*export.Value)
	if !ok {
		return a
	}
	switch a := a.(type) {
	case export.TensorArg:
		return export.TensorArg{Name: v.Name}
	case export.SymIntArg:
		return export.SymIntArg{Name: v.Name}
	case export.SymFloatArg:
		return export.SymFloatArg{Name: v.Name}
	case export.SymBoolArg:
		return export.SymBoolArg{Name: v.Name}
	case export.TokenArg:
		return export.TokenArg{Name: v.Name}
	case export.CustomObjArg:
		return export.CustomObjArg{Name: v.Name, ClassFQN: a.ClassFQN}
	}
	return a
}

// moduleCalls names what enters and leaves module calls by the new values. A call of which a value is gone loses its signature.
func (d *decomposer) moduleCalls(calls []export.ModuleCallEntry) []export.ModuleCallEntry {
	alive := map[string]bool{}
	for _, v := range d.g.Values {
		alive[v.Name] = true
	}
	args := func(list []export.Arg) ([]export.Arg, bool) {
		out := make([]export.Arg, len(list))
		for i, a := range list {
			out[i] = a
			if _, constant := a.(export.ConstantArg); constant || a.ArgName() == "" {
				continue
			}
			v := d.made[a.ArgName()]
			if v == nil || !alive[v.Name] {
				return nil, false
			}
			out[i] = rename(a, v)
		}
		return out, true
	}
	out := make([]export.ModuleCallEntry, len(calls))
	for i, e := range calls {
		out[i] = export.ModuleCallEntry{FQN: e.FQN}
		if e.Signature == nil {
			continue
		}
		s := *e.Signature
		var ok1, ok2 bool
		s.Inputs, ok1 = args(e.Signature.Inputs)
		s.Outputs, ok2 = args(e.Signature.Outputs)
		if ok1 && ok2 {
			out[i].Signature = &s
		}
	}
	return out
}

// finish drops what nobody uses, names what is left over, and numbers the values.
func (d *decomposer) finish() {
	kept, used := live(d.g, d.keep)
	if !d.literal {
		kept = sizesFirst(d.g, kept)
	}
	d.g.Nodes = kept
	values := d.g.Values[:0:0]
	add := func(v *export.Value) { v.ID = len(values); values = append(values, v) }
	for _, in := range d.g.Inputs {
		if in.Value != nil {
			add(in.Value)
		}
	}
	for _, n := range kept {
		i := 0
		for _, o := range n.Outputs {
			export.EachValue(o, func(v *export.Value) {
				data := d.literal && n.Op != nil && n.Op.Tags&aten.DataDependent != 0 // PyTorch takes all results of these
				if !used[v] && v.Name != n.Name && !data {
					v.Name = fmt.Sprintf("%s_unused_%d", n.Name, i)
				}
				i++
				add(v)
			})
		}
	}
	d.g.Values = values
}

// sizesFirst puts the sizes of inputs before all else, in the order of inputs and dimensions, where PyTorch looks at them.
func sizesFirst(g *export.Graph, nodes []*export.Node) []*export.Node {
	order := map[*export.Value]int{}
	for i, in := range g.Inputs {
		if in.Value != nil {
			order[in.Value] = i
		}
	}
	type place struct {
		input int
		dim   int64
	}
	at := func(n *export.Node) (place, bool) {
		if n.Target != "torch.ops.aten.sym_size.int" || len(n.Args) != 2 {
			return place{}, false
		}
		v, ok := n.Args[0].Value.(*export.Value)
		if !ok {
			return place{}, false
		}
		i, ok := order[v]
		dim, fixed := n.Args[1].Value.(int64)
		return place{i, dim}, ok && fixed
	}
	var first, rest []*export.Node
	for _, n := range nodes {
		if _, ok := at(n); ok {
			first = append(first, n)
		} else {
			rest = append(rest, n)
		}
	}
	slices.SortStableFunc(first, func(x, y *export.Node) int {
		p, _ := at(x)
		q, _ := at(y)
		return cmp.Or(cmp.Compare(p.input, q.input), cmp.Compare(p.dim, q.dim))
	})
	return append(first, rest...)
}

// live gives the nodes that must stay, and the values that somebody uses; inputs count as used.
func live(g *export.Graph, roots []*export.Value) (kept []*export.Node, used map[*export.Value]bool) {
	used = map[*export.Value]bool{}
	use := func(v *export.Value) { used[v] = true }
	for _, v := range roots {
		use(v)
	}
	for _, o := range g.Outputs {
		export.EachValue(o, use)
	}
	for _, in := range g.Inputs {
		if in.Value != nil {
			use(in.Value)
		}
	}
	for _, n := range slices.Backward(g.Nodes) {
		keep := !removable(n)
		for _, o := range n.Outputs {
			export.EachValue(o, func(v *export.Value) { keep = keep || used[v] })
		}
		if !keep {
			continue
		}
		kept = append(kept, n)
		for _, a := range n.Args {
			export.EachValue(a.Value, use)
		}
	}
	slices.Reverse(kept)
	return kept, used
}

// removable reports a node that may go when nobody uses its results.
func removable(n *export.Node) bool {
	if len(n.Outputs) == 0 || isHOP(n.Target) {
		return false
	}
	if n.Op != nil && (n.Op.Mutates() || len(n.Op.Writes) > 0) {
		return false
	}
	return n.Op == nil || n.Op.Tags&(aten.Effect|aten.Random|aten.DataDependent) == 0
}
