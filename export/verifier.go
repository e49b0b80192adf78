package export

import (
	"fmt"
	"strings"
)

// Verifier checks that a program keeps the rules of a dialect. A dialect of your own is a Verifier of your own: its Check is
// independent of the dialects that a program names.
type Verifier struct {
	Dialect string
	// Mutation allows operators that write to their arguments.
	Mutation bool
	// CheckOp and CheckGraph, if set, see every call of a function and every graph, subgraphs included; an error breaks the rule.
	CheckOp    func(*Node) error
	CheckGraph func(*Graph) error
}

// The dialects that PyTorch itself writes.
var (
	// ATen is the dialect after run_decompositions: no operator writes to an argument.
	ATen = &Verifier{Dialect: "ATEN"}
	// Training is the dialect straight from export.
	Training = &Verifier{Dialect: "TRAINING", Mutation: true}
)

// VerifierByDialect finds a verifier; "" is ATEN.
func VerifierByDialect(dialect string) (*Verifier, error) {
	switch dialect {
	case "", ATen.Dialect:
		return ATen, nil
	case Training.Dialect:
		return Training, nil
	}
	return nil, &ArgumentError{"dialect", fmt.Sprintf("%q", dialect), "ATEN or TRAINING"}
}

// Check reports the first rule that p breaks as a *[SpecError].
func (v *Verifier) Check(p *Program) error {
	if err := p.checkStructure(); err != nil {
		return err
	}
	rules := *v
	if m := p.p.SchemaVersion.Major; m > 0 && m < 8 {
		rules.Mutation = true // dialects meant less then
	}
	if err := rules.checkCalls(p.p.Graph); err != nil {
		return err
	}
	for _, check := range []func(*Program) error{checkModuleCalls, checkInputs, checkOutputs} {
		if err := check(p); err != nil {
			return err
		}
	}
	return nil
}

// Validate checks p against each of its dialects. Of a dialect that this library does not know only the structure is checked.
func (p *Program) Validate() error {
	for _, d := range p.Verifiers() {
		v, err := VerifierByDialect(d)
		if err != nil {
			if err := p.checkStructure(); err != nil {
				return err
			}
			continue
		}
		if err := v.Check(p); err != nil {
			return err
		}
	}
	return nil
}

// plainFunctions are the targets outside torch.ops that a graph may call.
var plainFunctions = func() map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(`add sub mul truediv ge le gt lt eq ne floordiv mod and_ or_ not_ pow neg pos abs lshift rshift getitem
		xor invert contains is_ is_not index`) {
		m["_operator."+n] = true
	}
	for _, n := range strings.Fields(`math.ceil math.floor math.trunc builtins.round round builtins.max builtins.min torch.sym_int torch.sym_float torch.sym_ite
		torch.sym_max torch.sym_min torch.sym_not torch.sym_sqrt torch._sym_sqrt torch.sym_sum torch.sym_fresh_size
		torch.autograd.grad_mode.set_grad_enabled torch._C._set_grad_enabled torch.amp.autocast_mode._enter_autocast
		torch.amp.autocast_mode._exit_autocast torch.export.custom_ops._call_custom_autograd_function_in_pre_dispatch
		torch.fx.experimental.symbolic_shapes.cast_symbool_to_symint_guardless`) {
		m[n] = true
	}
	return m
}()

// isOperator reports a target that is an operator or one of the functions that may stand beside them.
func isOperator(n *Node) bool {
	return n.Op != nil || plainFunctions[n.Target] || strings.HasPrefix(n.Target, "torch.ops.") || strings.HasPrefix(n.Target, "torch._functorch.predispatch.") ||
		strings.HasPrefix(n.Target, "torch.sym_") || strings.HasPrefix(n.Target, "torch._sym_") || strings.HasPrefix(n.Target, "math.") ||
		strings.Contains(n.Target, ":") // a custom operator, as old archives write it
}

// checkCalls checks the targets and results of all nodes, subgraphs included.
func (v *Verifier) checkCalls(g *Graph) error {
	for _, in := range g.Inputs {
		if err := checkMeta(in.Value); err != nil {
			return err
		}
	}
	for _, n := range g.Nodes {
		if err := v.checkCall(n); err != nil {
			return err
		}
		for _, a := range n.Args {
			if s, ok := a.Value.(*Subgraph); ok {
				if err := v.checkCalls(s.Graph); err != nil {
					return err
				}
			}
		}
	}
	if v.CheckGraph != nil {
		if err := v.CheckGraph(g); err != nil {
			return &SpecError{"", fmt.Sprintf("dialect %s: %v", v.Dialect, err)}
		}
	}
	return nil
}

