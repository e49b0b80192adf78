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
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
	"github.com/pt2go/pt2/tracer"
	f "github.com/pt2go/pt2/tracer/functional"
)

// asks is a model of two inputs that is one function.
type asks func(x, i *tracer.Tensor) any

func (asks) InputNames() []string { return []string{"x", "i"} }

func (m asks) Forward(x, i *tracer.Tensor) any { return m(x, i) }

type dataCase struct {
	model   asks
	i       *tensor.Tensor // the second input: an integer or a list of them
	other   *tensor.Tensor // of another call
	refused *tensor.Tensor // of a call that must fail, nil if there is none
	dynamic bool           // the rows of x are free
}

func ints(v ...int64) *tensor.Tensor {
	t, err := tensor.FromSlice(v, int64(len(v)))
	if err != nil {
		panic(err)
	}
	return t
}

func int0(v int64) *tensor.Tensor {
	t := tensor.New(tensor.Int64)
	tensor.Data[int64](t)[0] = v
	return t
}

func float0(v float32) *tensor.Tensor {
	t := tensor.New(tensor.Float32)
	tensor.Data[float32](t)[0] = v
	return t
}

// dataCases have the same model in testdata/unbacked.py, each under its name.
func dataCases() map[string]dataCase {
	n0 := symbolic.N(0)
	return map[string]dataCase{
		"item_checks": {func(x, i *tracer.Tensor) any {
			n := i.Int()
			tracer.Check(tracer.Ge(n, 2))
			tracer.Check(tracer.Lt(n, x.Size(0)))
			return []any{x.Op("slice.Tensor", 0, nil, n), x.On("zeros", []symbolic.Int{n})}
		}, int0(3), int0(2), int0(1), false},
		"item_checks_dynamic": {func(x, i *tracer.Tensor) any {
			n := i.Int()
			tracer.Check(tracer.Ge(n, 2))
			tracer.Check(tracer.Lt(n, x.Size(0)))
			return []any{x.Op("slice.Tensor", 0, nil, n), x.On("zeros", []symbolic.Int{n})}
		}, int0(3), int0(2), int0(6), true},
		"is_size": {func(x, i *tracer.Tensor) any {
			n := i.Int()
			tracer.CheckIsSize(n, 7)
			return x.On("zeros", []symbolic.Int{n}).Op("add.Tensor", 1)
		}, int0(3), int0(7), int0(8), false},
		"check_mod": {func(x, i *tracer.Tensor) any {
			n := i.Int()
			tracer.Check(tracer.Eq(n.Mod(symbolic.N(2)), 0), "even")
			return []any{x.Op("mul.Tensor", n), n}
		}, int0(4), int0(8), int0(5), false},
		"item_zeros": {func(x, i *tracer.Tensor) any { return x.On("zeros", []symbolic.Int{i.Int()}) }, int0(4), int0(1), int0(-1), false},
		"item_float": {func(x, i *tracer.Tensor) any {
			n := i.Float()
			return []any{x.Op("mul.Tensor", n.Add(1.5)), n.Mul(2)}
		}, float0(4.5), float0(-1), nil, false},
		"split": {func(x, i *tracer.Tensor) any {
			parts := i.Ops("unbind.int")
			a, b := parts[0].Int(), parts[1].Int()
			tracer.Check(tracer.Eq(a.Add(b), x.Size(0)))
			tracer.Check(tracer.Ge(a, 0))
			tracer.Check(tracer.Ge(b, 0))
			out := x.Ops("split_with_sizes", []symbolic.Int{a, b})
			return []any{out[0], out[1]}
		}, ints(1, 3), ints(4, 0), ints(2, 3), false},
		"bool_mask": {func(x, i *tracer.Tensor) any {
			return f.IndexTensor(x, tracer.Operands{f.GtScalar(x, 0)})
		}, int0(0), int0(0), nil, false},
		"masked_select": {func(x, i *tracer.Tensor) any { return f.Sum(f.MaskedSelect(x, f.GtScalar(x, 0))) }, int0(0), int0(0), nil, true},
		"unique": {func(x, i *tracer.Tensor) any {
			a, b := x.Ops("_unique2"), x.Ops("_unique2", true, false, true)
			return []any{a[0], b[2]}
		}, int0(0), int0(0), nil, false},
		"repeat": {func(x, i *tracer.Tensor) any { return x.Op("repeat_interleave.self_Tensor", i, 0) }, ints(1, 2, 0, 3), ints(0, 0, 1, 0), ints(1, 2, -1, 3), false},
		"nonzero_check": {func(x, i *tracer.Tensor) any {
			n := f.Nonzero(x).Size(0)
			tracer.Check(tracer.Gt(n, 0))
			return x.On("zeros", []symbolic.Int{n})
		}, int0(0), int0(0), nil, false},
		"nonzero_equal": {func(x, i *tracer.Tensor) any {
			a, b := f.Nonzero(x), f.Nonzero(f.NeScalar(x, 0))
			tracer.Check(tracer.Eq(a.Size(0), b.Size(0)))
			return f.AddTensor(a, b)
		}, int0(0), int0(0), nil, false},
		"nonzero_reshape": {func(x, i *tracer.Tensor) any {
			return []any{f.Reshape(f.Nonzero(x), []int64{-1}), f.Nonzero(x).Size(0)}
		}, int0(0), int0(0), nil, false},
		"select_checked": {func(x, i *tracer.Tensor) any {
			n := i.Int()
			tracer.Check(tracer.Lt(n, 4))
			tracer.Check(tracer.Ge(n, n0))
			return f.SelectInt(x, 0, n)
		}, int0(2), int0(0), int0(-1), false},
		"narrow": {func(x, i *tracer.Tensor) any {
			n := i.Int()
			tracer.Check(tracer.Ge(n, 0))
			tracer.Check(tracer.Le(n, 4))
			return []any{x.Op("narrow", 0, 0, n), x.On("arange", n), f.SumDimIntList(x.Op("new_ones", []symbolic.Int{n, symbolic.N(2)}), []int64{0})}
		}, int0(2), int0(4), int0(5), false},
	}
}

