package tracer_test

import (
	"strings"
	"testing"

	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tracer"
	"github.com/pt2go/pt2/tracer/nn"
)

// counter adds up what it is given in a buffer.
type counter struct {
	L     *nn.Linear
	Total *tracer.Buffer
}

func (c *counter) InputNames() []string { return []string{"x"} }

func (c *counter) Forward(x *tracer.Tensor) *tracer.Tensor {
	x.Assign(c.Total, x.Of(c.Total).Op("add.Tensor", 1))
	y := x.Op("add.Tensor", c.Total)
	return tracer.Call1(c.L, y)
}

func newCounter() *counter {
	return &counter{L: nn.NewLinear(nil, 3, 2), Total: &tracer.Buffer{T: tensor.New(tensor.Float32, 3), Persistent: true}}
}

// A buffer that is assigned has its new value at once, and keeps it for the next call.
func TestAssign(t *testing.T) {
	m := newCounter()
	p, err := tracer.Export(m, []any{ramp(4, 3)})
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, n := range p.Graph().Nodes {
		names += n.Name + " "
	}
	if names != "add add_1 linear copy__default " {
		t.Error(names)
	}
	for want := float32(1); want < 3; want++ {
		if _, err := tracer.RunCall(m, nil, []any{ramp(4, 3)}); err != nil {
			t.Fatal(err)
		}
		if got := tensor.Data[float32](m.Total.T)[0]; got != want {
			t.Errorf("the buffer holds %v, want %v", got, want)
		}
	}
}

// Nodes tell their modules, the lines of the code, and which call of its operator each is.
func TestMetadata(t *testing.T) {
	p, err := tracer.Export(newCounter(), []any{ramp(4, 3)})
	if err != nil {
		t.Fatal(err)
	}
	nodes := p.Graph().Nodes
	first, second, linear := nodes[0].Metadata, nodes[1].Metadata, nodes[2].Metadata
	if first["torch_fn"] != "add_1;function.add" || second["torch_fn"] != "add_2;function.add" {
		t.Errorf("%q, %q", first["torch_fn"], second["torch_fn"])
	}
	if got := linear["nn_module_stack"]; !strings.HasPrefix(got, "L__self__,,") || !strings.HasSuffix(got, ";L__self__l,l,torch.nn.modules.linear.Linear") {
		t.Error(got)
	}
	trace := linear["stack_trace"]
	if !strings.HasPrefix(trace, `File "`) || !strings.Contains(trace, `tracer/origin_test.go", line `) || !strings.Contains(trace, "\n  File \"") || !strings.Contains(trace, "in Forward") {
		t.Error(trace)
	}
}
