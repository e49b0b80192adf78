package export

import (
	"fmt"
	"strings"
)

// Equivalent reports that two graphs compute the same: the same calls in the same order, whatever the values are called. Calls of
// submodules count as equal if they take the same.
func (g *Graph) Equivalent(h *Graph) bool { return g.dump() == h.dump() }

// dump is the text of a graph in which values are numbered in order of appearance.
func (g *Graph) dump() string {
	c := g.Clone()
	names := 0
	rename := func(v *Value) {
		v.Name = fmt.Sprintf("v%d", names)
		names++
	}
	for i := range c.Inputs {
		c.Inputs[i].Name = fmt.Sprintf("in%d", i)
		if v := c.Inputs[i].Value; v != nil {
			rename(v)
			c.Inputs[i].Name = v.Name
		}
	}
	for i, n := range c.Nodes {
		n.Name = fmt.Sprintf("n%d", i)
		for _, o := range n.Outputs {
			EachValue(o, rename)
		}
		if n.Kind == CallModule {
			n.Target = "submodule"
		}
	}
	var b strings.Builder
	b.WriteString(c.String())
	for _, n := range c.Nodes {
		for _, a := range n.Args {
			if s, ok := a.Value.(*Subgraph); ok {
				b.WriteString(s.Graph.dump())
			}
		}
	}
	return b.String()
}
