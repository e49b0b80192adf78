package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// quantizedOps imitate quantization in floating point.
var quantizedOps = []Op{
	{Schema: "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor", Shape: shapeSame, CPU: func(k *Kernel) {
		s, zp, lo, hi := k.Float(1), k.Float64At(2), k.Float64At(3), k.Float64At(4)
		k.Map1(real1(func(x float64) float64 { return fakeQuantize(x, s, zp, lo, hi) }), k.T(0))
	}},
	{Schema: "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		d := WrapDim(a.I64(3), x.Dim())
		if a.Tensor(1).Dim() != 1 || !a.Tensor(1).Sizes[0].Eq(x.Sizes[d]) {
			Fail("dimensions of scale and zero-point are not consistent with input tensor")
		}
		return []Meta{PointwiseMeta(x.DType, x)}
	}, CPU: func(k *Kernel) {
		x := k.T(0)
		d := WrapDim(k.I64(3), x.Dim())
		view := func(t *tensor.Tensor) *tensor.Tensor {
			sizes := make([]int64, x.Dim())
			for i := range sizes {
				sizes[i] = 1
			}
			sizes[d] = t.Sizes()[0]
			return k.as(t, tensor.Float32).WithView(sizes, tensor.ContiguousStrides(sizes), 0)
		}
		lo, hi := k.Float64At(4), k.Float64At(5)
		f := func(x, s, zp float64) float64 { return fakeQuantize(x, s, zp, lo, hi) }
		k.Map3(Fn3{F32: Each3(func(x, s, z float32) float32 { return float32(f(float64(x), float64(s), float64(z))) }), F64: Each3(f)}, x, view(k.T(1)), view(k.T(2)))
	}},
	{Schema: "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		th, size := a.Tensor(0), a.Ints(1)
		if len(size) != 4 {
			Fail("affine_grid_generator needs 4d sizes here, got %v", size)
		}
		axis := func(n symbolic.Int) *Value {
			m := n.Int64()
			v := make([]float64, m)
			for i := range v {
				switch {
				case m <= 1:
				case a.Bool(2):
					v[i] = -1 + 2*float64(i)/float64(m-1)
				default:
					v[i] = (2*float64(i)+1)/float64(m) - 1
				}
			}
			t, err := tensor.FromSlice(v, m)
			if err != nil {
				Fail("%v", err)
			}
			return b.Call("to.dtype", t, th.DType)
		}
		h, w := size[2], size[3]
		hw := []symbolic.Int{h, w}
		xs := b.Call("expand", axis(w), hw)
		ys := b.Call("expand", b.Call("unsqueeze", axis(h), 1), hw)
		ones := b.Call("ones_like", b.Call("clone", xs))
		base := b.Call("reshape", b.Call("stack", []*Value{xs, ys, ones}, 2), []symbolic.Int{symbolic.N(1), h.Mul(w), symbolic.N(3)})
		base = b.Call("expand", base, []symbolic.Int{size[0], h.Mul(w), symbolic.N(3)})
		return One(b.Call("view", b.Call("bmm", base, b.Call("transpose.int", th, 1, 2)), []symbolic.Int{size[0], h, w, symbolic.N(2)}))
	}},
}

// Float64At gives an int argument as a float64.
func (a *Args) Float64At(i int) float64 { return float64(a.I64(i)) }

func fakeQuantize(x, scale, zp, lo, hi float64) float64 {
	inv := 1 / float64(float32(scale))
	q := math.RoundToEven(float64(float32(x)*float32(inv))) + zp
	return (math.Min(math.Max(q, lo), hi) - zp) * scale
}
