package export

import "github.com/pt2go/pt2/pytree"

// WithoutExampleInputs is p without its recorded call. Its module() in PyTorch then checks no guards.
func (p *Program) WithoutExampleInputs() *Program {
	parts := p.p
	parts.ExampleInputs, parts.ExampleRecord = nil, nil
	return &Program{parts}
}

// WithoutMetadata is p without what is recorded of each node (stack traces, module stacks, provenance) and of the graph. It can be
// run and printed, but not unflattened.
func (p *Program) WithoutMetadata() *Program {
	parts := p.p
	parts.Metadata = nil
	parts.Graph = parts.Graph.Clone()
	parts.Graph.eachNode(func(n *Node) { n.Metadata = nil })
	return &Program{parts}
}

// eachNode calls f for every node, those of subgraphs included.
func (g *Graph) eachNode(f func(*Node)) {
	for _, n := range g.Nodes {
		f(n)
		for _, a := range n.Args {
			eachSubgraph(a.Value, func(s *Subgraph) { s.Graph.eachNode(f) })
		}
	}
}

// eachSubgraph calls f for the graphs that an argument holds.
func eachSubgraph(arg Argument, f func(*Subgraph)) {
	switch a := arg.(type) {
	case *Subgraph:
		f(a)
	case *Dict:
		for _, x := range a.Values {
			eachSubgraph(x, f)
		}
	}
}

// WithExampleInputs is p with another recorded call. Its structure must be that of the program's inputs.
func (p *Program) WithExampleInputs(ex *Example) (*Program, error) {
	if ex == nil {
		return p.WithoutExampleInputs(), nil
	}
	in, _ := p.CallSpec()
	if in != "" {
		want, err := pytree.Parse(in, p.p.NamedTuples)
		if err != nil {
			return nil, err
		}
		kwargs := make(pytree.Dict, len(ex.Kwargs))
		for i, kw := range ex.Kwargs {
			kwargs[i] = pytree.Entry{Key: kw.Name, Value: kw.Value}
		}
		if _, err := want.Flatten(pytree.Tuple{pytree.Tuple(ex.Args), kwargs}); err != nil {
			return nil, err
		}
	}
	parts := p.p
	parts.ExampleInputs, parts.ExampleRecord = ex, nil
	return &Program{parts}, nil
}
