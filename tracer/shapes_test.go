package tracer_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
	"github.com/pt2go/pt2/tracer"
	f "github.com/pt2go/pt2/tracer/functional"
)

// nested takes and gives containers, numbers and strings.
type nested struct{}

func (nested) InputNames() []string { return []string{"x", "y", "n", "flag", "mode"} }

func (nested) Forward(x *tracer.Tensor, y []any, n int64, flag bool, mode string) (map[string]any, *tracer.Tensor) {
	z := f.SubScalar(x, 1)
	if flag && mode == "up" {
		z = f.AddScalar(x, 1)
	}
	first, second := y[0].(*tracer.Tensor), y[1].(pytree.Dict)[0].Value.(*tracer.Tensor)
	sum := f.AddTensor(f.SumDimIntList(z, []int64{0}), f.SliceTensor(first, f.Kw("end", x.Size(1))))
	return map[string]any{"a": sum, "b": []any{f.MulScalar(z, n), second, n, nil}}, x
}

// setting stands for a dataclass.
type setting struct {
	Scale float64
	Bias  *tracer.Tensor
}

type records struct{}

func (records) InputNames() []string { return []string{"x", "s"} }

func (records) Forward(x *tracer.Tensor, s setting) setting {
	return setting{s.Scale * 2, f.AddTensor(f.MulScalar(x, s.Scale), s.Bias)}
}

// shifted adds rows to the rows after.
type shifted struct{}

func (shifted) InputNames() []string { return []string{"x", "y"} }

func (shifted) Forward(x, y *tracer.Tensor) *tracer.Tensor {
	return f.AddTensor(x, f.SliceTensor(y, f.Kw("start", 1)))
}

// halves needs an even number of rows, and takes a free integer.
type halves struct{}

func (halves) InputNames() []string { return []string{"x", "n"} }

func (halves) Forward(x *tracer.Tensor, n symbolic.Int) *tracer.Tensor {
	return f.MulScalar(f.Reshape(x, []any{2, x.Size(0).DivN(2), x.Size(1)}), n)
}

// long does other things for more than four rows.
type long struct{}

func (long) InputNames() []string { return []string{"x"} }

func (long) Forward(x *tracer.Tensor) *tracer.Tensor {
	if x.Size(0).Gt(symbolic.N(4)) {
		return f.AddScalar(x, 1)
	}
	return f.SubScalar(x, 1)
}

// pinned takes the number of rows as a number.
type pinnedRows struct{}

func (pinnedRows) InputNames() []string { return []string{"x"} }

func (pinnedRows) Forward(x *tracer.Tensor) *tracer.Tensor {
	return f.MulScalar(x, x.Size(0).Int64())
}

type shapeCase struct {
	model   any
	args    []any
	opts    []tracer.Option
	other   []any // leaves of another call
	refused []any // leaves that guards refuse
	ranges  string
	guards  []string
}

var shapeRegistry = func() *pytree.Registry {
	r := &pytree.Registry{}
	if err := pytree.RegisterStruct[setting](r, "demo.Setting"); err != nil {
		panic(err)
	}
	return r
}()