func exportData(t *testing.T, name string, c dataCase) *export.Program {
	t.Helper()
	var opts []tracer.Option
	if c.dynamic {
		opts = append(opts, tracer.WithDynamic("x", 0, tracer.MustDim("batch", tracer.Min(3))))
	}
	p, err := tracer.Export(c.model, []any{ramp(4, 3), c.i}, opts...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// Programs give what the eager run gives, also for other data, and refuse data that the code ruled out.
func TestUnbacked(t *testing.T) {
	for name, c := range dataCases() {
		p := exportData(t, name, c)
		for _, i := range []*tensor.Tensor{c.i, c.other} {
			want, err := tracer.RunCall(c.model, nil, []any{ramp(4, 3), i})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got, err := runLeaves(p, ramp(4, 3), i)
			if err != nil {
				t.Errorf("%s: %v\n%v", name, err, p)
				continue
			}
			sameLeaves(t, name, got, flat(t, want))
		}
		if c.refused != nil {
			if out, err := runLeaves(p, ramp(4, 3), c.refused); err == nil {
				t.Errorf("%s takes %v and gives %v\n%v", name, c.refused, out, p)
			}
		}
	}
}

func runLeaves(p *export.Program, leaves ...any) ([]any, error) {
	m, err := interp.New(p, interp.Options{})
	if err != nil {
		return nil, err
	}
	return m.Run(context.Background(), leaves...)
}

func sameLeaves(t *testing.T, name string, got, want []any) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d results, want %d", name, len(got), len(want))
		return
	}
	for i := range want {
		x, ok := want[i].(*tensor.Tensor)
		if !ok {
			if got[i] != want[i] {
				t.Errorf("%s: output %d is %v, want %v", name, i, got[i], want[i])
			}
			continue
		}
		if x.DType() == tensor.Int64 {
			y := got[i].(*tensor.Tensor)
			if !slices.Equal(x.Sizes(), y.Sizes()) || !slices.Equal(tensor.Contiguous[int64](x), tensor.Contiguous[int64](y)) {
				t.Errorf("%s: output %d is %v, want %v", name, i, y, x)
			}
			continue
		}
		near(t, name, got[i:i+1], []*tensor.Tensor{x})
	}
}

