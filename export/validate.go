package export

import "fmt"

// ModuleCallSignature is the calling convention of a submodule; the specs are TreeSpec texts (protocol 1 JSON).
type ModuleCallSignature struct {
	Inputs, Outputs []Arg
	InSpec, OutSpec string
	ForwardArgNames []string
}

// ModuleCallEntry is one submodule call whose convention is recorded; the program itself has FQN "".
type ModuleCallEntry struct {
	FQN       string
	Signature *ModuleCallSignature
}

// CallSpec gives the TreeSpec texts of the program's inputs and outputs, "" if the archive has none.
func (p *Program) CallSpec() (in, out string) {
	if len(p.p.ModuleCallGraph) == 0 || p.p.ModuleCallGraph[0].Signature == nil {
		return "", ""
	}
	s := p.p.ModuleCallGraph[0].Signature
	return s.InSpec, s.OutSpec
}

// SpecError is a rule of the program model that a program breaks.
type SpecError struct {
	Node string
	Rule string
}

// Error names the node and the rule.
func (e *SpecError) Error() string {
	if e.Node == "" {
		return "export: invalid program: " + e.Rule
	}
	return fmt.Sprintf("export: invalid program: %s: %s", e.Node, e.Rule)
}

// checkStructure checks what every program must keep: values are defined before they are used, names are unique, the signature
// matches the graph, and state that it names is there.
func (p *Program) checkStructure() error {
	g, sig := p.p.Graph, p.p.Signature
	if len(sig.Inputs) != len(g.Inputs) {
		return &SpecError{"", fmt.Sprintf("the signature has %d inputs, the graph %d", len(sig.Inputs), len(g.Inputs))}
	}
	if len(sig.Outputs) != len(g.Outputs) {
		return &SpecError{"", fmt.Sprintf("the signature has %d outputs, the graph %d", len(sig.Outputs), len(g.Outputs))}
	}
	for i := range sig.Inputs {
		s := &sig.Inputs[i]
		switch s.Kind {
		case Parameter, Buffer, ConstantTensor:
			if _, err := p.InputTensor(s); err != nil {
				return &SpecError{s.Arg.ArgName(), fmt.Sprintf("%v %q is not among the weights and constants", s.Kind, s.Target)}
			}
		}
	}
	return g.validate(0)
}

// Lint checks a graph by itself: values are defined before they are used, and names are unique. What is wrong is a *[SpecError].
func (g *Graph) Lint() error { return g.validate(0) }

// maxNesting bounds subgraphs within subgraphs.
const maxNesting = 100

func (g *Graph) validate(depth int) error {
	if depth > maxNesting {
		return &SpecError{"", fmt.Sprintf("subgraphs are nested more than %d deep", maxNesting)}
	}
	defined := make([]bool, len(g.Values))
	for _, in := range g.Inputs {
		if in.Value != nil {
			if defined[in.Value.ID] {
				return &SpecError{in.Name, "two inputs have this name"}
			}
			defined[in.Value.ID] = true
		}
	}
	names := map[string]bool{}
	for _, n := range g.Nodes {
		if n.Name != "" && names[n.Name] {
			return &SpecError{n.Name, "two nodes have this name"}
		}
		names[n.Name] = true
		var err error
		for _, a := range n.Args {
			EachValue(a.Value, func(v *Value) {
				if !defined[v.ID] {
					err = &SpecError{n.Name, fmt.Sprintf("uses %s before it is defined", v.Name)}
				}
			})
			if sub, ok := a.Value.(*Subgraph); ok && err == nil {
				err = sub.Graph.validate(depth + 1)
			}
		}
		if err != nil {
			return err
		}
		for _, o := range n.Outputs {
			EachValue(o, func(v *Value) {
				if defined[v.ID] {
					err = &SpecError{n.Name, fmt.Sprintf("defines %s a second time", v.Name)}
				}
				defined[v.ID] = true
			})
		}
		if err != nil {
			return err
		}
	}
	for _, o := range g.Outputs {
		var err error
		EachValue(o, func(v *Value) {
			if !defined[v.ID] {
				err = &SpecError{"output", fmt.Sprintf("returns %s, which nothing defines", v.Name)}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
