package export

import (
	"fmt"
	"slices"

	"github.com/pt2go/pt2/aten"
)

// Editor changes a copy of a program: its graph, with the signature and the module calls kept right.
type Editor struct {
	parts Parts
	names *Namespace
}

// Edit copies what an editor may change. Weights are shared.
func (p *Program) Edit() *Editor {
	e := &Editor{parts: p.p, names: NewNamespace()}
	e.parts.Graph = p.p.Graph.Clone()
	sig := *p.p.Signature
	sig.Inputs, sig.Outputs = slices.Clone(sig.Inputs), slices.Clone(sig.Outputs)
	e.parts.Signature = &sig
	e.parts.ModuleCallGraph = slices.Clone(p.p.ModuleCallGraph)
	for i, c := range e.parts.ModuleCallGraph {
		if c.Signature != nil {
			s := *c.Signature
			s.Inputs, s.Outputs = slices.Clone(s.Inputs), slices.Clone(s.Outputs)
			e.parts.ModuleCallGraph[i].Signature = &s
		}
	}
	for _, v := range e.parts.Graph.Values {
		e.names.Create(v.Name)
	}
	for _, n := range e.parts.Graph.Nodes {
		if !e.names.used[n.Name] {
			e.names.Create(n.Name)
		}
	}
	return e
}

// Graph is the graph being edited. Metadata of its values may be replaced, not changed in place.
func (e *Editor) Graph() *Graph { return e.parts.Graph }

// Parts are all parts being edited.
func (e *Editor) Parts() *Parts { return &e.parts }

