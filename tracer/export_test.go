package tracer_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
	"github.com/pt2go/pt2/tracer"
	"github.com/pt2go/pt2/tracer/nn"
)

// net is a small image classifier with a branch of its own and a tied layer.
type net struct {
	Features *nn.Sequential
	Norm     *nn.LayerNorm
	Head     *nn.Linear
}

func (n *net) InputNames() []string { return []string{"x"} }

func (n *net) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	h := tracer.Call1(n.Features, x[0])
	h = h.Op("mean.dim", []int{2, 3})
	h = h.Op("add.Tensor", tracer.Call1(n.Norm, h))
	return []*tracer.Tensor{tracer.Call1(n.Head, h).Op("log_softmax.int", -1), h}
}

func newNet(train bool) *net {
	g := nn.Seed(1)
	conv := nn.NewConv2d(g, 3, 8, 3, nn.Padding(1), nn.Stride(2))
	norm := nn.NewBatchNorm2d(8)
	norm.Training = train
	return &net{nn.NewSequential(conv, norm, nn.ReLU(), nn.NewConv2d(g, 8, 8, 3, nn.Groups(2)), nn.SiLU()), nn.NewLayerNorm(8), nn.NewLinear(g, 8, 5)}
}

// words is a model of token ids with positions up to the sequence's length.
type words struct {
	Table  *nn.Embedding
	Layers *nn.Sequential
}

func (w *words) InputNames() []string { return []string{"ids", "mask"} }

func (w *words) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	h := tracer.Call1(w.Table, x[0])
	h = tracer.Call1(w.Layers, h)
	scores := h.Op("matmul", h.Op("transpose.int", 1, 2))
	scores = scores.Op("add.Tensor", x[1].Op("unsqueeze", 1))
	h = scores.Op("softmax.int", -1).Op("matmul", h)
	return []*tracer.Tensor{h.Op("reshape", []any{h.Size(0), h.Size(1).MulN(6)})}
}

func ramp(sizes ...int64) *tensor.Tensor {
	t := tensor.New(tensor.Float32, sizes...)
	for i := range tensor.Data[float32](t) {
		tensor.Data[float32](t)[i] = float32(i%17)/8 - 1
	}
	return t
}

func ids(sizes ...int64) *tensor.Tensor {
	t := tensor.New(tensor.Int64, sizes...)
	for i := range tensor.Data[int64](t) {
		tensor.Data[int64](t)[i] = int64(i * 7 % 11)
	}
	return t
}

type example struct {
	name  string
	model tracer.Module
	args  []*tensor.Tensor
	other []*tensor.Tensor // inputs of other sizes
	opts  []tracer.Option
}

func examples() []example {
	g := nn.Seed(7)
	batch, length := tracer.MustDim("batch", tracer.Max(64)), tracer.MustDim("length")
	return []example{
		{"net", newNet(false), []*tensor.Tensor{ramp(2, 3, 16, 16)}, nil, nil},
		{"net-dynamic", newNet(false), []*tensor.Tensor{ramp(2, 3, 16, 16)}, []*tensor.Tensor{ramp(5, 3, 16, 16)}, []tracer.Option{tracer.WithDynamic("x", 0, batch)}},
		{"net-training", newNet(true), []*tensor.Tensor{ramp(2, 3, 16, 16)}, nil, nil},
		{"words", &words{nn.NewEmbedding(g, 11, 6), nn.NewSequential(nn.NewLinear(g, 6, 6), nn.GELU())}, []*tensor.Tensor{ids(2, 5), ramp(2, 5)},
			[]*tensor.Tensor{ids(3, 9), ramp(3, 9)}, []tracer.Option{tracer.WithDynamic("ids", 0, batch), tracer.WithDynamic("mask", 0, batch),
				tracer.WithDynamic("ids", 1, length), tracer.WithDynamic("mask", 1, length)}},
		{"mlp", nn.NewSequential(nn.NewLinear(g, 4, 8), nn.Tanh(), nn.NewDropout(0.5), nn.NewLinear(g, 8, 3), nn.Softmax(1)),
			[]*tensor.Tensor{ramp(2, 4)}, []*tensor.Tensor{ramp(9, 4)}, []tracer.Option{tracer.WithDynamic("input", 0, batch)}},
	}
}

