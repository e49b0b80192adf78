package loader

import (
	"fmt"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/schema"
)

// argOf converts the argument of a spec; constants keep the name given.
func argOf(a *schema.Argument, name string) (export.Arg, error) {
	switch {
	case a.Tensor != nil:
		return export.TensorArg{Name: a.Tensor.Name}, nil
	case a.SymInt != nil && a.SymInt.Name != nil:
		return export.SymIntArg{Name: *a.SymInt.Name}, nil
	case a.SymFloat != nil && a.SymFloat.Name != nil:
		return export.SymFloatArg{Name: *a.SymFloat.Name}, nil
	case a.SymBool != nil && a.SymBool.Name != nil:
		return export.SymBoolArg{Name: *a.SymBool.Name}, nil
	case a.CustomObj != nil:
		return export.CustomObjArg{Name: a.CustomObj.Name, ClassFQN: a.CustomObj.Class}, nil
	case a.Tensors != nil || a.Graph != nil:
		return nil, fmt.Errorf("a list or graph cannot be an input or output")
	}
	s := &scope{where: "signature"}
	v, err := s.argument(a)
	return export.ConstantArg{Name: name, Value: v}, err
}

func convertSignature(src *schema.Signature) (*export.GraphSignature, error) {
	out := &export.GraphSignature{}
	for i := range src.Inputs {
		s, err := inputSpec(&src.Inputs[i])
		if err != nil {
			return nil, &ProgramError{fmt.Sprintf("signature.input_specs[%d]", i), err.Error()}
		}
		out.Inputs = append(out.Inputs, s)
	}
	for i := range src.Outputs {
		s, err := outputSpec(&src.Outputs[i])
		if err != nil {
			return nil, &ProgramError{fmt.Sprintf("signature.output_specs[%d]", i), err.Error()}
		}
		out.Outputs = append(out.Outputs, s)
	}
	return out, nil
}

func inputSpec(s *schema.InputSpec) (export.InputSpec, error) {
	tensorSpec := func(k export.InputKind, a schema.TensorArgument, target string) (export.InputSpec, error) {
		return export.InputSpec{Kind: k, Arg: export.TensorArg{Name: a.Name}, Target: target}, nil
	}
	switch {
	case s.UserInput != nil:
		a, err := argOf(&s.UserInput.Arg, "")
		return export.InputSpec{Kind: export.UserInput, Arg: a}, err
	case s.Parameter != nil:
		return tensorSpec(export.Parameter, s.Parameter.Arg, s.Parameter.Name)
	case s.Buffer != nil:
		persistent := s.Buffer.Persistent == nil || *s.Buffer.Persistent
		return export.InputSpec{Kind: export.Buffer, Arg: export.TensorArg{Name: s.Buffer.Arg.Name}, Target: s.Buffer.Name, Persistent: &persistent}, nil
	case s.TensorConstant != nil:
		return tensorSpec(export.ConstantTensor, s.TensorConstant.Arg, s.TensorConstant.Name)
	case s.CustomObj != nil:
		return export.InputSpec{Kind: export.CustomObj, Arg: export.CustomObjArg{Name: s.CustomObj.Arg.Name, ClassFQN: s.CustomObj.Arg.Class}, Target: s.CustomObj.Name}, nil
	case s.Token != nil:
		return export.InputSpec{Kind: export.InputToken, Arg: export.TokenArg{Name: s.Token.Arg.Name}}, nil
	case s.Constant != nil:
		v, err := constant(&s.Constant.Value)
		return export.InputSpec{Kind: export.UserInput, Arg: export.ConstantArg{Name: s.Constant.Name, Value: v}}, err
	}
	return export.InputSpec{}, fmt.Errorf("a spec of a kind that this library does not know")
}

func outputSpec(s *schema.OutputSpec) (export.OutputSpec, error) {
	t := func(k export.OutputKind, a schema.TensorArgument, target string) (export.OutputSpec, error) {
		return export.OutputSpec{Kind: k, Arg: export.TensorArg{Name: a.Name}, Target: target}, nil
	}
	switch {
	case s.UserOutput != nil:
		a, err := argOf(&s.UserOutput.Arg, "")
		return export.OutputSpec{Kind: export.UserOutput, Arg: a}, err
	case s.Loss != nil:
		return t(export.LossOutput, s.Loss.Arg, "")
	case s.Buffer != nil:
		return t(export.BufferMutation, s.Buffer.Arg, s.Buffer.Name)
	case s.GradParameter != nil:
		return t(export.GradientToParameter, s.GradParameter.Arg, s.GradParameter.Name)
	case s.GradInput != nil:
		return t(export.GradientToUserInput, s.GradInput.Arg, s.GradInput.Name)
	case s.Input != nil:
		return t(export.UserInputMutation, s.Input.Arg, s.Input.Name)
	case s.Token != nil:
		return export.OutputSpec{Kind: export.OutputToken, Arg: export.TokenArg{Name: s.Token.Arg.Name}}, nil
	case s.Parameter != nil:
		return t(export.ParameterMutation, s.Parameter.Arg, s.Parameter.Name)
	}
	return export.OutputSpec{}, fmt.Errorf("a spec of a kind that this library does not know")
}
