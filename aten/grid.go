package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// gridOps sample a tensor at the points of a grid, and make such grids.
var gridOps = []Op{
	{Schema: "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		if a.Tensor(0).Dim() == 5 {
			return One(b.Call("grid_sampler_3d", a.V...))
		}
		return One(b.Call("grid_sampler_2d", a.V...))
	}},
	{Schema: "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", Tags: Core,
		Shape: func(a *Args) []Meta { return shapeGrid(a, 2) }, CPU: func(k *Kernel) { gridKernel(k, 2) }},
	{Schema: "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
		Shape: func(a *Args) []Meta { return shapeGrid(a, 3) }, CPU: func(k *Kernel) { gridKernel(k, 3) }},
	{Schema: "_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
		Shape: func(a *Args) []Meta { return shapeGrid(a, 2) }, CPU: func(k *Kernel) { gridKernel(k, 2) }},
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
