package aten

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

// eager computes at once.
func eager() *Build { return NewBuild(&Eager{}, nil) }

func valueOf[T tensor.Element](t *testing.T, dt tensor.DType, v ...T) *Value {
	t.Helper()
	x, err := tensor.FromSlice(v, int64(len(v)))
	if err != nil {
		t.Fatal(err)
	}
	return eager().Call("to.dtype", x, dt)
}

func numbers(t *testing.T, v *Value) []complex128 {
	t.Helper()
	return tensor.Contiguous[complex128](eager().Call("to.dtype", v, tensor.Complex128).T)
}

func sameNumber(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// The expected numbers are PyTorch 2.15's.
func TestPowersAndQuotientsAtTheEdges(t *testing.T) {
	b := eager()
	inf, nan := math.Inf(1), math.NaN()
	zero := func(n int) *Value { return valueOf(t, tensor.Complex64, make([]complex128, n)...) }
	for name, c := range map[string]struct {
		got  *Value
		dt   tensor.DType
		want []complex128
	}{
		"ldexp keeps the mantissa's dtype": {
			b.Call("ldexp.Tensor", valueOf[float64](t, tensor.Float16, 1.5, 2, 3), valueOf[int64](t, tensor.Int64, 20, -20, 14)),
			tensor.Float16, []complex128{complex(inf, 0), 1.9073486328125e-06, 49152}},
		"ldexp by more than the largest power": {
			b.Call("ldexp.Tensor", valueOf(t, tensor.Float16, 1e-6), valueOf[int64](t, tensor.Uint8, 30)), tensor.Float16, []complex128{1088}},
		"powers of complex zero": {
			b.Call("pow.Tensor_Tensor", zero(5), valueOf[complex128](t, tensor.Complex64, 0, 1, -1, 1i, 1+1i)),
			tensor.Complex64, []complex128{complex(nan, nan), 0, complex(inf, nan), complex(nan, nan), 0}},
		"power of complex zero by the number zero": {
			b.Call("pow.Tensor_Scalar", zero(1), 0), tensor.Complex64, []complex128{1}},
		"quotient by negative zero": {
			b.Call("div.Tensor", valueOf(t, tensor.Complex128, 1+2i), valueOf(t, tensor.Float64, math.Copysign(0, -1))),
			tensor.Complex128, []complex128{complex(inf, inf)}},
		"a number beside a 0-d integer wraps": {
			b.Call("floor_divide.Scalar", b.Call("squeeze", valueOf[int64](t, tensor.Uint8, 5)), -3), tensor.Uint8, []complex128{0}},
		"in-place power": {
			b.Call("pow_.Tensor", valueOf[float64](t, tensor.Float32, 2, 3), valueOf[float64](t, tensor.Float32, 3, 2)), tensor.Float32, []complex128{8, 9}},
		"in-place dunder": {
			b.Call("__iand__.Scalar", valueOf[int64](t, tensor.Int64, 6, 9), 3), tensor.Int64, []complex128{2, 1}},
	} {
		if c.got.DType != c.dt {
			t.Errorf("%s: %v, want %v", name, c.got.DType, c.dt)
		}
		for i, v := range numbers(t, c.got) {
			if !sameNumber(real(v), real(c.want[i])) || !sameNumber(imag(v), imag(c.want[i])) && !cmplx.IsNaN(c.want[i]) {
				t.Errorf("%s: element %d is %v, want %v", name, i, v, c.want[i])
			}
		}
	}
}
