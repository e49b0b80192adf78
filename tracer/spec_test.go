package tracer_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor/tensorio"
	"github.com/pt2go/pt2/tracer"
	f "github.com/pt2go/pt2/tracer/functional"
)

// scaled multiplies by an integer that may be free.
type scaled struct{}

func (scaled) InputNames() []string { return []string{"x", "n"} }

func (scaled) Forward(x *tracer.Tensor, n symbolic.Int) *tracer.Tensor { return x.Op("mul.Tensor", n) }

type specCase struct {
	model   any
	args    []any
	other   []any // leaves of another call
	refused []any // leaves that the program's checks refuse
	spec    tracer.ShapesSpec
}

// specCases have the same models and specifications in testdata/specs.py.
func specCases() map[string]specCase {
	b, d := tracer.NewShapeVar("b", tracer.Min(2), tracer.Max(64)), tracer.NewShapeVar("b", tracer.Min(2))
	s := tracer.NewShapeVar("s")
	n := tracer.NewIntVar("n", tracer.Min(1), tracer.Max(9))
	x, y := ramp(4, 3), ramp(8, 3)
	return map[string]specCase{
		"one": {asks(func(x, y *tracer.Tensor) any { return x.Op("add.Tensor", 1) }), []any{x, y}, []any{ramp(64, 3), y}, []any{ramp(1, 3), y},
			tracer.ShapesSpec{Params: tracer.ParamsSpec{"x": tracer.TensorSpec{b, nil}}}},
		"derived": {asks(func(x, y *tracer.Tensor) any { return []any{f.AddTensor(tracer.Cat(0, x, x), y), x.Size(0)} }), []any{x, y}, []any{ramp(5, 3), ramp(10, 3)}, []any{ramp(5, 3), ramp(9, 3)},
			tracer.ShapesSpec{Params: tracer.ParamsSpec{"x": tracer.TensorSpec{d, nil}, "i": tracer.TensorSpec{d.Mul(2), 3}}}},
		"same": {asks(func(x, y *tracer.Tensor) any { return f.AddTensor(x, y) }), []any{x, x}, []any{ramp(5, 3), ramp(5, 3)}, []any{ramp(5, 3), ramp(6, 3)},
			tracer.ShapesSpec{Params: tracer.ParamsSpec{"x": tracer.TensorSpec{s, nil}, "i": tracer.TensorSpec{s, nil}}}},
		"reshape": {asks(func(x, y *tracer.Tensor) any {
			return []any{x.Op("reshape", []int64{-1}), x.Op("view", []symbolic.Int{x.Size(0).MulN(3)})}
		}), []any{x, y}, []any{ramp(1, 3), y}, nil, tracer.ShapesSpec{Params: tracer.ParamsSpec{"x": tracer.TensorSpec{s, nil}}}},
		"integer": {scaled{}, []any{x, 5}, []any{x, int64(9)}, []any{x, int64(10)}, tracer.ShapesSpec{Params: tracer.ParamsSpec{"n": n}}},
	}
}

