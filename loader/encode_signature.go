package loader

import (
	"fmt"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/schema"
)

// encodeArg is the serialized form of a spec's argument.
func encodeArg(a export.Arg) (schema.Argument, error) {
	switch a := a.(type) {
	case export.TensorArg:
		return schema.Argument{Tag: schema.AsTensor, Value: schema.TensorArgument{Name: a.Name}}, nil
	case export.TokenArg:
		return schema.Argument{Tag: schema.AsTensor, Value: schema.TensorArgument{Name: a.Name}}, nil
	case export.SymIntArg:
		return schema.Argument{Tag: schema.AsSymInt, Value: schema.SymIntArgument{Name: a.Name}}, nil
	case export.SymFloatArg:
		return schema.Argument{Tag: schema.AsSymFloat, Value: schema.SymFloatArgument{Name: a.Name}}, nil
	case export.SymBoolArg:
		return schema.Argument{Tag: schema.AsSymBool, Value: schema.SymBoolArgument{Name: a.Name}}, nil
	case export.CustomObjArg:
		return schema.Argument{Tag: schema.AsCustomObj, Value: schema.CustomObjArgument{Name: a.Name, ClassFQN: a.ClassFQN}}, nil
	case export.ConstantArg:
		return encodeArgument(a.Value)
	}
	return schema.Argument{}, fmt.Errorf("loader: a spec's argument of type %T cannot be written", a)
}

func encodeArgs(list []export.Arg) ([]schema.Argument, error) {
	out := make([]schema.Argument, len(list))
	for i := range list {
		a, err := encodeArg(list[i])
		if err != nil {
			return nil, err
		}
		out[i] = a
	}
	return out, nil
}

func encodeSignature(s *export.GraphSignature) (out schema.GraphSignature, err error) {
	for i := range s.Inputs {
		spec, err := encodeInput(&s.Inputs[i])
		if err != nil {
			return out, err
		}
		out.InputSpecs = append(out.InputSpecs, schema.InputSpec{Value: spec})
	}
	for i := range s.Outputs {
		spec, err := encodeOutput(&s.Outputs[i])
		if err != nil {
			return out, err
		}
		out.OutputSpecs = append(out.OutputSpecs, schema.OutputSpec{Value: spec})
	}
	return out, nil
}

func encodeInput(s *export.InputSpec) (any, error) {
	arg := schema.TensorArgument{Name: s.Arg.ArgName()}
	switch s.Kind {
	case export.UserInput:
		if c, ok := s.Arg.(export.ConstantArg); ok {
			return &schema.InputToConstantInputSpec{Name: c.Name, Value: schema.ConstantValue{Value: c.Value}}, nil
		}
		a, err := encodeArg(s.Arg)
		return &schema.UserInputSpec{Arg: a}, err
	case export.Parameter:
		return &schema.InputToParameterSpec{Arg: arg, ParameterName: s.Target}, nil
	case export.Buffer:
		return &schema.InputToBufferSpec{Arg: arg, BufferName: s.Target, Persistent: s.Persistent == nil || *s.Persistent}, nil
	case export.ConstantTensor:
		return &schema.InputToTensorConstantSpec{Arg: arg, TensorConstantName: s.Target}, nil
	case export.CustomObj:
		c, _ := s.Arg.(export.CustomObjArg)
		return &schema.InputToCustomObjSpec{Arg: schema.CustomObjArgument{Name: c.Name, ClassFQN: c.ClassFQN}, CustomObjName: s.Target}, nil
	case export.InputToken:
		return &schema.InputTokenSpec{Arg: schema.TokenArgument{Name: arg.Name}}, nil
	}
	return nil, fmt.Errorf("loader: input %s: the kind %v cannot be written", arg.Name, s.Kind)
}

func encodeOutput(s *export.OutputSpec) (any, error) {
	arg := schema.TensorArgument{Name: s.Arg.ArgName()}
	switch s.Kind {
	case export.UserOutput:
		a, err := encodeArg(s.Arg)
		return &schema.UserOutputSpec{Arg: a}, err
	case export.LossOutput:
		return &schema.LossOutputSpec{Arg: arg}, nil
	case export.BufferMutation:
		return &schema.BufferMutationSpec{Arg: arg, BufferName: s.Target}, nil
	case export.ParameterMutation:
		return &schema.ParameterMutationSpec{Arg: arg, ParameterName: s.Target}, nil
	case export.GradientToParameter:
		return &schema.GradientToParameterSpec{Arg: arg, ParameterName: s.Target}, nil
	case export.GradientToUserInput:
		return &schema.GradientToUserInputSpec{Arg: arg, UserInputName: s.Target}, nil
	case export.UserInputMutation:
		return &schema.UserInputMutationSpec{Arg: arg, UserInputName: s.Target}, nil
	case export.OutputToken:
		return &schema.OutputTokenSpec{Arg: schema.TokenArgument{Name: arg.Name}}, nil
	}
	return nil, fmt.Errorf("loader: output %s: the kind %v cannot be written", arg.Name, s.Kind)
}
