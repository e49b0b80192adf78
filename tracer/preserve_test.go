package tracer_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tracer"
	"github.com/pt2go/pt2/tracer/nn"
)

// pair gives two results, of which one may be unused.
type pair struct{ R tracer.Module }

func (p *pair) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return tensors{add(tracer.Call1(p.R, x[0]), x[1]), x[0].Op("neg")}
}

// outer calls one of its modules twice.
type outer struct {
	L   *nn.Linear
	Sub *pair
}

func (m *outer) InputNames() []string { return []string{"x"} }

func (m *outer) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	a := tracer.Call1(m.L, x[0])
	return tracer.Call(m.Sub, a, tracer.Call1(m.L, x[0]).Op("relu"))[:1]
}

func newOuter() *outer { return &outer{nn.NewLinear(nn.Seed(2), 3, 3), &pair{nn.ReLU()}} }

// The entries are those that PyTorch stores for the same model, and unflattened programs call modules as the model does.
func TestPreserveModuleCallSignature(t *testing.T) {
	x := ramp(4, 3)
	p, err := tracer.Export(newOuter(), []*tensor.Tensor{x}, tracer.PreserveModuleCallSignature("l", "sub", "sub.r"))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := loader.Save(&b, p, loader.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	c, err := loader.OpenBytes(b.Bytes(), loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p = c.Programs["model"]
	var got []string
	for _, e := range p.ModuleCallGraph()[1:] {
		var in, out []string
		for _, a := range e.Signature.Inputs {
			in = append(in, a.ArgName())
		}
		for _, a := range e.Signature.Outputs {
			out = append(out, a.ArgName())
		}
		got = append(got, e.FQN+"("+strings.Join(in, ", ")+") "+strings.Join(out, ", "))
	}
	// As torch.export of the same model in Python has them.
	if text := strings.Join(got, "; "); text != "l(x) linear; sub(linear, relu) add, neg; sub.r(linear) relu_1; l@1(x) linear_1" {
		t.Error(text)
	}
	m, err := interp.Unflatten(p, nil, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Call(t.Context(), []any{x}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := tracer.Run(newOuter(), nil, x)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "unflattened", []any{out}, want)

	for _, c := range []struct {
		m    tracer.Module
		path string
		text string
	}{
		{newOuter(), "zz", "has no sub-module 'zz'; it has l, sub, sub.r"},
		{&uneven{newOuter().Sub}, "sub", "in_spec mismatch for sub"},
	} {
		if _, err := tracer.Export(c.m, []*tensor.Tensor{x}, tracer.PreserveModuleCallSignature(c.path)); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v, want %q", err, c.text)
		}
	}
}

// uneven calls its module with two and with three inputs.
type uneven struct{ Sub *pair }

func (m *uneven) InputNames() []string { return []string{"x"} }

func (m *uneven) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return tensors{add(tracer.Call(m.Sub, x[0], x[0])[0], tracer.Call(m.Sub, x[0], x[0], nil)[0])}
}

// PyTorch unflattens the archive; its modules take and give what the model's do.
func TestPyTorchUnflattensPreserved(t *testing.T) {
	python, dir := golden.Python(t), t.TempDir()
	x := ramp(4, 3)
	p, err := tracer.Export(newOuter(), []*tensor.Tensor{x}, tracer.PreserveModuleCallSignature("l", "sub", "sub.r"))
	if err != nil {
		t.Fatal(err)
	}
	saveCalls(t, filepath.Join(dir, "outer"), newOuter(), p, [][]*tensor.Tensor{{x}})
	if out, err := exec.Command(python, filepath.Join("testdata", "preserve.py"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
