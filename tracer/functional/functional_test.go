package functional_test

import (
	"errors"
	"testing"

	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tracer"
	f "github.com/pt2go/pt2/tracer/functional"
	"github.com/pt2go/pt2/tracer/nn"
)

// net calls operators with defaults, keywords, lists, several results, and without tensors.
type net struct{ W, B *tracer.Parameter }

func (n *net) InputNames() []string { return []string{"x"} }

func (n *net) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	h := f.Relu(f.Linear(x[0], n.W, f.Kw("bias", n.B)))
	best, at := f.MaxDim(h, 1)
	ones := f.Ones(h, []any{h.Size(0), 2})
	parts := f.SplitTensor(f.Cat(tracer.Operands{h, ones}, f.Kw("dim", 1)), 3, f.Kw("dim", 1))
	return []*tracer.Tensor{f.AddTensor(parts[0], parts[1], f.Kw("alpha", 2)), best, at}
}

func TestFunctions(t *testing.T) {
	l := nn.NewLinear(nn.Seed(0), 3, 4)
	m := &net{l.Weight, l.Bias}
	x := tensor.New(tensor.Float32, 2, 3)
	copy(tensor.Data[float32](x), []float32{1, -2, 3, 0.5, 4, -1})
	want, err := tracer.Run(m, nil, x)
	if err != nil {
		t.Fatal(err)
	}
	if got := want[0].Sizes(); len(got) != 2 || got[1] != 3 || want[2].DType() != tensor.Int64 {
		t.Fatalf("sizes %v, indices %v", got, want[2].DType())
	}
	if got := tensor.Contiguous[float32](want[0])[1] - 2*1; got < 0 { // relu's result and twice one
		t.Error(got)
	}
	p, err := tracer.Export(m, []*tensor.Tensor{x})
	if err != nil {
		t.Fatal(err)
	}
	run, err := interp.New(p, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.Run(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want[:2] {
		got, w := tensor.Contiguous[float32](out[i].(*tensor.Tensor)), tensor.Contiguous[float32](want[i])
		for j := range w {
			if d := got[j] - w[j]; d > 1e-6 || d < -1e-6 {
				t.Errorf("output %d: %v, want %v", i, got, w)
				break
			}
		}
	}
}

type lost struct{ W *tracer.Parameter }

func (l *lost) InputNames() []string { return []string{"x"} }

func (l *lost) Forward(...*tracer.Tensor) []*tracer.Tensor { return []*tracer.Tensor{f.Relu(l.W)} }

func TestNoRun(t *testing.T) {
	var user *tracer.UserError
	if _, err := tracer.Run(&lost{nn.NewPReLU(1).Weight}, nil, tensor.New(tensor.Float32, 1)); !errors.As(err, &user) {
		t.Error(err)
	}
}