func shapeCases() map[string]shapeCase {
	b := tracer.MustDim("b", tracer.Min(5), tracer.Max(64))
	auto := tracer.WithShapes(tracer.ShapesList{tracer.DimMap{0: tracer.Auto}, tracer.DimMap{0: tracer.Auto}})
	return map[string]shapeCase{
		"nested": {nested{}, []any{ramp(6, 3), []any{ramp(8), map[string]any{"k": ramp(2, 4)}}, 3},
			[]tracer.Option{tracer.WithKwargs(pytree.Dict{{Key: "flag", Value: true}, {Key: "mode", Value: "up"}}),
				tracer.WithShapes(tracer.Shapes{"x": tracer.DimMap{0: b}, "y": []any{nil, map[string]any{"k": tracer.DimList{tracer.Auto, tracer.Dynamic}}}, "n": nil, "flag": nil, "mode": nil})},
			[]any{ramp(9, 3), ramp(8), ramp(5, 7), int64(3), true, "up"}, []any{ramp(4, 3), ramp(8), ramp(5, 7), int64(3), true, "up"}, "s0 VR[5, 64], s1 VR[2, int_oo], s2 VR[2, int_oo]", nil},
		"records": {records{}, []any{ramp(2, 3), setting{1.5, tracer.Example(ramp(3))}}, []tracer.Option{tracer.WithRegistry(shapeRegistry), tracer.WithDynamic("x", 0, tracer.Dynamic)},
			[]any{ramp(7, 3), 1.5, ramp(3)}, []any{ramp(7, 4), 1.5, ramp(3)}, "s0 VR[2, int_oo]", nil},
		"derived": {shifted{}, []any{ramp(6, 3), ramp(7, 3)}, []tracer.Option{tracer.WithShapes(tracer.Shapes{"x": tracer.DimMap{0: b}, "y": tracer.DimMap{0: b.Add(1)}})},
			[]any{ramp(9, 3), ramp(10, 3)}, []any{ramp(9, 3), ramp(9, 3)}, "s0 VR[5, 64], s0 + 1 VR[6, 65]", []string{"L['x'].size()[0] == (L['y'].size()[0] - 1)"}},
		"tied": {shifted{}, []any{ramp(6, 3), ramp(7, 3)}, []tracer.Option{auto},
			[]any{ramp(9, 3), ramp(10, 3)}, []any{ramp(9, 3), ramp(9, 3)}, "s0 VR[2, int_oo], s0 + 1 VR[3, int_oo]", []string{"L['x'].size()[0] == (L['y'].size()[0] - 1)"}},
		"even": {halves{}, []any{ramp(6, 3), 5}, []tracer.Option{tracer.WithShapes(tracer.Shapes{"x": tracer.DimMap{0: tracer.Auto}, "n": tracer.Dynamic})},
			[]any{ramp(8, 3), int64(9)}, []any{ramp(9, 3), int64(9)}, "s0 VR[2, int_oo], s1 VR[0, int_oo]", []string{"(L['x'].size()[0] % 2) == 0", "(L['x'].size()[0]//2) != 1"}},
		"root": {halves{}, []any{ramp(6, 3), 5}, []tracer.Option{tracer.WithShapes(tracer.Shapes{"x": tracer.DimMap{0: tracer.MustDim("half", tracer.Min(2)).Mul(2)}, "n": nil})},
			[]any{ramp(8, 3), int64(5)}, []any{ramp(9, 3), int64(5)}, "s0 VR[2, int_oo], 2*s0 VR[4, int_oo]", []string{"(L['x'].size()[0] % 2) == 0"}},
		"long": {long{}, []any{ramp(6, 3)}, []tracer.Option{tracer.WithDynamic("x", 0, tracer.Auto)}, []any{ramp(5, 3)}, []any{ramp(4, 3)}, "s0 VR[5, int_oo]", nil},
		"pinned": {pinnedRows{}, []any{ramp(6, 3)}, []tracer.Option{tracer.WithDynamic("x", 0, tracer.Auto), tracer.WithDynamic("x", 1, tracer.Auto)},
			[]any{ramp(6, 4)}, []any{ramp(5, 3)}, "s1 VR[2, int_oo]", nil},
	}
}