// What only data can answer is refused in PyTorch's words, with the line of the code.
func TestDataDependentErrors(t *testing.T) {
	for _, c := range []struct {
		model asks
		i     *tensor.Tensor
		text  string
	}{
		{func(x, i *tracer.Tensor) any {
			if i.Int().Gt(symbolic.N(2)) {
				return x
			}
			return f.Neg(x)
		}, int0(3), "Could not guard on data-dependent expression u0 > 2 (unhinted: u0 > 2).  (Size-like symbols: none)"},
		{func(x, i *tracer.Tensor) any {
			if tracer.Eq(i.Int(), 0).Value() {
				return x
			}
			return f.Neg(x)
		}, int0(3), "Could not guard on data-dependent expression Eq(u0, 0) (unhinted: Eq(u0, 0))"},
		{func(x, i *tracer.Tensor) any { return f.MulScalar(x, i.Int().Int64()) }, int0(3), "Could not extract specialized integer from data-dependent expression u0"},
		{func(x, i *tracer.Tensor) any { return f.MulScalar(x, i.Float().Value()) }, float0(3), "data-dependent expression zuf0"},
		{func(x, i *tracer.Tensor) any { return f.MulScalar(x, f.Nonzero(x).Size(0).Int64()) }, int0(3), "data-dependent expression u0"},
	} {
		_, err := tracer.Export(c.model, []any{ramp(4, 3), c.i})
		var data *tracer.DataDependentError
		if !errors.As(err, &data) || !strings.Contains(err.Error(), c.text) || !strings.Contains(data.Where, "unbacked_test.go:") {
			t.Errorf("%v\nwant %q", err, c.text)
		}
	}
}

// What an eager run checks fails with the message.
func TestCheckEagerly(t *testing.T) {
	m := asks(func(x, i *tracer.Tensor) any {
		n := i.Int()
		tracer.CheckValue(tracer.Ge(n, 2).And(tracer.Ne(n, 5)).Or(tracer.Eq(n, 0)), "not ", n)
		if !tracer.GuardOrTrue(tracer.Gt(n, -1)) || tracer.GuardOrFalse(tracer.Gt(n, 9)) || tracer.StaticallyKnownTrue(tracer.Lt(n, -1)) {
			return f.Neg(x)
		}
		return x
	})
	for _, ok := range []int64{0, 2, 4} {
		if _, err := tracer.RunCall(m, nil, []any{ramp(4, 3), int0(ok)}); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []int64{1, 5} {
		if _, err := tracer.RunCall(m, nil, []any{ramp(4, 3), int0(bad)}); err == nil || !strings.Contains(err.Error(), "ValueError: not ") {
			t.Error(err)
		}
	}
	p, err := tracer.Export(m, []any{ramp(4, 3), int0(4)})
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(6) {
		if _, err := runLeaves(p, ramp(4, 3), int0(n)); (err == nil) != (n != 1 && n != 5) {
			t.Errorf("%d: %v\n%v", n, err, p)
		}
	}
}

// The same models in Python give the same graphs, and PyTorch computes and refuses what we do.
func TestPyTorchHasTheSameUnbackedGraphs(t *testing.T) {
	python, dir := golden.Python(t), t.TempDir()
	for name, c := range dataCases() {
		p := exportData(t, name, c)
		if err := loader.SaveFile(filepath.Join(dir, name+".pt2"), p, loader.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		want, err := tracer.RunCall(c.model, nil, []any{ramp(4, 3), c.other})
		if err != nil {
			t.Fatal(err)
		}
		var refused any
		if c.refused != nil {
			refused = c.refused
		}
		if err := tensorio.SavePT(filepath.Join(dir, name+".calls"), []any{ramp(4, 3), c.i, c.other, flat(t, want), refused, c.dynamic}); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(python, filepath.Join("testdata", "unbacked.py"), dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
