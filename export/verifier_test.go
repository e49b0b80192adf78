package export

import (
	"errors"
	"strings"
	"testing"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
)

// addProgram is add(x, w) with parameter w, in the parts that a case may break.
func addProgram() Parts {
	meta := &TensorMeta{DType: tensor.Float32}
	w, x, y := &Value{Name: "p_w", ID: 0, Tensor: meta}, &Value{Name: "x", ID: 1, Tensor: meta}, &Value{Name: "add", ID: 2, Tensor: meta}
	n := &Node{Name: "add", Target: "torch.ops.aten.add.Tensor", Op: aten.Builtin().Lookup("aten.add.Tensor"),
		Args: []NamedArg{{"self", x, Positional}, {"other", w, Positional}}, Outputs: []Argument{y}}
	y.Def = n
	state := &OrderedMap[*tensor.Tensor]{}
	state.Set("w", tensor.New(tensor.Float32, 2))
	return Parts{
		Graph: &Graph{Inputs: []GraphInput{{Name: "p_w", Value: w}, {Name: "x", Value: x}}, Nodes: []*Node{n}, Outputs: []Argument{y}, Values: []*Value{w, x, y}},
		Signature: &GraphSignature{
			Inputs:  []InputSpec{{Parameter, TensorArg{"p_w"}, "w", nil}, {UserInput, TensorArg{"x"}, "", nil}},
			Outputs: []OutputSpec{{UserOutput, TensorArg{"add"}, ""}},
		},
		State: state,
	}
}

