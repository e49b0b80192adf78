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
	w, x, y := &Value{Name: "p_w", ID: 0}, &Value{Name: "x", ID: 1}, &Value{Name: "add", ID: 2}
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