func run(t *testing.T, p *export.Program, in []*tensor.Tensor) []any {
	t.Helper()
	m, err := interp.New(p, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	args := make([]any, len(in))
	for i := range in {
		args[i] = in[i]
	}
	out, err := m.Run(context.Background(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func near(t *testing.T, name string, got []any, want []*tensor.Tensor) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d outputs, want %d", name, len(got), len(want))
	}
	for i := range want {
		x, y := tensor.Contiguous[float32](got[i].(*tensor.Tensor)), tensor.Contiguous[float32](want[i])
		for j := range y {
			if d := x[j] - y[j]; len(x) != len(y) || d > 1e-5 || d < -1e-5 {
				t.Fatalf("%s: output %d, element %d: %g, want %g", name, i, j, x[j], y[j])
			}
		}
	}
}

// A saved and loaded program computes what the model's code computes, for the examples' sizes and for others.
func TestExport(t *testing.T) {
	for _, e := range examples() {
		p, err := tracer.Export(e.model, e.args, e.opts...)
		if err != nil {
			t.Errorf("%s: %v", e.name, err)
			continue
		}
		var b bytes.Buffer
		if err := loader.Save(&b, p, loader.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		c, err := loader.OpenBytes(b.Bytes(), loader.Options{})
		if err != nil {
			t.Errorf("%s: %v", e.name, err)
			continue
		}
		for _, in := range [][]*tensor.Tensor{e.args, e.other} {
			if in == nil {
				continue
			}
			got := run(t, c.Programs["model"], in)
			want, err := tracer.Run(e.model, nil, in...)
			if err != nil {
				t.Fatal(err)
			}
			near(t, e.name, got, want)
			core, err := passes.RunDecompositions(c.Programs["model"], nil, nil)
			if err != nil {
				t.Errorf("%s: %v", e.name, err)
				continue
			}
			if e.name != "net-training" { // its running statistics have moved
				near(t, e.name+" decomposed", run(t, core, in), want)
			}
		}
	}
}

func TestNames(t *testing.T) {
	names, _, err := tracer.StateDict(newNet(false))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); got != "features.0.weight features.0.bias features.1.weight features.1.bias features.1.running_mean features.1.running_var features.1.num_batches_tracked features.3.weight features.3.bias norm.weight norm.bias head.weight head.bias" {
		t.Error(got)
	}
}

type branching struct{ L *nn.Linear }

func (b *branching) InputNames() []string { return []string{"x"} }
func (b *branching) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	if x[0].Size(0).Int64() > 3 {
		return []*tracer.Tensor{x[0].Op("neg")}
	}
	return []*tracer.Tensor{x[0]}
}

type failing struct{}

func (failing) InputNames() []string { return []string{"x"} }
func (failing) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return []*tracer.Tensor{x[0].Op("mm", x[0])}
}

type nameless struct{}

func (nameless) Forward(x ...*tracer.Tensor) []*tracer.Tensor { return x }

func TestRefusals(t *testing.T) {
	x := ramp(2, 3)
	d := tracer.MustDim("d")
	for _, c := range []struct {
		m    tracer.Module
		opts []tracer.Option
		kind tracer.ErrorKind
		text string
	}{
		{&branching{}, []tracer.Option{tracer.WithDynamic("x", 0, d)}, tracer.ConstraintViolation, "Suggested fixes:\n  d = 2"},
		{&branching{}, []tracer.Option{tracer.WithDynamic("x", 2, d)}, tracer.InvalidInput, "out of range"},
		{&branching{}, []tracer.Option{tracer.WithDynamic("y", 0, d)}, tracer.InvalidInput, `no input is called "y"`},
		{&branching{}, []tracer.Option{tracer.WithDynamic("x", 0, d), tracer.WithDynamic("x", 1, d)}, tracer.ConstraintViolation, "sizes 2 and 3"},
		{failing{}, nil, tracer.InvalidInput, "export_test.go:"},
		{nameless{}, nil, tracer.InvalidInput, "InputNames"},
	} {
		_, err := tracer.Export(c.m, []*tensor.Tensor{x}, c.opts...)
		var user *tracer.UserError
		if !errors.As(err, &user) || user.Kind != c.kind || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%T: %v, want %s with %q", c.m, err, c.kind, c.text)
		}
	}
	if _, err := tracer.NewDim("d", tracer.Min(5), tracer.Max(5)); err == nil || !strings.Contains(err.Error(), "Cannot create Dim with inconsistent min=5, max=5") {
		t.Error(err)
	}
	if got := tracer.MustDim("b", tracer.Min(3), tracer.Max(9)).String(); got != "Dim('b', min=3, max=9)" {
		t.Error(got)
	}
}

// PyTorch loads every program, checks its guards, refuses a batch beyond the bounds, and computes the same; it initialises layers alike.
func TestPyTorchRunsWhatWeExport(t *testing.T) {
	python := golden.Python(t)
	dir := t.TempDir()
	for _, e := range examples() {
		p, err := tracer.Export(e.model, e.args, e.opts...)
		if err != nil {
			t.Fatal(err)
		}
		if err := loader.SaveFile(filepath.Join(dir, e.name+".pt2"), p, loader.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		calls := []any{}
		for _, in := range [][]*tensor.Tensor{e.args, e.other} {
			if in == nil {
				continue
			}
			out, err := tracer.Run(e.model, nil, in...)
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, []any{list(in), list(out)})
		}
		if err := tensorio.SavePT(filepath.Join(dir, e.name+".calls"), calls); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(python, filepath.Join("testdata", "exported.py"), dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if os.Getenv("PT2_VERBOSE") != "" {
		t.Logf("%s", out)
	}
}

func list(in []*tensor.Tensor) []any {
	out := make([]any, len(in))
	for i := range in {
		out[i] = in[i]
	}
	return out
}
