package tracer_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
	"github.com/pt2go/pt2/tracer"
	"github.com/pt2go/pt2/tracer/nn"
)

type tensors = []*tracer.Tensor

// flow is a model of one layer and one buffer whose code is a function.
type flow struct {
	Lin *nn.Linear
	Buf *tracer.Buffer
	in  []string
	fn  func(m *flow, x tensors) tensors
}

func (m *flow) InputNames() []string                         { return m.in }
func (m *flow) Forward(x ...*tracer.Tensor) []*tracer.Tensor { return m.fn(m, x) }

func newFlow(in string, fn func(m *flow, x tensors) tensors) *flow {
	buf := tensor.New(tensor.Float32, 3)
	for i := range tensor.Data[float32](buf) {
		tensor.Data[float32](buf)[i] = 1
	}
	return &flow{Lin: nn.NewLinear(nn.Seed(9), 3, 3), Buf: &tracer.Buffer{T: buf, Persistent: true}, in: strings.Fields(in), fn: fn}
}

func add(x *tracer.Tensor, y any) *tracer.Tensor { return x.Op("add.Tensor", y) }

func truthOf(b bool) *tensor.Tensor {
	t := tensor.New(tensor.Bool)
	if b {
		tensor.Data[uint8](t)[0] = 1
	}
	return t
}

func number(n int64) *tensor.Tensor {
	t := tensor.New(tensor.Int64)
	tensor.Data[int64](t)[0] = n
	return t
}

// tokenRow is room for eight tokens, of which the first is given.
func tokenRow(first int64) *tensor.Tensor {
	t := tensor.New(tensor.Int64, 8)
	tensor.Data[int64](t)[0] = first
	return t
}

type flowCase struct {
	model *flow
	calls [][]*tensor.Tensor
	free  string // inputs with a free first dimension
}

