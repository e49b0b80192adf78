package export

import (
	"maps"
	"slices"
)

// Clone copies a graph: nodes, values and subgraphs are new, metadata of tensors and expressions are shared.
func (g *Graph) Clone() *Graph {
	c := cloner{values: make(map[*Value]*Value, len(g.Values)), nodes: make(map[*Node]*Node, len(g.Nodes))}
	out := &Graph{SingleReturn: g.SingleReturn, Values: make([]*Value, len(g.Values))}
	for i, v := range g.Values {
		w := *v
		out.Values[i] = &w
		c.values[v] = &w
	}
	for _, in := range g.Inputs {
		if in.Value != nil {
			in.Value = c.values[in.Value]
		}
		out.Inputs = append(out.Inputs, in)
	}
	out.Nodes = make([]*Node, len(g.Nodes))
	for i, n := range g.Nodes {
		m := *n
		m.Args = slices.Clone(n.Args)
		for j := range m.Args {
			m.Args[j].Value = c.argument(m.Args[j].Value)
		}
		m.Outputs = c.arguments(n.Outputs)
		m.Metadata = maps.Clone(n.Metadata)
		out.Nodes[i] = &m
		c.nodes[n] = &m
	}
	for _, v := range out.Values {
		v.Def = c.nodes[v.Def]
	}
	out.Outputs = c.arguments(g.Outputs)
	return out
}

type cloner struct {
	values map[*Value]*Value
	nodes  map[*Node]*Node
}

func (c *cloner) arguments(list []Argument) []Argument {
	out := make([]Argument, len(list))
	for i, a := range list {
		out[i] = c.argument(a)
	}
	return out
}

func (c *cloner) argument(arg Argument) Argument {
	if s, ok := arg.(*Subgraph); ok {
		return &Subgraph{Name: s.Name, Graph: s.Graph.Clone()}
	}
	if d, ok := arg.(*Dict); ok {
		return &Dict{Keys: slices.Clone(d.Keys), Values: c.arguments(d.Values)}
	}
	return MapValues(arg, func(v *Value) Argument { return c.values[v] })
}

// MapValues gives arg with each value that it uses replaced by what f gives for it: another value, or, where the place allows one, a
// number. Subgraphs stay as they are.
func MapValues(arg Argument, f func(*Value) Argument) Argument {
	switch a := arg.(type) {
	case *Value:
		if a == nil {
			return arg
		}
		return f(a)
	case []*Value:
		out := make([]*Value, len(a))
		for i, v := range a {
			if v != nil {
				out[i], _ = f(v).(*Value)
			}
		}
		return out
	case [][]*Value:
		out := make([][]*Value, len(a))
		for i := range a {
			out[i], _ = MapValues(a[i], f).([]*Value)
		}
		return out
	case []any:
		out := make([]any, len(a))
		for i := range a {
			out[i] = MapValues(a[i], f)
		}
		return out
	case Tuple:
		return Tuple(MapValues([]any(a), f).([]any))
	case *Dict:
		out := &Dict{Keys: a.Keys, Values: make([]Argument, len(a.Values))}
		for i := range a.Values {
			out.Values[i] = MapValues(a.Values[i], f)
		}
		return out
	}
	return arg
}
