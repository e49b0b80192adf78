package aten

import (
	"math"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

// TestMatrixExpRotation holds exp([[0, -t], [t, 0]]) against the rotation by t, from the lowest degree to many squarings, for one
// matrix and for more, and for numbers t*i in place of the matrix.
func TestMatrixExpRotation(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Complex64, tensor.Complex128} {
		tol := 1e-14
		if dt == tensor.Float32 || dt == tensor.Complex64 {
			tol = 1e-6
		}
		for _, angle := range []float64{0, 1e-17, 1e-9, 1e-4, 0.01, 0.1, 0.5, 1, 2, 7, 50} {
			for _, batch := range []int64{1, 3} {
				b := NewBuild(&Eager{}, nil)
				m := tensor.New(tensor.Float64, batch, 2, 2)
				d := tensor.Data[float64](m)
				for i := range batch {
					d[4*i+1], d[4*i+2] = -angle, angle
				}
				y := b.Call("linalg_matrix_exp", b.Call("to.dtype", FromTensor(m), dt))
				if dt.IsComplex() {
					y = b.Call("real", y)
				}
				y = b.Call("contiguous", b.Call("to.dtype", y, tensor.Float64))
				s, c := math.Sincos(angle)
				for i, got := range tensor.Contiguous[float64](y.T) {
					if want := [4]float64{c, -s, s, c}[i%4]; math.Abs(got-want) > tol*max(1, angle) {
						t.Errorf("%v, angle %g, %d matrices: element %d is %v, want %v", dt, angle, batch, i, got, want)
					}
				}
			}
		}
	}
}

// TestMatrixExp16 has PyTorch 2.15's answers for [[s, s/2], [0, -s]] in 16 bits.
func TestMatrixExp16(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		dtype tensor.DType
		s     float64
		want  [4]float64
	}{
		{tensor.Float16, 0, [4]float64{1, 0, 0, 1}},
		{tensor.Float16, 1e-4, [4]float64{0, 0, 0, 0}},
		{tensor.Float16, 0.3, [4]float64{-21072, 2.890625, 0, -21072}},
		{tensor.Float16, 1, [4]float64{inf, -inf, 0, inf}},
		{tensor.BFloat16, 0.01, [4]float64{nan, nan, 0, nan}},
		{tensor.BFloat16, 0.5, [4]float64{-1.2973611611710785e+30, 2087354105856, 0, -1.2973611611710785e+30}},
		{tensor.BFloat16, 2, [4]float64{nan, -inf, nan, nan}},
	} {
		b := NewBuild(&Eager{}, nil)
		m := tensor.New(tensor.Float64, 2, 2)
		copy(tensor.Data[float64](m), []float64{c.s, 0, 0, -c.s})
		x := b.Call("to.dtype", FromTensor(m), c.dtype)
		half := b.Call("mul.Scalar", b.Call("select.int", b.Call("select.int", x, 0, 0), 0, 0), 0.5)
		b.CallN("copy_", b.Call("select.int", b.Call("select.int", x, 0, 0), 0, 1), half)
		y := b.Call("linalg_matrix_exp", x)
		for i, w := range c.want {
			if g := y.T.Float(int64(i)); g != w && !(math.IsNaN(g) && math.IsNaN(w)) {
				t.Errorf("%v, s = %g: element %d is %v, want %v", c.dtype, c.s, i, g, w)
			}
		}
	}
}