// flows are the models that testdata/control.py has in Python.
func flows() map[string]flowCase {
	x, y, x5, y5 := ramp(4, 3), ramp(4, 3), ramp(5, 3), ramp(5, 3)
	yes, no := truthOf(true), truthOf(false)
	return map[string]flowCase{
		"Branches": {newFlow("x y p", func(m *flow, x tensors) tensors {
			z := add(x[0], x[1])
			return tracer.Cond(x[2], func(x ...*tracer.Tensor) tensors {
				return tensors{add(tracer.Call1(m.Lin, x[0]), z.Op("mul.Tensor", m.Buf))}
			}, func(x ...*tracer.Tensor) tensors { return tensors{x[0].Op("sub.Tensor", z)} }, x[0])
		}), [][]*tensor.Tensor{{x, y, yes}, {x5, y5, no}}, "x y"},
		"Nested": {newFlow("x p z", func(m *flow, x tensors) tensors {
			q := x[2]
			return tracer.Cond(x[1], func(x ...*tracer.Tensor) tensors {
				return tracer.Cond(q, func(x ...*tracer.Tensor) tensors { return tensors{add(x[0], m.Buf)} },
					func(x ...*tracer.Tensor) tensors { return tensors{x[0].Op("mul.Tensor", 2)} }, x[0])
			}, func(x ...*tracer.Tensor) tensors { return tensors{x[0].Op("sub.Tensor", 1)} }, x[0])
		}), [][]*tensor.Tensor{{x, yes, yes}, {x, yes, no}, {x, no, yes}}, ""},
		"Twice": {newFlow("x p", func(m *flow, x tensors) tensors {
			ac := tracer.Cond(x[1], func(x ...*tracer.Tensor) tensors { return tensors{add(x[0], 1), x[0].Op("mul.Tensor", 2)} },
				func(x ...*tracer.Tensor) tensors { return tensors{add(x[0], 2), x[0].Op("mul.Tensor", 3)} }, x[0])
			b := tracer.Cond(x[1], func(x ...*tracer.Tensor) tensors { return tensors{x[0].Op("mul.Tensor", m.Buf)} },
				func(x ...*tracer.Tensor) tensors { return tensors{x[0].Op("sub.Tensor", m.Lin.Bias)} }, ac[0])
			return tensors{b[0], ac[1]}
		}), [][]*tensor.Tensor{{x, yes}, {x, no}}, ""},
		"Sizes": {newFlow("x", func(m *flow, x tensors) tensors {
			return tracer.Cond(tracer.Gt(x[0].Size(0), 3), func(x ...*tracer.Tensor) tensors { return tensors{add(x[0], 1)} },
				func(x ...*tracer.Tensor) tensors { return tensors{x[0].Op("sub.Tensor", 1)} }, x[0])
		}), [][]*tensor.Tensor{{x}, {ramp(2, 3)}}, "x"},
		"Loop": {newFlow("i x", func(m *flow, x tensors) tensors {
			return tracer.WhileLoop(func(x ...*tracer.Tensor) *tracer.Tensor { return x[0].Op("lt.Scalar", 3) },
				func(x ...*tracer.Tensor) tensors { return tensors{add(x[0], 1), add(tracer.Call1(m.Lin, x[1]), m.Buf)} }, x...)
		}), [][]*tensor.Tensor{{number(0), x}, {number(1), x5}, {number(7), x5}}, "x"},
		"Mapped": {newFlow("x y", func(m *flow, x tensors) tensors {
			return tracer.Map(func(x ...*tracer.Tensor) tensors {
				return tensors{add(x[0], x[1]), tracer.Call1(m.Lin, x[0]).Op("mul.Tensor", x[1])}
			}, x[:1], x[1])
		}), [][]*tensor.Tensor{{x, ramp(3)}, {x5, ramp(3)}}, "x"},
		"Scanned": {newFlow("x c", func(m *flow, x tensors) tensors {
			c, y := tracer.Scan(func(c, x []*tracer.Tensor) (next, y []*tracer.Tensor) {
				return tensors{add(c[0], tracer.Call1(m.Lin, x[0]))}, tensors{c[0].Op("mul.Tensor", x[0])}
			}, x[1:], x[:1], 0, true)
			return append(c, y...)
		}), [][]*tensor.Tensor{{x, ramp(3)}, {x5, ramp(3)}}, "x"},
		"Across": {newFlow("x c", func(m *flow, x tensors) tensors {
			c, y := tracer.Scan(func(c, x []*tracer.Tensor) (next, y []*tracer.Tensor) {
				return tensors{add(c[0], x[0])}, tensors{c[0].Op("mul.Tensor", x[0])}
			}, x[1:], x[:1], 1, false)
			return append(c, y...)
		}), [][]*tensor.Tensor{{x, ramp(4)}}, ""},
		"Gradless": {newFlow("x", func(m *flow, x tensors) tensors {
			y := tracer.Call1(m.Lin, x[0])
			w := tracer.NoGrad(func(x ...*tracer.Tensor) tensors {
				return tensors{add(x[0].Op("mul.Tensor", 2), x[1]).Op("mul.Tensor", m.Buf)}
			}, y, x[0])[0]
			return tensors{add(w.Op("relu"), y)}
		}), [][]*tensor.Tensor{{x}, {x5}}, "x"},
		"Either": {newFlow("x p", func(m *flow, x tensors) tensors {
			y := tracer.Cond(x[1], func(x ...*tracer.Tensor) tensors { return tensors{add(x[0].Op("slice.Tensor", 0, 0, 2), 1)} },
				func(x ...*tracer.Tensor) tensors { return tensors{x[0].Op("sub.Tensor", 1)} }, x[0])[0]
			return tensors{y.Op("mul.Tensor", 2)}
		}), [][]*tensor.Tensor{{x, yes}, {x, no}}, ""},
		"Lowered": {newFlow("x", func(m *flow, x tensors) tensors {
			out := tracer.Autocast(tensor.BFloat16, true, func(x ...*tracer.Tensor) tensors {
				y := tracer.Call1(m.Lin, x[0])
				z := tracer.Autocast(tensor.BFloat16, false, func(x ...*tracer.Tensor) tensors { return tensors{add(tracer.Call1(m.Lin, x[0]), x[1])} }, x[0], y)
				return tensors{y, z[0]}
			}, x...)
			return tensors{add(out[0], 1).Op("to.dtype", tensor.Float32), out[1]}
		}), [][]*tensor.Tensor{{x}, {x5}}, "x"},
		"Generate": {newFlow("tokens n", func(m *flow, x tensors) tensors {
			// A greedy loop: the next token is the one whose row of the layer's weight is most alike.
			return tracer.WhileLoop(func(x ...*tracer.Tensor) *tracer.Tensor { return x[1].Op("lt.Scalar", 7) },
				func(x ...*tracer.Tensor) tensors {
					last := x[0].Op("index_select", 0, x[1].Op("sub.Tensor", 1).Op("reshape", []int{1}))
					h := tracer.Call1(m.Lin, x[0].On("embedding", m.Lin.Weight, last))
					next := h.Op("argmax", -1)
					return tensors{x[0].Op("index_copy", 0, x[1].Op("reshape", []int{1}), next), add(x[1], 1)}
				}, x...)
		}), [][]*tensor.Tensor{{tokenRow(1), number(1)}, {tokenRow(2), number(3)}}, ""},
		"Associative": {newFlow("x", func(m *flow, x tensors) tensors {
			return tracer.AssociativeScan(func(a, b []*tracer.Tensor) []*tracer.Tensor {
				return tensors{a[0].Op("mul.Tensor", b[0]).Op("mul.Tensor", m.Buf), add(a[1].Op("mul.Tensor", b[0]).Op("mul.Tensor", m.Buf), b[1])}
			}, tensors{x[0], add(x[0], 1)}, 0, true)
		}), [][]*tensor.Tensor{{x}}, ""},
	}
}