// Find gives the value with a name, nil if there is none.
func (e *Editor) Find(name string) *Value {
	for _, v := range e.parts.Graph.Values {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// Name gives the next free name for a wish, and takes it.
func (e *Editor) Name(wish string) string { return e.names.Create(wish) }

// InsertBefore puts a call of an operator before a node, or at the end for nil. Arguments are positional, in the order of the
// operator's schema. The shape function describes the results, which all must be tensors.
func (e *Editor) InsertBefore(at *Node, op *aten.Op, args ...Argument) (*Node, error) {
	g := e.parts.Graph
	i := len(g.Nodes)
	if at != nil {
		if i = slices.Index(g.Nodes, at); i < 0 {
			return nil, &ArgumentError{"at", at.Name, "a node of the graph"}
		}
	}
	n := &Node{Target: "torch.ops." + op.Name(), Op: op, Metadata: map[string]string{}}
	params := op.Signature().Params
	if len(args) > len(params) {
		return nil, &ArgumentError{"args", fmt.Sprintf("%d arguments", len(args)), fmt.Sprintf("at most %d, %v", len(params), op.Signature())}
	}
	bound := make([]any, len(args))
	for j, a := range args {
		bound[j] = abstract(a)
		if d, err := op.Default(j); err == nil && params[j].HasDefault && d == nil && a == nil {
			continue
		}
		kind := Positional
		if params[j].KwOnly {
			kind = Keyword
		}
		n.Args = append(n.Args, NamedArg{Name: params[j].Name, Value: a, Kind: kind})
	}
	metas, err := resultsOf(op, bound)
	if err != nil {
		return nil, err
	}
	n.Name = e.names.Create(op.Signature().Base)
	for j, m := range metas {
		name := n.Name
		if len(metas) > 1 {
			name = e.names.Create(fmt.Sprintf("%s_%d", n.Name, j))
		}
		v := &Value{Name: name, Kind: TensorKind, Def: n, ID: len(g.Values), Tensor: &TensorMeta{DType: m.DType, Sizes: m.Sizes, Strides: m.Strides,
			Offset: m.Offset, Device: aten.Device{Type: "cpu", Index: -1}, Layout: aten.StridedLayout}}
		if first := firstTensor(args); first != nil {
			v.Tensor.Device, v.Tensor.RequiresGrad = first.Device, first.RequiresGrad
		}
		g.Values = append(g.Values, v)
		n.Outputs = append(n.Outputs, v)
	}
	g.Nodes = slices.Insert(g.Nodes, i, n)
	return n, nil
}

// abstract is an argument in the form that shape functions take.
func abstract(a Argument) any {
	switch a := a.(type) {
	case *Value:
		return valueOf(a)
	case []*Value:
		out := make([]*aten.Value, len(a))
		for i, v := range a {
			out[i] = valueOf(v)
		}
		return out
	}
	return a
}

func valueOf(v *Value) *aten.Value {
	if v == nil || v.Tensor == nil {
		return nil
	}
	m := v.Tensor
	return &aten.Value{Meta: aten.Meta{DType: m.DType, Sizes: m.Sizes, Strides: m.Strides, Offset: m.Offset}}
}

func firstTensor(args []Argument) *TensorMeta {
	for _, a := range args {
		var out *TensorMeta
		EachValue(a, func(v *Value) {
			if out == nil {
				out = v.Tensor
			}
		})
		if out != nil {
			return out
		}
	}
	return nil
}

// resultsOf asks the shape function of op.
func resultsOf(op *aten.Op, args []any) ([]*aten.Value, error) {
	var pos []any
	var kw []aten.KwArg
	for i, a := range args {
		if op.Signature().Params[i].KwOnly {
			kw = append(kw, aten.Kw(op.Signature().Params[i].Name, a))
		} else {
			pos = append(pos, a)
		}
	}
	bound, err := op.Bind(pos, kw)
	if err != nil {
		return nil, err
	}
	res, err := aten.NewBuild(aten.Fake{}, nil).Do(op, bound)
	if err != nil {
		return nil, err
	}
	var out []*aten.Value
	for _, r := range res {
		v, ok := r.(*aten.Value)
		if !ok || v == nil {
			return nil, &ArgumentError{"op", op.Name(), "an operator whose results are tensors, one each"}
		}
		out = append(out, v)
	}
	return out, nil
}

// ReplaceAllUses makes every user of old take new instead, the graph's outputs included; the signature and the module calls follow.
// Except gives nodes that go on taking old.
func (e *Editor) ReplaceAllUses(old, new *Value, except ...*Node) {
	swap := func(v *Value) Argument {
		if v == old {
			return new
		}
		return v
	}
	for _, n := range e.parts.Graph.Nodes {
		if slices.Contains(except, n) {
			continue
		}
		for i := range n.Args {
			n.Args[i].Value = MapValues(n.Args[i].Value, swap)
		}
	}
	hook := e.parts.Signature.ReplaceHook(false)
	for i, o := range e.parts.Graph.Outputs {
		used := false
		EachValue(o, func(v *Value) { used = used || v == old })
		if used {
			e.parts.Graph.Outputs[i] = MapValues(o, swap)
			hook(old, new.Name, nil)
		}
	}
	for _, c := range e.parts.ModuleCallGraph {
		if c.Signature != nil {
			c.Signature.ReplaceAllUses(old.Name, new.Name)
		}
	}
}

// Erase removes a node whose results nobody uses.
func (e *Editor) Erase(n *Node) error {
	g := e.parts.Graph
	i := slices.Index(g.Nodes, n)
	if i < 0 {
		return &ArgumentError{"n", n.Name, "a node of the graph"}
	}
	gone := map[*Value]bool{}
	for _, o := range n.Outputs {
		EachValue(o, func(v *Value) { gone[v] = true })
	}
	user := ""
	see := func(name string, a Argument) {
		EachValue(a, func(v *Value) {
			if gone[v] {
				user = name
			}
		})
	}
	for _, m := range g.Nodes {
		for _, a := range m.Args {
			see(m.Name, a.Value)
		}
	}
	for _, o := range g.Outputs {
		see("output", o)
	}
	if user != "" {
		return fmt.Errorf("export: tried to erase node %s but %s still uses it", n.Name, user)
	}
	g.Nodes = slices.Delete(g.Nodes, i, i+1)
	g.Values = slices.DeleteFunc(g.Values, func(v *Value) bool { return gone[v] })
	for id, v := range g.Values {
		v.ID = id
	}
	return nil
}

// Program makes and validates the edited program.
func (e *Editor) Program() (*Program, error) { return New(e.parts) }
