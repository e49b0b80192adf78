package aten

import (
	"math"
	"strings"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

// TestPyTorchsAnswers has single calls with PyTorch 2.15's answers, and the mathematical value where that is what it gives.
func TestPyTorchsAnswers(t *testing.T) {
	vec := func(dt tensor.DType, v ...float64) *Value {
		x := tensor.New(tensor.Float64, int64(len(v)))
		copy(tensor.Data[float64](x), v)
		return NewBuild(&Eager{}, nil).Call("to.dtype", FromTensor(x), dt)
	}
	for _, c := range []struct {
		name string
		f    func(b *Build) *Value
		want float64
		tol  float64
	}{
		{"soft_margin_loss overflows in the operands' type", func(b *Build) *Value {
			return b.Call("soft_margin_loss", vec(tensor.Float16, -12), vec(tensor.Float16, 1))
		}, math.Inf(1), 0},
		{"soft_margin_loss", func(b *Build) *Value {
			return b.Call("soft_margin_loss", vec(tensor.Float64, -3), vec(tensor.Float64, 1))
		}, math.Log1p(math.Exp(3)), 1e-15},
		{"bessel_j0 near", func(b *Build) *Value { return b.Call("special_bessel_j0", vec(tensor.Float64, 1)) }, math.J0(1), 4e-7},
		{"bessel_j1 far", func(b *Build) *Value { return b.Call("special_bessel_j1", vec(tensor.Float64, -30)) }, math.J1(-30), 1e-12},
		{"bessel_y0 near", func(b *Build) *Value { return b.Call("special_bessel_y0", vec(tensor.Float64, 2)) }, math.Y0(2), 4e-7},
		{"bessel_y1 far", func(b *Build) *Value { return b.Call("special_bessel_y1", vec(tensor.Float64, 40)) }, math.Y1(40), 1e-12},
		{"addr of bool", func(b *Build) *Value {
			y := b.Call("addr", b.Call("zeros", []int{1, 1}, Kw("dtype", tensor.Bool)), vec(tensor.Bool, 1), vec(tensor.Bool, 1))
			if y.DType != tensor.Bool {
				t.Errorf("addr of bool gives %v", y.DType)
			}
			return y
		}, 1, 0},
		{"nanmedian of nothing but NaN", func(b *Build) *Value {
			nan := math.NaN()
			return b.CallN("nanmedian.dim", vec(tensor.Float64, nan, nan, nan, nan, nan), 0)[1]
		}, 2, 0},
	} {
		if g := c.f(NewBuild(&Eager{}, nil)).T.Float(0); g != c.want && !(math.Abs(g-c.want) <= c.tol) {
			t.Errorf("%s: %v, want %v", c.name, g, c.want)
		}
	}
}

// TestPyTorchsRefusals has calls that PyTorch 2.15 refuses, with its words.
func TestPyTorchsRefusals(t *testing.T) {
	of := func(dt tensor.DType, sizes ...int64) *Value { return FromTensor(tensor.New(dt, sizes...)) }
	f := tensor.Float32
	for _, c := range []struct {
		op   string
		args []any
		want string
	}{
		{"max_pool1d.default", []any{of(f, 0, 10), []int{1}}, "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:[0, 10]"},
		{"max_pool3d.default", []any{of(f, 0, 1, 2, 10), []int{1, 1, 1}}, "Expected input to have non-zero size for non-batch dimensions, but input has sizes [0, 1, 2, 10] with dimension 0 being empty"},
		{"linalg_cross.default", []any{of(f, 5, 3), of(f, 5, 1)}, "linalg.cross: inputs dimension -1 must have length 3. Got 3 and 1"},
		{"cat.default", []any{[]*Value{}, 1}, "ValueError: torch.cat(): expected a non-empty list of Tensors"},
		{"complex.default", []any{of(f, 2), of(tensor.Int32, 2)}, "NotImplementedError: Expected both inputs to be Half, Float or Double tensors but got Float and Int"},
		{"mean.dim", []any{of(tensor.Int64, 2), []int{}}, "NotImplementedError: mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long"},
		{"conv2d.padding", []any{of(f, 1, 1, 4, 3), of(f, 1, 2, 2), nil, []int{1, 1}, "same"}, "Expected 3-dimensional input for 3-dimensional weight[1, 2, 2], but got 4-dimensional input of size [1, 1, 4, 3] instead"},
	} {
		op := Builtin().Lookup("aten." + c.op)
		a, err := op.Bind(c.args, nil)
		if err == nil {
			_, err = NewBuild(&Eager{}, nil).Do(op, a)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.op, err, c.want)
		}
	}
}
