package loader

import (
	"fmt"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/schema"
)

// argOf converts the argument of a spec.
func argOf(a *schema.Argument) (export.Arg, error) {
	switch x := a.Value.(type) {
	case schema.TensorArgument:
		return export.TensorArg{Name: x.Name}, nil
	case schema.SymIntArgument:
		if x.Name == "" {
			return export.ConstantArg{Value: x.Int}, nil
		}
		return export.SymIntArg{Name: x.Name}, nil
	case schema.SymFloatArgument:
		if x.Name == "" {
			return export.ConstantArg{Value: x.Float}, nil
		}
		return export.SymFloatArg{Name: x.Name}, nil
	case schema.SymBoolArgument:
		if x.Name == "" {
			return export.ConstantArg{Value: x.Bool}, nil
		}
		return export.SymBoolArg{Name: x.Name}, nil
	case schema.CustomObjArgument:
		return export.CustomObjArg{Name: x.Name, ClassFQN: x.ClassFQN}, nil
	case bool:
		if a.Tag == schema.AsNone {
			return export.ConstantArg{}, nil
		}
		return export.ConstantArg{Value: x}, nil
	case int64, float64:
		return export.ConstantArg{Value: x}, nil
	case string:
		if a.Tag == schema.AsString {
			return export.ConstantArg{Value: x}, nil
		}
	}
	return nil, fmt.Errorf("%s cannot be an input or output", a.Tag)
}

func argsOf(list []schema.Argument) ([]export.Arg, error) {
	out := make([]export.Arg, 0, len(list))
	for i := range list {
		a, err := argOf(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func convertSignature(src *schema.GraphSignature) (*export.GraphSignature, error) {
	out := &export.GraphSignature{}
	for i := range src.InputSpecs {
		s, err := inputSpec(src.InputSpecs[i].Value)
		if err != nil {
			return nil, &ProgramError{fmt.Sprintf("signature.input_specs[%d]", i), err.Error()}
		}
		out.Inputs = append(out.Inputs, s)
	}
	for i := range src.OutputSpecs {
		s, err := outputSpec(src.OutputSpecs[i].Value)
		if err != nil {
			return nil, &ProgramError{fmt.Sprintf("signature.output_specs[%d]", i), err.Error()}
		}
		out.Outputs = append(out.Outputs, s)
	}
	return out, nil
}

func inputSpec(spec any) (out export.InputSpec, err error) {
	tensorArg := func(a schema.TensorArgument) export.Arg { return export.TensorArg{Name: a.Name} }
	switch s := spec.(type) {
	case *schema.UserInputSpec:
		out.Kind = export.UserInput
		out.Arg, err = argOf(&s.Arg)
		return out, err
	case *schema.InputToParameterSpec:
		return export.InputSpec{Kind: export.Parameter, Arg: tensorArg(s.Arg), Target: s.ParameterName}, nil
	case *schema.InputToBufferSpec:
		return export.InputSpec{Kind: export.Buffer, Arg: tensorArg(s.Arg), Target: s.BufferName, Persistent: &s.Persistent}, nil
	case *schema.InputToTensorConstantSpec:
		return export.InputSpec{Kind: export.ConstantTensor, Arg: tensorArg(s.Arg), Target: s.TensorConstantName}, nil
	case *schema.InputToCustomObjSpec:
		return export.InputSpec{Kind: export.CustomObj, Arg: export.CustomObjArg{Name: s.Arg.Name, ClassFQN: s.Arg.ClassFQN}, Target: s.CustomObjName}, nil
	case *schema.InputTokenSpec:
		return export.InputSpec{Kind: export.InputToken, Arg: export.TokenArg{Name: s.Arg.Name}}, nil
	case *schema.InputToConstantInputSpec:
		return export.InputSpec{Kind: export.UserInput, Arg: export.ConstantArg{Name: s.Name, Value: s.Value.Value}}, nil
	}
	return out, fmt.Errorf("an input spec of the unknown kind %T", spec)
}

func outputSpec(spec any) (out export.OutputSpec, err error) {
	of := func(k export.OutputKind, a schema.TensorArgument, target string) (export.OutputSpec, error) {
		return export.OutputSpec{Kind: k, Arg: export.TensorArg{Name: a.Name}, Target: target}, nil
	}
	switch s := spec.(type) {
	case *schema.UserOutputSpec:
		out.Kind = export.UserOutput
		out.Arg, err = argOf(&s.Arg)
		return out, err
	case *schema.LossOutputSpec:
		return of(export.LossOutput, s.Arg, "")
	case *schema.BufferMutationSpec:
		return of(export.BufferMutation, s.Arg, s.BufferName)
	case *schema.ParameterMutationSpec:
		return of(export.ParameterMutation, s.Arg, s.ParameterName)
	case *schema.GradientToParameterSpec:
		return of(export.GradientToParameter, s.Arg, s.ParameterName)
	case *schema.GradientToUserInputSpec:
		return of(export.GradientToUserInput, s.Arg, s.UserInputName)
	case *schema.UserInputMutationSpec:
		return of(export.UserInputMutation, s.Arg, s.UserInputName)
	case *schema.OutputTokenSpec:
		return export.OutputSpec{Kind: export.OutputToken, Arg: export.TokenArg{Name: s.Arg.Name}}, nil
	}
	return out, fmt.Errorf("an output spec of the unknown kind %T", spec)
}