func (c *flowCase) export(t *testing.T) *export.Program {
	t.Helper()
	var opts []tracer.Option
	batch := tracer.MustDim("batch")
	for _, in := range strings.Fields(c.free) {
		opts = append(opts, tracer.WithDynamic(in, 0, batch))
	}
	p, err := tracer.Export(c.model, c.calls[0], opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Programs with control flow compute what the same code computes eagerly, also when taken apart.
func TestControlFlow(t *testing.T) {
	for name, c := range flows() {
		t.Run(name, func(t *testing.T) {
			p := c.export(t)
			core, err := passes.RunDecompositions(p, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range c.calls {
				want, err := tracer.Run(c.model, nil, in...)
				if err != nil {
					t.Fatal(err)
				}
				nearAny(t, name, run(t, p, in), want)
				nearAny(t, name+" decomposed", run(t, core, in), want)
			}
		})
	}
}

func nearAny(t *testing.T, name string, got []any, want []*tensor.Tensor) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d results, want %d", name, len(got), len(want))
	}
	for i, w := range want {
		if w.DType() == tensor.Int64 {
			if g := tensor.Data[int64](got[i].(*tensor.Tensor)); !slices.Equal(g, tensor.Data[int64](w)) {
				t.Errorf("%s: result %d is %v, want %v", name, i, g, tensor.Data[int64](w))
			}
			continue
		}
		near(t, name, got[i:i+1], want[i:i+1])
	}
}

// What PyTorch's control flow refuses is refused, with the line and a way out.
func TestControlFlowRefusals(t *testing.T) {
	x, p := ramp(4, 3), truthOf(true)
	type fn = func(x ...*tracer.Tensor) tensors
	plus := func(x ...*tracer.Tensor) tensors { return tensors{add(x[0], 1)} }
	branch := func(f fn) func(m *flow, x tensors) tensors {
		return func(m *flow, x tensors) tensors { return tracer.Cond(x[1], f, plus, x[0]) }
	}
	var leak *tracer.Tensor
	for _, c := range []struct {
		name string
		fn   func(m *flow, x tensors) tensors
		text string
	}{
		{"writes", branch(func(x ...*tracer.Tensor) tensors { return tensors{add(x[0].Op("add_.Tensor", 1), 1)} }), "input mutation during higher order op tracing"},
		{"writes through a view", branch(func(x ...*tracer.Tensor) tensors { x[0].Op("select.int", 0, 0).Op("add_.Tensor", 1); return plus(x...) }), "input mutation"},
		{"writes to a buffer", func(m *flow, x tensors) tensors {
			return tracer.Cond(x[1], func(x ...*tracer.Tensor) tensors { x[0].Add(m.Buf, 1); return plus(x...) }, plus, x[0])
		}, "writes to b_buf"},
		{"returns its input", branch(func(x ...*tracer.Tensor) tensors { return tensors{x[0]} }), "whose result 0 shares the memory of x"},
		{"returns a view", branch(func(x ...*tracer.Tensor) tensors { return tensors{x[0].Op("t").Op("t")} }), "do not support aliasing"},
		{"dtype", branch(func(x ...*tracer.Tensor) tensors { return tensors{x[0].Op("to.dtype", tensor.Float64)} }), "expected same dtype but got"},
		{"number", branch(func(x ...*tracer.Tensor) tensors { return tensors{add(x[0], 1), add(x[0], 2)} }), "Unmatched output spec"},
		{"dimensions", branch(func(x ...*tracer.Tensor) tensors { return tensors{add(x[0].Op("select.int", 0, 0), 1)} }), "expected same number of dimensions"},
		{"strides", branch(func(x ...*tracer.Tensor) tensors { return tensors{add(x[0].Op("reshape", []int{3, 4}).Op("t"), 1)} }), "sorted order of strides"},
		{"predicate", func(m *flow, x tensors) tensors { return tracer.Cond(x[0], plus, plus, x[0]) }, "Expected pred to be bool or single-element tensor"},
		{"predicate's type", func(m *flow, x tensors) tensors { return tracer.Cond("a", plus, plus, x[0]) }, "Expected pred to be bool or tensor, but got string"},
		{"leaks", func(m *flow, x tensors) tensors {
			tracer.Cond(x[1], func(x ...*tracer.Tensor) tensors { leak = add(x[0], 1); return tensors{leak} }, plus, x[0])
			return tensors{add(leak, 1)}
		}, "used outside of it"},
		{"grows", func(m *flow, x tensors) tensors {
			return tracer.WhileLoop(func(x ...*tracer.Tensor) *tracer.Tensor { return x[0].Op("lt.Scalar", 3).Op("all") }, func(x ...*tracer.Tensor) tensors { return tensors{tracer.Cat(0, x[0], x[0])} }, x[0])
		}, "Expected body_fn_output and carried_inputs to have same metadata"},
		{"counts", func(m *flow, x tensors) tensors {
			return tracer.WhileLoop(func(x ...*tracer.Tensor) *tracer.Tensor { return x[0].Op("lt.Scalar", 3).Op("all") }, func(x ...*tracer.Tensor) tensors { return nil }, x[0])
		}, "same number of outputs"},
		{"loop's condition", func(m *flow, x tensors) tensors {
			return tracer.WhileLoop(func(x ...*tracer.Tensor) *tracer.Tensor { return x[0].Op("lt.Scalar", 3) }, plus, x[0])
		}, "Expected cond_fn to return a scalar tensor or a bool"},
		{"not pointwise", func(m *flow, x tensors) tensors {
			return tracer.AssociativeScan(func(a, b []*tracer.Tensor) []*tracer.Tensor { return tensors{add(a[0].Op("cumsum", 0), b[0])} }, x[:1], 0, false)
		}, "needs to be pointwise: it calls aten.cumsum.default"},
	} {
		_, err := tracer.Export(newFlow("x p", c.fn), []*tensor.Tensor{x, p})
		var user *tracer.UserError
		if !errors.As(err, &user) || user.Kind != tracer.DynamicControlFlow || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "control_test.go:") {
			t.Errorf("%s: %v, want %q", c.name, err, c.text)
		}
	}
}

