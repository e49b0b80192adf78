package tracer_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tracer"
)

// ownOps are the operators that testdata/operators.py registers in PyTorch.
func ownOps() []*aten.Op {
	like := func(i int) func(a *aten.Args) []aten.Meta {
		return func(a *aten.Args) []aten.Meta {
			x := a.Tensor(i)
			return []aten.Meta{aten.Contig(x.DType, x.Sizes...)}
		}
	}
	data := func(t *tensor.Tensor) []float32 { return tensor.Data[float32](t) }
	return []*aten.Op{
		{Schema: "mylib::scaled(Tensor x, float a=2.0) -> Tensor", Shape: like(0), CPU: func(k *aten.Kernel) {
			for i, v := range data(k.T(0)) {
				data(k.Out[0])[i] = v * float32(k.Float(1))
			}
		}},
		{Schema: "mylib::accum(Tensor(a!) x, Tensor y, float a=1.0) -> ()", CPU: func(k *aten.Kernel) {
			x, y := k.T(0), data(k.T(1))
			for i := range data(x) {
				data(x)[i] += y[i%len(y)] * float32(k.Float(2))
			}
		}},
		{Schema: "mylib::both(Tensor(a!)[] xs, Tensor y) -> Tensor", Shape: like(1), CPU: func(k *aten.Kernel) {
			for _, x := range k.Tensors(0) {
				d := data(x.T)
				for i, v := range data(k.T(1)) {
					d[i] += v
				}
			}
			for i, v := range data(k.T(1)) {
				data(k.Out[0])[i] = 2 * v
			}
		}},
		{Schema: "mylib::halves(Tensor x) -> Tensor[]", Shape: func(a *aten.Args) []aten.Meta {
			x := a.Tensor(0)
			s := append([]symbolic.Int{x.Sizes[0].DivN(2)}, x.Sizes[1:]...)
			return []aten.Meta{aten.Contig(x.DType, s...), aten.Contig(x.DType, s...)}
		}, CPU: func(k *aten.Kernel) {
			d := data(k.T(0))
			copy(data(k.Out[0]), d)
			copy(data(k.Out[1]), d[len(data(k.Out[0])):])
		}},
	}
}

// ownModel calls all of them.
func ownModel() *flow {
	return newFlow("x y", func(m *flow, x tensors) tensors {
		s := x[0].Op("mylib::scaled", 3.0)
		x[0].OnN("mylib::accum", m.Buf, x[1], 2.0)
		x[0].OnN("mylib::accum", s, x[1])
		z := add(s, m.Buf)
		r := x[0].On("mylib::both", tracer.Operands{z.Op("select.int", 0, 0), z.Op("select.int", 0, 1)}, x[1])
		h := z.Ops("mylib::halves")
		return tensors{z, r, add(h[0], h[1])}
	})
}

// Operators of one's own run eagerly, in programs, and in those that were saved, loaded or taken apart.
func TestOwnOperators(t *testing.T) {
	in := []*tensor.Tensor{ramp(4, 3), ramp(3)}
	p, err := tracer.Export(ownModel(), in, tracer.WithOps(ownOps()...), tracer.WithDynamic("x", 0, tracer.MustDim("half").Mul(2)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "own.pt2")
	if err := loader.SaveFile(path, p, loader.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	reg, err := aten.NewRegistry(aten.Builtin(), ownOps()...)
	if err != nil {
		t.Fatal(err)
	}
	core, err := passes.RunDecompositions(p, nil, reg)
	if err != nil {
		t.Fatal(err)
	}
	if text := core.String(); strings.Count(text, "auto_functionalized_v2(torch.ops.mylib.") != 3 {
		t.Errorf("%s", text)
	}
	decomposed, err := interp.New(core, interp.Options{Registry: reg})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := pt2.Load(path, pt2.WithOps(ownOps()...))
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	eager := ownModel()
	for _, in := range [][]*tensor.Tensor{in, {ramp(6, 3), ramp(3)}} {
		out, err := tracer.RunCall(eager, nil, in, tracer.WithOps(ownOps()...))
		if err != nil {
			t.Fatal(err)
		}
		want := flatTensors(out)
		got, err := loaded.RunTensors(context.Background(), in...)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "loaded", list(got), want)
		again, err := decomposed.Run(context.Background(), list(in)...)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "decomposed", again, want)
	}
	if _, err := pt2.Load(path); err == nil || !strings.Contains(err.Error(), "torch.ops.mylib.scaled.default") || !strings.Contains(err.Error(), "mylib.both") {
		t.Errorf("loaded without the operators: %v", err)
	}
}

func TestOwnOperatorRefusals(t *testing.T) {
	x := []*tensor.Tensor{ramp(4, 3)}
	call := func(name string) *flow {
		return newFlow("x", func(m *flow, x tensors) tensors { return tensors{x[0].Op(name)} })
	}
	dynamic := func(k *aten.Kernel) []*tensor.Tensor { return nil }
	for _, c := range []struct{ op, schema, text string }{
		{"mylib::zz", "mylib::scaled(Tensor x) -> Tensor", "mylib.zz.default is not registered: give it by tracer.WithOps (operators_test.go:"},
		{"zz", "mylib::scaled(Tensor x) -> Tensor", "there is no operator aten.zz.default"},
		{"mylib::scaled", "mylib::scaled(Tensor x) -> Tensor", "no function that describes its results (register_fake of torch.library)"},
		{"mylib::scaled", "mylib::scaled(Tensor x -> Tensor", "the operators: "},
	} {
		_, err := tracer.Export(call(c.op), x, tracer.WithOps(&aten.Op{Schema: c.schema, Dynamic: dynamic}))
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", c.op, err, c.text)
		}
	}
	shape := func(a *aten.Args) []aten.Meta {
		return []aten.Meta{aten.Contig(a.Tensor(0).DType, a.Tensor(0).Sizes...)}
	}
	if _, err := tracer.RunCall(call("mylib::scaled"), nil, x, tracer.WithOps(&aten.Op{Schema: "mylib::scaled(Tensor x) -> Tensor", Shape: shape})); err == nil || !strings.Contains(err.Error(), "no kernel") {
		t.Error(err)
	}
}

// PyTorch, with the same operators registered there, runs the programs.
func TestPyTorchRunsOwnOperators(t *testing.T) {
	python, dir := golden.Python(t), t.TempDir()
	in := []*tensor.Tensor{ramp(4, 3), ramp(3)}
	p, err := tracer.Export(ownModel(), in, tracer.WithOps(ownOps()...))
	if err != nil {
		t.Fatal(err)
	}
	reg, err := aten.NewRegistry(aten.Builtin(), ownOps()...)
	if err != nil {
		t.Fatal(err)
	}
	core, err := passes.RunDecompositions(p, nil, reg)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*export.Program{"own": p, "core": core} {
		if err := loader.SaveFile(filepath.Join(dir, name+".pt2"), p, loader.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		out, err := tracer.RunCall(ownModel(), nil, in, tracer.WithOps(ownOps()...))
		if err != nil {
			t.Fatal(err)
		}
		savePT(t, filepath.Join(dir, name+".calls"), []any{list(in), list(flatTensors(out))})
	}
	if out, err := exec.Command(python, filepath.Join("testdata", "operators.py"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
