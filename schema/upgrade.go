package schema

import "slices"

// upgrade brings a program of an older version into the current form; what the decoder accepts in two forms is done already.
func upgrade(p *ExportedProgram) {
	if p.Version.Major == 1 {
		upgradeSignature(p)
	}
	if len(p.GraphModule.ModuleCalls) == 0 && p.GraphModule.CallSpec != nil {
		p.GraphModule.ModuleCalls = []ModuleCallEntry{{Signature: &ModuleCallSignature{
			InSpec: p.GraphModule.CallSpec.InSpec, OutSpec: p.GraphModule.CallSpec.OutSpec}}}
	}
	if len(p.Verifiers) == 0 && p.Dialect != "" {
		p.Verifiers = []string{p.Dialect}
	}
}

// upgradeSignature builds the specs of PyTorch 2.2 from the maps of 2.1.
func upgradeSignature(p *ExportedProgram) {
	s := &p.GraphModule.Signature
	g := &p.GraphModule.Graph
	for _, in := range g.Inputs {
		var spec InputSpec
		name := ""
		if in.Tensor != nil {
			name = in.Tensor.Name
		}
		if target, ok := s.OldParameters[name]; ok {
			spec.Parameter = &struct {
				Arg  TensorArgument `json:"arg"`
				Name string         `json:"parameter_name"`
			}{TensorArgument{name}, target}
		} else if target, ok := s.OldBuffers[name]; ok {
			persistent := true
			spec.Buffer = &struct {
				Arg        TensorArgument `json:"arg"`
				Name       string         `json:"buffer_name"`
				Persistent *bool          `json:"persistent"`
			}{TensorArgument{name}, target, &persistent}
		} else {
			spec.UserInput = &struct {
				Arg Argument `json:"arg"`
			}{in}
		}
		s.Inputs = append(s.Inputs, spec)
	}
	for _, out := range g.Outputs {
		var spec OutputSpec
		name := ""
		if out.Tensor != nil {
			name = out.Tensor.Name
		}
		if target, ok := s.OldMutations[name]; ok {
			spec.Buffer = &struct {
				Arg  TensorArgument `json:"arg"`
				Name string         `json:"buffer_name"`
			}{TensorArgument{name}, target}
		} else {
			spec.UserOutput = &struct {
				Arg Argument `json:"arg"`
			}{out}
		}
		s.Outputs = append(s.Outputs, spec)
	}
	upgradeConstants(g, s)
}

// upgradeConstants makes inputs of the constants that 2.1 kept beside the graph.
func upgradeConstants(g *Graph, s *Signature) {
	var inputs []Argument
	var specs []InputSpec
	for _, name := range slices.Sorted(slices.Values(g.Constants.Keys)) {
		inputs = append(inputs, Argument{Tensor: &TensorArgument{name}})
		specs = append(specs, InputSpec{TensorConstant: &struct {
			Arg  TensorArgument `json:"arg"`
			Name string         `json:"tensor_constant_name"`
		}{TensorArgument{name}, name}})
	}
	g.Inputs = append(inputs, g.Inputs...)
	s.Inputs = append(specs, s.Inputs...)
}
