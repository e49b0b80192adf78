package export

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func everyKind() *GraphSignature {
	yes, no := true, false
	return &GraphSignature{
		Inputs: []InputSpec{
			{InputToken, TokenArg{"token"}, "", nil}, {Parameter, TensorArg{"p_w"}, "w", nil}, {Buffer, TensorArg{"b_b"}, "b", &yes},
			{Buffer, TensorArg{"b_n"}, "n", &no}, {ConstantTensor, TensorArg{"c_c"}, "c", nil}, {CustomObj, CustomObjArg{"obj", "cls"}, "o", nil},
			{UserInput, TensorArg{"x"}, "", nil}, {UserInput, SymIntArg{"n"}, "", nil}, {UserInput, ConstantArg{"k", int64(3)}, "", nil},
			{UserInput, ConstantArg{}, "", nil},
		},
		Outputs: []OutputSpec{
			{OutputToken, TokenArg{"token_1"}, ""}, {BufferMutation, TensorArg{"add"}, "b"}, {ParameterMutation, TensorArg{"pm"}, "w"},
			{UserInputMutation, TensorArg{"im"}, "x"}, {UserOutput, TensorArg{"y"}, ""}, {UserOutput, ConstantArg{"", 2.5}, ""},
			{UserOutput, ConstantArg{"z", 2.5}, ""}, {LossOutput, TensorArg{"loss"}, ""}, {GradientToParameter, TensorArg{"g"}, "w"},
			{GradientToUserInput, TensorArg{"gx"}, "x"},
		},
	}
}

// The expected texts of this file are what PyTorch 2.15 prints for the same signature.
const everyKindText = "\n# inputs\ntoken: TOKEN\np_w: PARAMETER target='w'\nb_b: BUFFER target='b' persistent=True\nb_n: BUFFER target='n' persistent=False\n" +
	"c_c: CONSTANT_TENSOR target='c'\nobj: CUSTOM_OBJ target='o'\nx: USER_INPUT\nn: USER_INPUT\nk: USER_INPUT\n: USER_INPUT\n\n# outputs\ntoken_1: TOKEN\n" +
	"add: BUFFER_MUTATION target='b'\npm: PARAMETER_MUTATION target='w'\nim: USER_INPUT_MUTATION target='x'\ny: USER_OUTPUT\n: USER_OUTPUT\nz: USER_OUTPUT\n" +
	"loss: LOSS_OUTPUT\ng: GRADIENT_TO_PARAMETER target='w'\ngx: GRADIENT_TO_USER_INPUT target='x'\n"

func TestSignature(t *testing.T) {
	s := everyKind()
	if got := s.String(); got != everyKindText {
		t.Errorf("got %q", got)
	}
	back, err := s.BackwardSignature()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		got  any
		want string
	}{
		{s.Parameters(), "[w]"}, {s.Buffers(), "[b n]"}, {s.NonPersistentBuffers(), "[n]"}, {s.LiftedTensorConstants(), "[c]"}, {s.LiftedCustomObjs(), "[o]"},
		{s.InputsToParameters(), "map[p_w:w]"}, {s.InputsToBuffers(), "map[b_b:b b_n:n]"}, {s.InputsToLiftedTensorConstants(), "map[c_c:c]"},
		{s.InputsToLiftedCustomObjs(), "map[obj:o]"}, {s.BuffersToMutate(), "map[add:b]"}, {s.ParametersToMutate(), "map[pm:w]"},
		{s.UserInputsToMutate(), "map[im:x]"}, {s.InputTokens(), "[token]"}, {s.OutputTokens(), "[token_1]"}, {len(s.AssertionDepToken()), "0"},
		{*back, "{map[g:w] map[gx:x] loss}"}, {len(s.UserInputs()), "4"}, {len(s.UserOutputs()), "4"},
	} {
		if got := fmt.Sprint(c.got); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	s.Outputs = append(s.Outputs, OutputSpec{LossOutput, TensorArg{"loss2"}, ""})
	if _, err := s.BackwardSignature(); err == nil {
		t.Error("two losses are accepted")
	}
}

