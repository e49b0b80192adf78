package aten

import (
	"fmt"
	"math"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

// TestGELUEnds holds the ends of the range against PyTorch 2.15 on x86-64: oneDNN's kernel takes what is contiguous and has more than
// one element, but for float64 and the approximation by tanh.
func TestGELUEnds(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	big := float64(math.MaxFloat32)
	x := []float64{inf, -inf, big, big / 2, -big, inf}
	native := []float64{inf, nan, big, big / 2, 0, inf}
	cases := []struct {
		name, approximate string
		dtype             tensor.DType
		arrange           func(b *Build, x *Value) *Value
		want              []float64
	}{
		{"contiguous", "none", tensor.Float32, nil, []float64{nan, nan, inf, big / 2, 0, nan}},
		{"bfloat16", "none", tensor.BFloat16, nil, []float64{nan, nan, nan, inf, nan, nan}},
		{"float16", "none", tensor.Float16, nil, []float64{nan, nan, nan, nan, nan, nan}},
		{"float64", "none", tensor.Float64, nil, native},
		{"tanh", "tanh", tensor.Float32, nil, native},
		{"strided", "none", tensor.Float32, func(b *Build, x *Value) *Value {
			return b.Call("select.int", b.Call("stack", []*Value{x, x}, 1), 1, 0)
		}, native},
		{"one element", "none", tensor.Float32, func(b *Build, x *Value) *Value { return b.Call("slice.Tensor", x, 0, 0, 1) }, native[:1]},
		{"no dimension", "none", tensor.Float32, func(b *Build, x *Value) *Value { return b.Call("select.int", x, 0, 0) }, native[:1]},
		{"two elements", "none", tensor.Float32, func(b *Build, x *Value) *Value { return b.Call("slice.Tensor", x, 0, 0, 2) }, []float64{nan, nan}},
		{"channels last", "none", tensor.Float32, func(b *Build, x *Value) *Value {
			return b.Call("permute", b.Call("view", x, []int{1, 1, 2, 3}), []int{0, 3, 1, 2})
		}, []float64{inf, big / 2, nan, 0, big, inf}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := NewBuild(&Eager{}, nil)
			in := tensor.New(tensor.Float64, int64(len(x)))
			copy(tensor.Data[float64](in), x)
			v := b.Call("to.dtype", FromTensor(in), c.dtype)
			if c.arrange != nil {
				v = c.arrange(b, v)
			}
			y := b.Call("gelu", v, Kw("approximate", c.approximate))
			got := b.Call("view", b.Call("contiguous", b.Call("to.dtype", y, tensor.Float64)), []int{-1})
			for i, w := range c.want {
				g := got.T.Float(int64(i))
				if fmt.Sprint(g+0) != fmt.Sprint(w) {
					t.Errorf("element %d: %v, want %v", i, g, w)
				}
			}
		})
	}
}