func exportCase(t *testing.T, name string, c shapeCase) *export.Program {
	t.Helper()
	p, err := tracer.Export(c.model, c.args, c.opts...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// flat gives the leaves of a call.
func flat(t *testing.T, v any) []any {
	t.Helper()
	leaves, _, err := (shapeRegistry).Flatten(v)
	if err != nil {
		t.Fatal(err)
	}
	return leaves
}

// Programs of models with inputs of all kinds and with free sizes compute what the code does, refuse what it does not hold for, and say so
// in ranges and guards.
func TestShapes(t *testing.T) {
	for name, c := range shapeCases() {
		p := exportCase(t, name, c)
		var ranges []string
		for _, r := range p.RangeConstraints() {
			ranges = append(ranges, r.Expr+" "+r.String())
		}
		if got := strings.Join(ranges, ", "); got != c.ranges {
			t.Errorf("%s: ranges %s, want %s", name, got, c.ranges)
		}
		if !slices.Equal(p.GuardsCode(), c.guards) {
			t.Errorf("%s: guards %q, want %q", name, p.GuardsCode(), c.guards)
		}
		m, err := interp.New(p, interp.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := m.Run(context.Background(), c.other...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := eagerLeaves(t, c)
		for i := range want {
			x, ok := want[i].(*tensor.Tensor)
			if !ok {
				if got[i] != want[i] {
					t.Errorf("%s: output %d is %v, want %v", name, i, got[i], want[i])
				}
				continue
			}
			near(t, name, got[i:i+1], []*tensor.Tensor{x})
		}
		if _, err := m.Run(context.Background(), c.refused...); err == nil {
			t.Errorf("%s takes inputs beyond what it holds for", name)
		}
	}
}

// eagerLeaves runs the code on the other inputs.
func eagerLeaves(t *testing.T, c shapeCase) []any {
	t.Helper()
	var args []any
	opts := c.opts
	switch c.model.(type) {
	case nested:
		args = []any{c.other[0], []any{c.other[1], map[string]any{"k": c.other[2]}}, c.other[3]}
	case records:
		args = []any{c.other[0], setting{c.other[1].(float64), tracer.Example(c.other[2].(*tensor.Tensor))}}
	default:
		args = c.other
	}
	out, err := tracer.RunCall(c.model, nil, args, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return flat(t, out)
}

// PyTorch loads these programs, computes the same, and refuses what they refuse.
func TestPyTorchKeepsShapes(t *testing.T) {
	python, dir := golden.Python(t), t.TempDir()
	for name, c := range shapeCases() {
		p := exportCase(t, name, c)
		if err := loader.SaveFile(filepath.Join(dir, name+".pt2"), p, loader.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := tensorio.SavePT(filepath.Join(dir, name+".calls"), []any{c.other, eagerLeaves(t, c), c.refused}); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(python, filepath.Join("testdata", "shapes.py"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// What the code does against what is asked of sizes is refused in PyTorch's words, with fixes.
func TestViolations(t *testing.T) {
	p, q := tracer.MustDim("p"), tracer.MustDim("q")
	six, seven := ramp(6, 3), ramp(7, 3)
	for _, c := range []struct {
		model any
		args  []any
		opt   tracer.Option
		kind  tracer.ErrorKind
		text  string
	}{
		{shifted{}, []any{six, seven}, tracer.WithShapes(tracer.ShapesList{tracer.DimMap{0: p}, tracer.DimMap{0: q}}), tracer.ConstraintViolation,
			"The values of q = L['y'].size()[0] must always be related to the values of p = L['x'].size()[0] by q = p + 1.\nSuggested fixes:\n  q = p + 1"},
		{halves{}, []any{six, 5}, tracer.WithDynamic("x", 0, p), tracer.ConstraintViolation, "Suggested fixes:\n  _p = Dim('_p', min=1)\n  p = 2*_p"},
		{long{}, []any{six}, tracer.WithDynamic("x", 0, p), tracer.ConstraintViolation, "Suggested fixes:\n  p = Dim('p', min=5)"},
		{pinnedRows{}, []any{six}, tracer.WithDynamic("x", 0, p), tracer.ConstraintViolation, "p was inferred to be a constant (6).\nSuggested fixes:\n  p = 6"},
		{pinnedRows{}, []any{six}, tracer.WithDynamic("x", 0, tracer.Dynamic), tracer.ConstraintViolation, "You marked L['x'].size()[0] as dynamic but your code specialized it to be a constant (6)"},
		{long{}, []any{six}, tracer.WithShapes(tracer.Shapes{"z": nil}), tracer.InvalidInput, "its top-level keys must be the arg names ['x']"},
		{long{}, []any{six}, tracer.WithShapes(tracer.Shapes{"x": tracer.DimList{nil}}), tracer.InvalidInput, "to have the same length as the actual tensor shape"},
		{long{}, []any{six}, tracer.WithDynamic("x", 0, tracer.Size(5)), tracer.ConstraintViolation, "Static shape constraint of 5 does not match input size of 6"},
		{long{}, []any{six, six}, tracer.WithShapes(nil), tracer.InvalidInput, "got 2 examples"},
		{long{}, []any{"six"}, tracer.WithShapes(nil), tracer.InvalidInput, "the input x"},
		{shifted{}, []any{six, seven}, tracer.WithKwargs(pytree.Dict{{Key: "z", Value: 1}}), tracer.InvalidInput, "unexpected keyword argument 'z'"},
		{shifted{}, []any{six, seven}, tracer.WithShapes(tracer.ShapesList{tracer.DimMap{0: p}, tracer.DimMap{0: p.Mul(-1)}}), tracer.InvalidInput, "where a positive integer was expected"},
	} {
		_, err := tracer.Export(c.model, c.args, c.opt)
		var user *tracer.UserError
		if !errors.As(err, &user) || user.Kind != c.kind || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%T: %v\nwant %s with %q", c.model, err, c.kind, c.text)
		}
	}
}