func (v *Verifier) checkCall(n *Node) error {
	if n.Kind != CallFunction {
		return &SpecError{n.Name, "calls of modules and their attributes belong to unflattened modules, not to programs"}
	}
	if !isOperator(n) {
		return &SpecError{n.Name, fmt.Sprintf("the target %q is no operator", n.Target)}
	}
	if !v.Mutation && n.Op != nil && n.Op.Mutates() {
		return &SpecError{n.Name, fmt.Sprintf("operator '%s' is not functional, and the dialect is %s", n.Op.Name(), v.Dialect)}
	}
	if v.CheckOp != nil {
		if err := v.CheckOp(n); err != nil {
			return &SpecError{n.Name, fmt.Sprintf("dialect %s: %v", v.Dialect, err)}
		}
	}
	var err error
	for _, o := range n.Outputs {
		EachValue(o, func(x *Value) {
			if e := checkMeta(x); e != nil && err == nil {
				err = e
			}
		})
	}
	return err
}

// checkMeta checks that a value says what it is.
func checkMeta(v *Value) error {
	switch {
	case v == nil:
		return nil
	case v.Kind == TensorKind && v.Tensor == nil:
		return &SpecError{v.Name, "it is a tensor without dtype and sizes (Node.meta is missing val field)"}
	case v.Kind > TokenKind:
		return &SpecError{v.Name, "a Python container is no value of a program"}
	}
	return nil
}

// checkModuleCalls checks that what enters and leaves recorded module calls exists.
func checkModuleCalls(p *Program) error {
	names := map[string]bool{}
	for _, v := range p.p.Graph.Values {
		names[v.Name] = true
	}
	for _, e := range p.p.ModuleCallGraph {
		if e.Signature == nil {
			continue
		}
		for _, list := range [][]Arg{e.Signature.Inputs, e.Signature.Outputs} {
			for _, a := range list {
				if _, constant := a.(ConstantArg); !constant && a.ArgName() != "" && !names[a.ArgName()] {
					return &SpecError{a.ArgName(), fmt.Sprintf("module call %q names it, but it is no value of the graph", e.FQN)}
				}
			}
		}
	}
	return nil
}

// checkInputs checks that each input spec fits its placeholder and finds its state.
func checkInputs(p *Program) error {
	for i := range p.p.Signature.Inputs {
		s, in := &p.p.Signature.Inputs[i], &p.p.Graph.Inputs[i]
		if err := s.Validate(); err != nil {
			return &SpecError{in.Name, err.Error()}
		}
		name := s.Arg.ArgName()
		if name != "" && name != in.Name {
			return &SpecError{in.Name, fmt.Sprintf("the signature calls input %d %q", i, name)}
		}
		_, inState := p.p.State.Get(s.Target)
		_, inConstants := p.p.Constants.Get(s.Target)
		ok := true
		switch s.Kind {
		case UserInput:
		case Parameter:
			if _, tensor := s.Arg.(TensorArg); !tensor {
				return &SpecError{in.Name, fmt.Sprintf("the spec of parameter %q holds no tensor", s.Target)}
			}
			ok = inState
		case Buffer:
			if inState && !*s.Persistent {
				return &SpecError{in.Name, fmt.Sprintf("the non-persistent buffer %q is in the state dict", s.Target)}
			}
			ok = inState || inConstants
		case ConstantTensor:
			ok = inConstants || inState // before PyTorch 2.3 among the weights
		case CustomObj:
			ok = inConstants
		case InputToken:
			if _, token := s.Arg.(TokenArg); !token {
				return &SpecError{in.Name, "the spec of a token holds no token"}
			}
		default:
			return &SpecError{in.Name, fmt.Sprintf("unknown kind %v", s.Kind)}
		}
		if !ok {
			return &SpecError{in.Name, fmt.Sprintf("%v %q is not among the weights and constants", s.Kind, s.Target)}
		}
	}
	return nil
}

// checkOutputs checks the order of outputs (tokens, mutations, the user's) and what mutations refer to.
func checkOutputs(p *Program) error {
	inputs := map[string]bool{}
	for _, s := range p.p.Signature.Inputs {
		switch s.Kind {
		case Buffer, Parameter:
			inputs[s.Kind.String()+s.Target] = true
		case UserInput:
			inputs[s.Kind.String()+s.Arg.ArgName()] = true
		}
	}
	stage := 0
	for i := range p.p.Signature.Outputs {
		s := &p.p.Signature.Outputs[i]
		at, of := 2, InputKind(0)
		switch s.Kind {
		case OutputToken:
			at = 0
		case BufferMutation:
			at, of = 1, Buffer
		case ParameterMutation:
			at, of = 1, Parameter
		case UserInputMutation:
			at, of = 1, UserInput
		}
		if at < stage {
			return &SpecError{s.Arg.ArgName(), fmt.Sprintf("output %d, a %v, stands behind the user's outputs or a mutation", i, s.Kind)}
		}
		stage = at
		if of != 0 && !inputs[of.String()+s.Target] {
			return &SpecError{s.Arg.ArgName(), fmt.Sprintf("a %v of %q, which is no input of that kind", s.Kind, s.Target)}
		}
	}
	return nil
}
