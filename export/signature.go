package export

import (
	"fmt"
	"strconv"
	"strings"
)

// InputKind tells what a graph input is; the numbers are PyTorch's.
type InputKind uint8

// The kinds of graph inputs.
const (
	UserInput InputKind = iota + 1
	Parameter
	Buffer
	ConstantTensor
	CustomObj
	InputToken
)

// String gives PyTorch's name, such as "USER_INPUT".
func (k InputKind) String() string {
	names := [...]string{"", "USER_INPUT", "PARAMETER", "BUFFER", "CONSTANT_TENSOR", "CUSTOM_OBJ", "TOKEN"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("InputKind(%d)", uint8(k))
}

// OutputKind tells what a graph output is; the numbers are PyTorch's.
type OutputKind uint8

// The kinds of graph outputs.
const (
	UserOutput OutputKind = iota + 1
	LossOutput
	BufferMutation
	ParameterMutation
	GradientToParameter
	GradientToUserInput
	UserInputMutation
	OutputToken
)

// String gives PyTorch's name, such as "USER_OUTPUT".
func (k OutputKind) String() string {
	names := [...]string{"", "USER_OUTPUT", "LOSS_OUTPUT", "BUFFER_MUTATION", "PARAMETER_MUTATION", "GRADIENT_TO_PARAMETER", "GRADIENT_TO_USER_INPUT", "USER_INPUT_MUTATION", "TOKEN"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("OutputKind(%d)", uint8(k))
}

// Arg is the argument of a spec: [TensorArg], [SymIntArg], [SymFloatArg], [SymBoolArg], [ConstantArg], [CustomObjArg] or
// [TokenArg].
type Arg interface {
	// ArgName is the name of the graph value, for constants of the input or "".
	ArgName() string
	withName(name string) Arg
}

// TensorArg is a tensor value of the graph.
type TensorArg struct{ Name string }

// SymIntArg is a symbolic int of the graph.
type SymIntArg struct{ Name string }

// SymFloatArg is a symbolic float of the graph.
type SymFloatArg struct{ Name string }

// SymBoolArg is a symbolic bool of the graph.
type SymBoolArg struct{ Name string }

// TokenArg is an ordering token.
type TokenArg struct{ Name string }

// ConstantArg is a number, bool, string or None; Name is "" unless it is an input with a name.
type ConstantArg struct {
	Name  string
	Value any // int64, float64, bool, string or nil
}

// CustomObjArg is a custom object.
type CustomObjArg struct{ Name, ClassFQN string }

// ArgName implements [Arg].
func (a TensorArg) ArgName() string { return a.Name }

// ArgName implements [Arg].
func (a SymIntArg) ArgName() string { return a.Name }

// ArgName implements [Arg].
func (a SymFloatArg) ArgName() string { return a.Name }

// ArgName implements [Arg].
func (a SymBoolArg) ArgName() string { return a.Name }

// ArgName implements [Arg].
func (a TokenArg) ArgName() string { return a.Name }

// ArgName implements [Arg].
func (a ConstantArg) ArgName() string { return a.Name }

// ArgName implements [Arg].
func (a CustomObjArg) ArgName() string { return a.Name }

func (a TensorArg) withName(n string) Arg    { return TensorArg{n} }
func (a SymIntArg) withName(n string) Arg    { return SymIntArg{n} }
func (a SymFloatArg) withName(n string) Arg  { return SymFloatArg{n} }
func (a SymBoolArg) withName(n string) Arg   { return SymBoolArg{n} }
func (a TokenArg) withName(n string) Arg     { return TokenArg{n} }
func (a ConstantArg) withName(n string) Arg  { return ConstantArg{n, a.Value} }
func (a CustomObjArg) withName(n string) Arg { return CustomObjArg{n, a.ClassFQN} }

// InputSpec says what one graph input is and, for state, which name it has there.
type InputSpec struct {
	Kind   InputKind
	Arg    Arg
	Target string // fqn of the parameter, buffer, constant or custom object; "" otherwise
	// Persistent is set for buffers: whether the buffer is part of the state dict.
	Persistent *bool
}

// String is PyTorch's text, such as "p_w: PARAMETER target='w'".
func (s InputSpec) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v", s.Arg.ArgName(), s.Kind)
	if s.Target != "" {
		fmt.Fprintf(&b, " target='%s'", s.Target)
	}
	if s.Persistent != nil {
		fmt.Fprintf(&b, " persistent=%s", pyBool(*s.Persistent))
	}
	return b.String()
}

func pyBool(v bool) string {
	if v {
		return "True"
	}
	return "False"
}

// OutputSpec says what one graph output is; Target is the buffer, parameter or input that it updates.
type OutputSpec struct {
	Kind   OutputKind
	Arg    Arg
	Target string
}

// String is PyTorch's text, such as "add: USER_OUTPUT".
func (s OutputSpec) String() string {
	if s.Target == "" {
		return fmt.Sprintf("%s: %v", s.Arg.ArgName(), s.Kind)
	}
	return fmt.Sprintf("%s: %v target='%s'", s.Arg.ArgName(), s.Kind, s.Target)
}

// GraphSignature describes the inputs and outputs of a program's graph, in graph order.
type GraphSignature struct {
	Inputs  []InputSpec
	Outputs []OutputSpec
}

// String is PyTorch's text of an ExportGraphSignature.
func (s *GraphSignature) String() string {
	ins, outs := make([]string, len(s.Inputs)), make([]string, len(s.Outputs))
	for i, x := range s.Inputs {
		ins[i] = x.String()
	}
	for i, x := range s.Outputs {
		outs[i] = x.String()
	}
	return "\n# inputs\n" + strings.Join(ins, "\n") + "\n\n# outputs\n" + strings.Join(outs, "\n") + "\n"
}

func (s *GraphSignature) targets(k InputKind) []string {
	var out []string
	for _, x := range s.Inputs {
		if x.Kind == k {
			out = append(out, x.Target)
		}
	}
	return out
}

func (s *GraphSignature) inputMap(k InputKind) map[string]string {
	out := map[string]string{}
	for _, x := range s.Inputs {
		if x.Kind == k {
			out[x.Arg.ArgName()] = x.Target
		}
	}
	return out
}

func (s *GraphSignature) outputMap(k OutputKind) map[string]string {
	out := map[string]string{}
	for _, x := range s.Outputs {
		if x.Kind == k {
			out[x.Arg.ArgName()] = x.Target
		}
	}
	return out
}

// Parameters lists the parameters' names in input order, duplicates kept.
func (s *GraphSignature) Parameters() []string { return s.targets(Parameter) }

// Buffers lists the buffers' names in input order, persistent or not.
func (s *GraphSignature) Buffers() []string { return s.targets(Buffer) }

// NonPersistentBuffers lists the buffers that are no part of the state dict.
func (s *GraphSignature) NonPersistentBuffers() []string {
	var out []string
	for _, x := range s.Inputs {
		if x.Kind == Buffer && x.Persistent != nil && !*x.Persistent {
			out = append(out, x.Target)
		}
	}
	return out
}

// LiftedTensorConstants lists the tensor constants' names.
func (s *GraphSignature) LiftedTensorConstants() []string { return s.targets(ConstantTensor) }

// LiftedCustomObjs lists the custom objects' names.
func (s *GraphSignature) LiftedCustomObjs() []string { return s.targets(CustomObj) }

// UserInputs lists the user's inputs: a string for a named value, the [ConstantArg] for a constant.
func (s *GraphSignature) UserInputs() []any {
	var out []any
	for _, x := range s.Inputs {
		if x.Kind == UserInput {
			out = append(out, nameOrConstant(x.Arg))
		}
	}
	return out
}

// UserOutputs lists the user's outputs, losses included, in the form of [GraphSignature.UserInputs].
func (s *GraphSignature) UserOutputs() []any {
	var out []any
	for _, x := range s.Outputs {
		if x.Kind == UserOutput || x.Kind == LossOutput {
			out = append(out, nameOrConstant(x.Arg))
		}
	}
	return out
}

func nameOrConstant(a Arg) any {
	if c, ok := a.(ConstantArg); ok {
		return c
	}
	return a.ArgName()
}

// InputsToParameters maps input names to parameter names.
func (s *GraphSignature) InputsToParameters() map[string]string { return s.inputMap(Parameter) }

// InputsToBuffers maps input names to buffer names.
func (s *GraphSignature) InputsToBuffers() map[string]string { return s.inputMap(Buffer) }

// InputsToLiftedTensorConstants maps input names to constant names.
func (s *GraphSignature) InputsToLiftedTensorConstants() map[string]string {
	return s.inputMap(ConstantTensor)
}

// InputsToLiftedCustomObjs maps input names to custom object names.
func (s *GraphSignature) InputsToLiftedCustomObjs() map[string]string { return s.inputMap(CustomObj) }

// BuffersToMutate maps output names to the buffers they update.
func (s *GraphSignature) BuffersToMutate() map[string]string { return s.outputMap(BufferMutation) }

// ParametersToMutate maps output names to the parameters they update.
func (s *GraphSignature) ParametersToMutate() map[string]string {
	return s.outputMap(ParameterMutation)
}

// UserInputsToMutate maps output names to the inputs they update.
func (s *GraphSignature) UserInputsToMutate() map[string]string {
	return s.outputMap(UserInputMutation)
}

// InputTokens lists the names of ordering tokens among the inputs.
func (s *GraphSignature) InputTokens() []string {
	var out []string
	for _, x := range s.Inputs {
		if x.Kind == InputToken {
			out = append(out, x.Arg.ArgName())
		}
	}
	return out
}

// OutputTokens lists the names of ordering tokens among the outputs.
func (s *GraphSignature) OutputTokens() []string {
	var out []string
	for _, x := range s.Outputs {
		if x.Kind == OutputToken {
			out = append(out, x.Arg.ArgName())
		}
	}
	return out
}

// AssertionDepToken is nil: PyTorch 2.15 keeps the name for old callers and never sets it.
func (s *GraphSignature) AssertionDepToken() map[int]string { return nil }

// BackwardSignature describes the gradients of a joint program.
type BackwardSignature struct {
	GradientsToParameters map[string]string
	GradientsToUserInputs map[string]string
	LossOutput            string
}

// BackwardSignature is nil unless the program has a loss output; two losses are an error.
func (s *GraphSignature) BackwardSignature() (*BackwardSignature, error) {
	var loss []string
	for _, x := range s.Outputs {
		if x.Kind == LossOutput {
			loss = append(loss, x.Arg.ArgName())
		}
	}
	switch len(loss) {
	case 0:
		return nil, nil
	case 1:
		return &BackwardSignature{s.outputMap(GradientToParameter), s.outputMap(GradientToUserInput), loss[0]}, nil
	}
	return nil, fmt.Errorf("export: the signature has %d loss outputs (%s), want one", len(loss), strings.Join(loss, ", "))
}

// ReplaceAllUses renames a graph value in all specs; constants are left alone.
func (s *GraphSignature) ReplaceAllUses(old, new string) {
	for i := range s.Outputs {
		s.Outputs[i].Arg = renamed(s.Outputs[i].Arg, old, new)
	}
	for i := range s.Inputs {
		s.Inputs[i].Arg = renamed(s.Inputs[i].Arg, old, new)
	}
}

// formatRange prints a bound of a range constraint.
func formatBound(v *int64, inf string) string {
	if v == nil {
		return inf
	}
	return strconv.FormatInt(*v, 10)
}

// ReplaceHook gives a function for whoever edits the graph: told that user (nil: the graph's output) now takes the value named
// new instead of old, it keeps the specs right. Specs of inputs follow only with replaceInputs.
func (s *GraphSignature) ReplaceHook(replaceInputs bool) func(old *Value, new string, user *Node) {
	return func(old *Value, new string, user *Node) {
		if user == nil {
			for i := range s.Outputs {
				s.Outputs[i].Arg = renamed(s.Outputs[i].Arg, old.Name, new)
			}
		}
		if replaceInputs && old.Def == nil {
			for i := range s.Inputs {
				s.Inputs[i].Arg = renamed(s.Inputs[i].Arg, old.Name, new)
			}
		}
	}
}

// renamed is a with another name if its name is old; constants stay.
func renamed(a Arg, old, new string) Arg {
	if _, ok := a.(ConstantArg); ok || a.ArgName() != old {
		return a
	}
	return a.withName(new)
}

// Validate checks what PyTorch's InputSpec asserts: there is an argument, and a buffer says whether it is persistent.
func (s InputSpec) Validate() error {
	if s.Arg == nil {
		return &ArgumentError{"InputSpec.Arg", "nil", "an argument"}
	}
	if s.Kind == Buffer && s.Persistent == nil {
		return &ArgumentError{"InputSpec.Persistent of buffer " + s.Target, "nil", "true or false"}
	}
	return nil
}

// ReplaceAllUses renames a graph value among the inputs and outputs; constants are left alone.
func (s *ModuleCallSignature) ReplaceAllUses(old, new string) {
	for i := range s.Inputs {
		s.Inputs[i] = renamed(s.Inputs[i], old, new)
	}
	for i := range s.Outputs {
		s.Outputs[i] = renamed(s.Outputs[i], old, new)
	}
}