// TestVerifier breaks one rule each time.
func TestVerifier(t *testing.T) {
	if _, err := New(addProgram()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		edit func(p *Parts)
		want string
	}{
		{"used before definition", func(p *Parts) { p.Graph.Nodes[0].Args[0].Value = p.Graph.Values[2] }, "before it is defined"},
		{"defined twice", func(p *Parts) { p.Graph.Nodes[0].Outputs[0] = p.Graph.Values[1] }, "a second time"},
		{"node name twice", func(p *Parts) {
			p.Graph.Nodes = append(p.Graph.Nodes, &Node{Name: "add", Target: "torch.ops.aten.add.Tensor"})
		}, "two nodes"},
		{"target", func(p *Parts) { p.Graph.Nodes[0].Target, p.Graph.Nodes[0].Op = "os.system", nil }, "no operator"},
		{"not functional", func(p *Parts) { p.Graph.Nodes[0].Op = aten.Builtin().Lookup("aten.add_.Tensor") }, "not functional"},
		{"module call", func(p *Parts) {
			p.ModuleCallGraph = []ModuleCallEntry{{"m", &ModuleCallSignature{Inputs: []Arg{TensorArg{"nowhere"}}}}}
		}, "nowhere"},
		{"inputs", func(p *Parts) { p.Signature.Inputs = p.Signature.Inputs[:1] }, "signature has 1 inputs"},
		{"outputs", func(p *Parts) { p.Signature.Outputs = nil }, "signature has 0 outputs"},
		{"state", func(p *Parts) { p.Signature.Inputs[0].Target = "v" }, `"v" is not among`},
		{"name", func(p *Parts) { p.Signature.Inputs[1].Arg = TensorArg{"z"} }, `"z"`},
		{"mutation", func(p *Parts) { p.Signature.Outputs[0] = OutputSpec{BufferMutation, TensorArg{"add"}, "b"} }, "no input of that kind"},
		{"order", func(p *Parts) {
			p.Graph.Outputs = append(p.Graph.Outputs, p.Graph.Values[2])
			p.Signature.Outputs = append(p.Signature.Outputs, OutputSpec{UserInputMutation, TensorArg{"add"}, "x"})
		}, "behind"},
		{"token", func(p *Parts) { p.Signature.Inputs[1] = InputSpec{InputToken, TensorArg{"x"}, "", nil} }, "token"},
		{"no metadata", func(p *Parts) { p.Graph.Values[2].Tensor = nil }, "missing val field"},
		{"no metadata of an input", func(p *Parts) { p.Graph.Values[1].Tensor = nil }, "missing val field"},
		{"call_module", func(p *Parts) { p.Graph.Nodes[0].Kind = CallModule }, "calls of modules"},
		{"get_attr", func(p *Parts) { p.Graph.Nodes[0].Kind = GetAttr }, "calls of modules"},
		{"no parameter", func(p *Parts) { p.Signature.Inputs[0].Arg = SymIntArg{"p_w"} }, "holds no tensor"},
		{"non-persistent buffer among the state", func(p *Parts) {
			p.SchemaVersion.Major = 8
			p.Signature.Inputs[0] = InputSpec{Buffer, TensorArg{"p_w"}, "w", new(bool)}
		}, "non-persistent buffer"},
		{"constant", func(p *Parts) { p.Signature.Inputs[0] = InputSpec{ConstantTensor, TensorArg{"p_w"}, "c", nil} }, `"c" is not among`},
		{"custom object", func(p *Parts) { p.Signature.Inputs[0] = InputSpec{CustomObj, CustomObjArg{"p_w", "cls"}, "o", nil} }, `"o" is not among`},
		{"mutated parameter", func(p *Parts) { p.Signature.Outputs[0] = OutputSpec{ParameterMutation, TensorArg{"add"}, "v"} }, "no input of that kind"},
		{"mutated input", func(p *Parts) { p.Signature.Outputs[0] = OutputSpec{UserInputMutation, TensorArg{"add"}, "w"} }, "no input of that kind"},
		{"output nobody defines", func(p *Parts) {
			p.Graph.Outputs[0] = &Value{Name: "gone", ID: 2, Tensor: p.Graph.Values[0].Tensor}
			p.Graph.Nodes = nil
		}, "which nothing defines"},
		{"persistent", func(p *Parts) { p.Signature.Inputs[0].Kind = Buffer }, "Persistent"},
	} {
		p := addProgram()
		c.edit(&p)
		_, err := New(p)
		var se *SpecError
		if !errors.As(err, &se) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	p := addProgram()
	p.Verifiers = []string{"TRAINING"}
	p.Graph.Nodes[0].Op = aten.Builtin().Lookup("aten.add_.Tensor")
	if _, err := New(p); err != nil {
		t.Errorf("TRAINING may mutate: %v", err)
	}
	var ae *ArgumentError
	if _, err := VerifierByDialect("EDGE"); !errors.As(err, &ae) {
		t.Errorf("unknown dialect: %v", err)
	}
	if _, err := New(Parts{}); !errors.As(err, &ae) {
		t.Errorf("no graph: %v", err)
	}
}

// A dialect of one's own has rules of its own.
func TestOwnDialect(t *testing.T) {
	p, err := New(addProgram())
	if err != nil {
		t.Fatal(err)
	}
	v := &Verifier{Dialect: "MINE", CheckOp: func(n *Node) error {
		if n.Target == "torch.ops.aten.add.Tensor" {
			return errors.New("no additions")
		}
		return nil
	}}
	var se *SpecError
	if err := v.Check(p); !errors.As(err, &se) || se.Node != "add" || !strings.Contains(err.Error(), "dialect MINE: no additions") {
		t.Errorf("got %v", err)
	}
	v = &Verifier{Dialect: "MINE", CheckGraph: func(g *Graph) error { return errors.New("no graphs") }}
	if err := v.Check(p); !errors.As(err, &se) || !strings.Contains(err.Error(), "no graphs") {
		t.Errorf("got %v", err)
	}
	if err := Training.Check(p); err != nil {
		t.Error(err)
	}
}

// Each field of the parts is read back.
func TestParts(t *testing.T) {
	parts := addProgram()
	two := int64(2)
	parts.Verifiers, parts.GuardsCode = []string{"TRAINING"}, []string{"g"}
	parts.RangeConstraints = []Range{{"s0", &two, nil}}
	parts.ModuleCallGraph = []ModuleCallEntry{{"", &ModuleCallSignature{InSpec: "in", OutSpec: "out", ForwardArgNames: []string{"x"}}}, {"m", nil}}
	parts.Constants = &OrderedMap[any]{}
	parts.Constants.Set("o", &CustomObject{Class: "cls"})
	p, err := New(parts)
	if err != nil {
		t.Fatal(err)
	}
	in, out := p.CallSpec()
	params := 0
	for name, x := range p.NamedParameters() {
		if w, _ := parts.State.Get(name); w != x {
			t.Errorf("parameter %s is another tensor", name)
		}
		params++
	}
	_, example := p.ExampleInputs()
	_, object := p.TensorConstants().Get("o")
	if p.Graph() != parts.Graph || p.Signature() != parts.Signature || p.StateDict() != parts.State || p.Constants() != parts.Constants || !object ||
		p.Dialect() != "TRAINING" || p.Verifiers()[0] != "TRAINING" || p.RangeConstraints()[0].String() != "VR[2, int_oo]" || p.GuardsCode()[0] != "g" ||
		p.ModuleCallGraph()[1].FQN != "m" || in != "in" || out != "out" || params != 1 || example {
		t.Errorf("%+v", p.Parts())
	}
	bare, err := New(addProgram())
	if err != nil {
		t.Fatal(err)
	}
	if in, out := bare.CallSpec(); in != "" || out != "" || bare.Dialect() != "ATEN" {
		t.Errorf("%q, %q, %s", in, out, bare.Dialect())
	}
}