// PyTorch loads the programs, runs them with guards and decomposed, and makes the same graphs of the same models.
func TestPyTorchRunsControlFlow(t *testing.T) {
	python, dir := golden.Python(t), t.TempDir()
	for name, c := range flows() {
		saveCalls(t, filepath.Join(dir, name), c.model, c.export(t), c.calls)
	}
	out, err := exec.Command(python, filepath.Join("testdata", "control.py"), dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if os.Getenv("PT2_VERBOSE") != "" {
		t.Logf("%s", out)
	}
}

// saveCalls writes a program and what the model computes for some calls.
func saveCalls(t *testing.T, path string, m tracer.Module, p *export.Program, calls [][]*tensor.Tensor) {
	t.Helper()
	if err := loader.SaveFile(path+".pt2", p, loader.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	var all []any
	for _, in := range calls {
		out, err := tracer.Run(m, nil, in...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, []any{list(in), list(out)})
	}
	savePT(t, path+".calls", all)
}

func savePT(t *testing.T, path string, x any) {
	t.Helper()
	if err := tensorio.SavePT(path, x); err != nil {
		t.Fatal(err)
	}
}

// flatTensors are the leaves of what a call gives.
func flatTensors(out any) []*tensor.Tensor {
	var flat []*tensor.Tensor
	for _, x := range out.(pytree.Tuple) {
		flat = append(flat, x.(*tensor.Tensor))
	}
	return flat
}
