package passes

import (
	"maps"
	"slices"
	"strings"

	"github.com/pt2go/pt2/export"
)

// The functions that take containers apart and build them, in the graphs of unflattened modules.
const (
	TreeFlattenSpec = "torch.fx._pytree.tree_flatten_spec"
	TreeUnflatten   = "torch.utils._pytree.tree_unflatten"
	getItem         = "_operator.getitem"
)

// moduleGraph is a module's graph while it is made.
type moduleGraph struct {
	*export.Graph
	names *export.Namespace
	at    *export.Node // new nodes go before it; nil for the end
}

func newModuleGraph() *moduleGraph {
	return &moduleGraph{Graph: &export.Graph{}, names: export.NewNamespace()}
}

// graphOf is the graph of a module.
func (u *unflattener) graphOf(m *Submodule) *moduleGraph {
	g := u.graphs[m]
	if g == nil {
		g = newModuleGraph()
		u.graphs[m], m.Graph = g, g.Graph
	}
	return g
}

// insert puts a node in its place; its name and those of its results are made unique.
func (g *moduleGraph) insert(n *export.Node) {
	same := n.Name
	n.Name = g.names.Create(n.Name)
	for _, o := range n.Outputs {
		export.EachValue(o, func(v *export.Value) {
			if v.Name == same {
				v.Name = n.Name
			} else {
				v.Name = g.names.Create(v.Name)
			}
			v.Def = n
		})
	}
	i := len(g.Nodes)
	if g.at != nil {
		i = slices.Index(g.Nodes, g.at)
	}
	g.Nodes = slices.Insert(g.Nodes, i, n)
}

// before runs f with new nodes going before n.
func (g *moduleGraph) before(n *export.Node, f func() error) error {
	was := g.at
	g.at = n
	defer func() { g.at = was }()
	return f()
}

// input adds a placeholder at the end, or at the front.
func (g *moduleGraph) input(name string, like *export.Value, front bool) *export.Value {
	v := &export.Value{Kind: export.PytreeKind}
	if like != nil {
		*v = *like
	}
	v.Name, v.Def = g.names.Create(name), nil
	in := export.GraphInput{Name: name, Value: v}
	if front {
		g.Inputs = slices.Insert(g.Inputs, 0, in)
	} else {
		g.Inputs = append(g.Inputs, in)
	}
	return v
}

// call adds a call with one result.
func (g *moduleGraph) call(kind export.NodeKind, target, name string, like *export.Value, args ...export.Argument) *export.Value {
	v := &export.Value{Kind: export.PytreeKind}
	if like != nil {
		*v = *like
	}
	v.Name = name
	n := &export.Node{Kind: kind, Name: name, Target: target, Outputs: []export.Argument{v}, Metadata: map[string]string{}}
	for _, a := range args {
		n.Args = append(n.Args, export.NamedArg{Value: a, Kind: export.Positional})
	}
	if like != nil && like.Def != nil {
		n.Metadata = maps.Clone(like.Def.Metadata)
	}
	g.insert(n)
	return v
}

func (g *moduleGraph) item(of *export.Value, key export.Argument, like *export.Value) *export.Value {
	return g.call(export.CallFunction, getItem, "getitem", like, of, key)
}

// copyNode adds a copy of a node under a name, its arguments as remap gives them, and tells copied about each result.
func (g *moduleGraph) copyNode(n *export.Node, name string, remap func(*export.Value) (*export.Value, error), copied func(old, new *export.Value)) error {
	m := *n
	m.Name = name
	m.Args, m.Metadata = slices.Clone(n.Args), maps.Clone(n.Metadata)
	var fault error
	mapped := func(v *export.Value) export.Argument {
		w, err := remap(v)
		if err != nil && fault == nil {
			fault = err
		}
		return w
	}
	for i := range m.Args {
		m.Args[i].Value = export.MapValues(m.Args[i].Value, mapped)
	}
	if fault != nil {
		return fault
	}
	var pairs [][2]*export.Value
	m.Outputs = make([]export.Argument, len(n.Outputs))
	for i, o := range n.Outputs {
		m.Outputs[i] = export.MapValues(o, func(v *export.Value) export.Argument {
			w := *v
			if v.Name == n.Name {
				w.Name = name
			}
			pairs = append(pairs, [2]*export.Value{v, &w})
			return &w
		})
	}
	g.insert(&m)
	for _, p := range pairs {
		copied(p[0], p[1])
	}
	return nil
}

// replace makes all nodes and outputs take new instead of old.
func (g *moduleGraph) replace(old, new *export.Value) {
	swap := func(v *export.Value) export.Argument {
		if v == old {
			return new
		}
		return v
	}
	for _, n := range g.Nodes {
		for i := range n.Args {
			n.Args[i].Value = export.MapValues(n.Args[i].Value, swap)
		}
	}
	for i, o := range g.Outputs {
		g.Outputs[i] = export.MapValues(o, swap)
	}
}

// uses reports whether anything takes v.
func (g *moduleGraph) uses(v *export.Value) bool {
	used := false
	see := func(x *export.Value) { used = used || x == v }
	for _, n := range g.Nodes {
		for _, a := range n.Args {
			export.EachValue(a.Value, see)
		}
	}
	for _, o := range g.Outputs {
		export.EachValue(o, see)
	}
	return used
}

// number lists the values, inputs first, and numbers them.
func (g *moduleGraph) number() {
	g.Values = g.Values[:0]
	add := func(v *export.Value) {
		v.ID = len(g.Values)
		g.Values = append(g.Values, v)
	}
	for _, in := range g.Inputs {
		if in.Value != nil {
			add(in.Value)
		}
	}
	for _, n := range g.Nodes {
		for _, o := range n.Outputs {
			export.EachValue(o, add)
		}
	}
}

// addSpec keeps a TreeSpec as an attribute of a module and reads it.
func (u *unflattener) addSpec(m *Submodule, attr *Attr) *export.Value {
	i := 0
	for ; ; i++ {
		if _, taken := m.Attrs.Get("_spec_" + itoa(i)); !taken {
			break
		}
	}
	name := "_spec_" + itoa(i)
	m.Attrs.Set(name, attr)
	return u.graphOf(m).call(export.GetAttr, name, name, nil)
}

// moduleAt finds a submodule by its path; "" is m itself.
func (m *Submodule) moduleAt(path string) *Submodule {
	if path == "" {
		return m
	}
	for _, part := range strings.Split(path, ".") {
		c, ok := m.Children.Get(part)
		if !ok {
			return nil
		}
		m = c
	}
	return m
}