func exportSpec(t *testing.T, name string, c specCase) *export.Program {
	t.Helper()
	p, err := tracer.Export(c.model, c.args, tracer.WithShapes(c.spec))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// Programs check what their specifications say while they run, and have no guards.
func TestShapesSpec(t *testing.T) {
	for name, c := range specCases() {
		p := exportSpec(t, name, c)
		if g := p.GuardsCode(); len(g) > 0 {
			t.Errorf("%s: guards %q", name, g)
		}
		want, err := tracer.RunCall(c.model, nil, c.other)
		if err != nil {
			t.Fatal(err)
		}
		got, err := runLeaves(p, c.other...)
		if err != nil {
			t.Errorf("%s: %v\n%v", name, err, p)
			continue
		}
		sameLeaves(t, name, got, flat(t, want))
		if c.refused == nil {
			continue
		}
		if _, err := runLeaves(p, c.refused...); err == nil {
			t.Errorf("%s: %v\n%v", name, err, p)
		}
	}
}

func TestAssumptions(t *testing.T) {
	a, b := tracer.NewShapeVar("a"), tracer.NewShapeVar("b", tracer.Max(9))
	m := asks(func(x, y *tracer.Tensor) any { return f.AddTensor(f.Sum(x), f.Sum(y)) })
	p, err := tracer.Export(m, []any{ramp(4, 3), ramp(8, 3)}, tracer.WithShapes(tracer.ShapesSpec{
		Params:      tracer.ParamsSpec{"x": tracer.TensorSpec{a, nil}, "i": tracer.TensorSpec{b, 3}},
		Assumptions: []*tracer.Assumption{a.Mul(2).Eq(b), b.Mod(4).Eq(0), a.Le(b)},
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		x, y int64
		ok   bool
	}{{4, 8, true}, {2, 4, true}, {3, 6, false}, {2, 5, false}, {6, 12, false}} {
		if _, err := runLeaves(p, ramp(c.x, 3), ramp(c.y, 3)); (err == nil) != c.ok {
			t.Errorf("%d, %d: %v\n%v", c.x, c.y, err, p)
		}
	}
}

// attached carries its specification.
type attached struct{ asks }

func (attached) DynamicSpec() tracer.ShapesSpec {
	return tracer.ShapesSpec{Params: tracer.ParamsSpec{"x": tracer.TensorSpec{tracer.NewShapeVar("rows"), nil}}}
}

func TestShapesSpecStructures(t *testing.T) {
	n := tracer.NewShapeVar("n", tracer.Min(1))
	spec := tracer.ShapesSpec{Params: tracer.ParamsSpec{"x": nil, "y": tracer.SeqSpec{tracer.TensorSpec{n}, tracer.DictSpec{"k": tracer.TensorSpec{nil, n.Add(1)}}}}}
	c := shapeCases()["nested"]
	p, err := tracer.Export(c.model, c.args, append(c.opts[:1:1], tracer.WithShapes(spec))...)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.RangeConstraints(); len(got) != 2 || got[0].Expr != "u0" || got[1].Expr != "u1" || *got[1].Min != 2 {
		t.Error(got)
	}
	r := shapeCases()["records"]
	spec = tracer.ShapesSpec{Params: tracer.ParamsSpec{"x": tracer.TensorSpec{n, nil}, "s": tracer.ObjectSpec{"Bias": tracer.TensorSpec{3}}}}
	p, err = tracer.Export(r.model, r.args, append(r.opts[:1:1], tracer.WithShapes(spec))...)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.RangeConstraints(); len(got) != 1 || got[0].Expr != "u0" || *got[0].Min != 1 {
		t.Error(got)
	}
	p, err = tracer.Export(attached{func(x, i *tracer.Tensor) any { return f.Neg(x) }}, []any{ramp(4, 3), ramp(2)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runLeaves(p, ramp(7, 3), ramp(2)); err != nil {
		t.Error(err)
	}
}

func TestShapesSpecRefusals(t *testing.T) {
	m := asks(func(x, i *tracer.Tensor) any {
		if x.Size(0).Gt(symbolic.N(3)) {
			return x
		}
		return f.Neg(x)
	})
	args := []any{ramp(4, 3), ramp(2)}
	v, w := tracer.NewShapeVar("v"), tracer.NewShapeVar("w")
	of := func(p tracer.ParamsSpec) tracer.Option { return tracer.WithShapes(tracer.ShapesSpec{Params: p}) }
	for _, c := range []struct {
		opts []tracer.Option
		text string
	}{
		{[]tracer.Option{of(tracer.ParamsSpec{"x": tracer.TensorSpec{v, nil}})}, "Could not guard on data-dependent expression u0 > 3"},
		{[]tracer.Option{of(tracer.ParamsSpec{"x": tracer.TensorSpec{4, 4}})}, "shapes_spec declares dim 1 as static with value 4, but got 3"},
		{[]tracer.Option{of(tracer.ParamsSpec{"x": tracer.TensorSpec{4}})}, "TensorSpec has 1 dims but tensor L['x'] has 2 dims"},
		{[]tracer.Option{of(tracer.ParamsSpec{"z": nil})}, "ParamsSpec has entries ['z'] that do not match any argument passed to export(). Spec keys must be forward parameter names that were actually passed. Inputs received: ['x', 'i']."},
		{[]tracer.Option{of(tracer.ParamsSpec{"x": tracer.TensorSpec{v, nil}}), tracer.PreferDeferredRuntimeAsserts()}, "cannot be combined"},
		{[]tracer.Option{of(tracer.ParamsSpec{"x": tracer.TensorSpec{tracer.NewShapeVar("v", tracer.Min(-1)), nil}})}, "ShapeVar requires min >= 0 (a shape dim is non-negative); got min=-1"},
		{[]tracer.Option{of(tracer.ParamsSpec{"x": tracer.TensorSpec{v.Add("1"), nil}})}, "a string is used with the variable v"},
		{[]tracer.Option{of(tracer.ParamsSpec{"x": tracer.SeqSpec{nil}})}, "is given for L['x']"},
		{[]tracer.Option{tracer.WithShapes(tracer.ShapesSpec{Params: tracer.ParamsSpec{"x": tracer.TensorSpec{v, nil}}, Assumptions: []*tracer.Assumption{w.Gt(v)}})}, "has a variable that no input holds by itself"},
	} {
		_, err := tracer.Export(m, args, c.opts...)
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v\nwant %q", err, c.text)
		}
	}
	_, err := tracer.Export(attached{m}, args, of(nil))
	var user *tracer.UserError
	if !errors.As(err, &user) {
		t.Error(err)
	}
}

// The same models and specifications in Python give the same graphs and ranges.
func TestPyTorchHasTheSameSpecs(t *testing.T) {
	python, dir := golden.Python(t), t.TempDir()
	for name, c := range specCases() {
		p := exportSpec(t, name, c)
		if err := loader.SaveFile(filepath.Join(dir, name+".pt2"), p, loader.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		want, err := tracer.RunCall(c.model, nil, c.other)
		if err != nil {
			t.Fatal(err)
		}
		if err := tensorio.SavePT(filepath.Join(dir, name+".calls"), []any{c.other, flat(t, want), c.refused}); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(python, filepath.Join("testdata", "specs.py"), dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