func TestReplaceAllUses(t *testing.T) {
	s := everyKind()
	s.ReplaceAllUses("x", "xx")
	s.ReplaceAllUses("y", "yy")
	s.ReplaceAllUses("k", "kk") // a constant stays
	want := strings.Replace(strings.Replace(everyKindText, "\nx: ", "\nxx: ", 1), "\ny: ", "\nyy: ", 1)
	if got := s.String(); got != want {
		t.Errorf("got %q", got)
	}
	s = everyKind()
	hook := s.ReplaceHook(true)
	hook(&Value{Name: "y", Def: &Node{}}, "yy", nil)
	hook(&Value{Name: "x"}, "xx", &Node{})
	if got := s.String(); got != want {
		t.Errorf("hook: got %q", got)
	}
	s = everyKind()
	s.ReplaceHook(false)(&Value{Name: "x"}, "xx", &Node{})
	if s.String() != everyKindText {
		t.Error("the hook renames inputs unasked")
	}
}

func TestInputSpecValidate(t *testing.T) {
	var ae *ArgumentError
	if err := (InputSpec{Kind: Buffer, Arg: TensorArg{"b"}, Target: "b"}).Validate(); !errors.As(err, &ae) {
		t.Errorf("a buffer without persistent: %v", err)
	}
	for _, s := range everyKind().Inputs {
		if err := s.Validate(); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
}

// The numbers and names are PyTorch's enums.
func TestKinds(t *testing.T) {
	in := []InputKind{0, UserInput, Parameter, Buffer, ConstantTensor, CustomObj, InputToken}
	for i, want := range []string{"", "USER_INPUT", "PARAMETER", "BUFFER", "CONSTANT_TENSOR", "CUSTOM_OBJ", "TOKEN"} {
		if int(in[i]) != i || in[i].String() != want {
			t.Errorf("%d %v, want %s", in[i], in[i], want)
		}
	}
	out := []OutputKind{0, UserOutput, LossOutput, BufferMutation, ParameterMutation, GradientToParameter, GradientToUserInput, UserInputMutation, OutputToken}
	for i, want := range []string{"", "USER_OUTPUT", "LOSS_OUTPUT", "BUFFER_MUTATION", "PARAMETER_MUTATION", "GRADIENT_TO_PARAMETER",
		"GRADIENT_TO_USER_INPUT", "USER_INPUT_MUTATION", "TOKEN"} {
		if int(out[i]) != i || out[i].String() != want {
			t.Errorf("%d %v, want %s", out[i], out[i], want)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, a := range []Arg{TensorArg{"v"}, SymIntArg{"v"}, SymFloatArg{"v"}, SymBoolArg{"v"}, TokenArg{"v"}, CustomObjArg{"v", "cls"}, ConstantArg{"v", true}} {
		b := a.withName("w")
		if a.ArgName() != "v" || b.ArgName() != "w" || fmt.Sprintf("%T", a) != fmt.Sprintf("%T", b) {
			t.Errorf("%v became %v", a, b)
		}
	}
	if c := (ConstantArg{"v", 2.5}).withName("w").(ConstantArg); c.Value != 2.5 {
		t.Errorf("the value became %v", c.Value)
	}
	if c := (CustomObjArg{"v", "cls"}).withName("w").(CustomObjArg); c.ClassFQN != "cls" {
		t.Errorf("the class became %v", c.ClassFQN)
	}
}

func TestModuleCallSignature(t *testing.T) {
	s := &ModuleCallSignature{Inputs: []Arg{TensorArg{"x"}, ConstantArg{"x", int64(1)}}, Outputs: []Arg{SymIntArg{"x"}, TensorArg{"y"}}}
	s.ReplaceAllUses("x", "z")
	if got := fmt.Sprint(s.Inputs, s.Outputs); got != "[{z} {x 1}] [{z} {y}]" {
		t.Error(got)
	}
}
