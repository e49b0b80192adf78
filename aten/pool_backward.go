package aten

import (
	"fmt"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// poolBackwardOps are the gradients of poolings with respect to their input. Sums are kept in the input's dtype, in the
// order of the output's elements, as PyTorch does.
var poolBackwardOps = []Op{
	{
		Schema: "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return shapeMaxPoolBackward(a, 2) },
		CPU:    func(k *Kernel) { placesBackward(k, 2, 7) },
	},
	{
		Schema: "max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
		Shape:  func(a *Args) []Meta { return shapeMaxPoolBackward(a, 3) },
		CPU:    func(k *Kernel) { placesBackward(k, 3, 7) },
	},
	{
		Schema: "adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
		Shape:  func(a *Args) []Meta { return shapePlacesBackward(a, 2) },
		CPU:    func(k *Kernel) { placesBackward(k, 2, 2) },
	},
	{
		Schema: "adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
		Shape:  func(a *Args) []Meta { return shapePlacesBackward(a, 3) },
		CPU:    func(k *Kernel) { placesBackward(k, 3, 2) },
	},
	{
		Schema: "fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor indices) -> Tensor",
		Shape:  func(a *Args) []Meta { return shapeFractionalBackward(a, 2) },
		CPU:    func(k *Kernel) { placesBackward(k, 2, 4) },
	},
	{
		Schema: "fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor indices) -> Tensor",
		Shape:  func(a *Args) []Meta { return shapeFractionalBackward(a, 3) },
		CPU:    func(k *Kernel) { placesBackward(k, 3, 4) },
	},
	{
		Schema: "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return shapeAvgPoolBackward(a, 2) },
		CPU:    func(k *Kernel) { avgPoolBackward(k, 2) },
	},
	{
		Schema: "avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
		Shape:  func(a *Args) []Meta { return shapeAvgPoolBackward(a, 3) },
		CPU:    func(k *Kernel) { avgPoolBackward(k, 3) },
	},
	{
		Schema: "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return shapeAdaptiveBackward(a, 2) },
		CPU:    func(k *Kernel) { adaptiveAvgBackward(k, 2) },
	},
	{
		Schema: "_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor",
		Shape:  func(a *Args) []Meta { return shapeAdaptiveBackward(a, 3) },
		CPU:    func(k *Kernel) { adaptiveAvgBackward(k, 3) },
	},
}

// mustGradient refuses a gradient whose dtype or sizes are not those of the pooling's output.
func mustGradient(g *Value, dt tensor.DType, sizes []symbolic.Int, name string) {
	Check(g.DType == dt, "expected dtype %s for `%s` but got dtype %s", dtypeWord(dt), name, dtypeWord(g.DType))
	for i, s := range sizes {
		Check(g.Dim() == len(sizes) && g.Sizes[i].Eq(s), "Expected a tensor of dimension %d and tensor.size[%d] == %v but got: dimension %d and tensor.size[%d] = %v",
			len(sizes), i, s, g.Dim(), i, sizeText(g, i))
	}
}

func sizeText(g *Value, i int) string {
	if i >= g.Dim() {
		return "none"
	}
	return g.Sizes[i].String()
}

// dtypeWord is the C name of a dtype, as at::toString of a TypeMeta gives it.
func dtypeWord(dt tensor.DType) string {
	switch dt {
	case tensor.Float64:
		return "double"
	case tensor.Float32:
		return "float"
	case tensor.Int32:
		return "int"
	case tensor.Int64:
		return "long"
	case tensor.Float16:
		return "c10::Half"
	case tensor.BFloat16:
		return "c10::BFloat16"
	}
	return dt.CPPName()
}

func mustPlaces(idx *Value) {
	Check(idx.DType == tensor.Int64, "expected scalar type Long but found %s", idx.DType.CPPName())
}

func shapeMaxPoolBackward(a *Args, n int) []Meta {
	g, x, idx := a.Tensor(0), a.Tensor(1), a.Tensor(7)
	k := poolList(a, 2, n, nil, "kernel_size")
	s, p, d := poolList(a, 3, n, a.Ints(2), "stride"), poolList(a, 4, n, nil, "padding"), poolList(a, 5, n, nil, "dilation")
	sizes := poolSizes(fmt.Sprintf("max_pool%dd", n), x, n, k, s, p, d, a.Bool(6))
	mustGradient(g, x.DType, sizes, "gradOutput")
	mustGradient(idx, idx.DType, sizes, "indices")
	mustPlaces(idx)
	mustFloat(fmt.Sprintf("max_pool%dd_backward", n), x.DType)
	return []Meta{poolGradMeta(x, n)}
}

// poolGradMeta is a gradient like x, channels-last if x suggests it.
func poolGradMeta(x *Value, n int) Meta {
	if x.Dim() == n+2 {
		return keepFormat(x, x.DType, x.Sizes)
	}
	return Contig(x.DType, x.Sizes...)
}

func shapePlacesBackward(a *Args, n int) []Meta {
	g, x, idx := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	Check(g.DType == x.DType, "expected dtype %s for `grad_output` but got dtype %s", dtypeWord(x.DType), dtypeWord(g.DType))
	Check(SameSizes(g.Sizes, idx.Sizes), "expected sizes %s for `grad_output` but got sizes %s", listText(idx.Sizes), listText(g.Sizes))
	mustPlaces(idx)
	mustFloat(a.Op.schema.Base, x.DType)
	if n == 3 {
		return []Meta{Contig(x.DType, x.Sizes...)}
	}
	return []Meta{poolGradMeta(x, n)}
}

func shapeFractionalBackward(a *Args, n int) []Meta {
	g, x, idx := a.Tensor(0), a.Tensor(1), a.Tensor(4)
	want := append(append([]symbolic.Int{}, x.Sizes[:x.Dim()-n]...), nth(a.Ints(3), n)...)
	Check(SameSizes(g.Sizes, want), "%s(): gradOutput sizes unexpected", a.Op.schema.Base)
	Check(SameSizes(idx.Sizes, want), "%s(): indices sizes unexpected", a.Op.schema.Base)
	mustPlaces(idx)
	mustFloat(a.Op.schema.Base+"_out_frame", x.DType)
	return []Meta{Contig(x.DType, x.Sizes...)}
}

func placesBackward(k *Kernel, n, idx int) {
	scatterPlanes(k, n, k.T(0), k.T(idx), func(at int64) { Fail("found an invalid max index: %d", at) }, true)
}

func shapeAvgPoolBackward(a *Args, n int) []Meta {
	g, x := a.Tensor(0), a.Tensor(1)
	k, s, p, d := avgArgs(a, 2, n)
	divisorOf(a, 7)
	sizes := poolSizes(fmt.Sprintf("avg_pool%dd", n), x, n, k, s, p, d, a.Bool(5))
	mustGradient(g, x.DType, sizes, "gradOutput")
	mustAvgPool(x.DType, n, "_backward")
	if n == 3 {
		return []Meta{Contig(x.DType, x.Sizes...)}
	}
	return []Meta{poolGradMeta(x, n)}
}

func avgPoolBackward(k *Kernel, n int) {
	ks, s, p, d := avgArgs(k.Args, 2, n)
	plan := newPoolPlan(n, k.T(1).Sizes(), k.T(0).Sizes(), slidingWindows(ks, s, p, d))
	full, divisor := k.Bool(6), divisorOf(k.Args, 7)
	spreadKernel(k, plan, func(z, y, x *span) []int64 { return []int64{avgCount(z, y, x, full, divisor)} })
}

func shapeAdaptiveBackward(a *Args, n int) []Meta {
	g, x := a.Tensor(0), a.Tensor(1)
	name := fmt.Sprintf("adaptive_avg_pool%dd_backward", n)
	Check(g.Dim() == x.Dim(), "%s_out_cpu_template: Expected dimensions %d for `grad_output` but got dimensions %d", name, x.Dim(), g.Dim())
	Check(x.Dim() == n+1 || x.Dim() == n+2, "%s(): Expected %dD or %dD tensor, but got %s", name, n+1, n+2, listText(x.Sizes))
	for d := 1; d < g.Dim(); d++ {
		if g.Sizes[d].Eq(symbolic.N(0)) {
			Fail("%s(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes %s with dimension %d being empty", name, listText(g.Sizes), d)
		}
	}
	Check(g.DType == x.DType, "%s_out_cpu_template: Expected dtype %s for `grad_output` but got dtype %s", name, dtypeWord(x.DType), dtypeWord(g.DType))
	mustFloat(name+pick(n == 3, "_cpu", ""), x.DType)
	if n == 3 {
		return []Meta{Contig(x.DType, x.Sizes...)}
	}
	return []Meta{poolGradMeta(x, n)}
}

func adaptiveAvgBackward(k *Kernel, n int) {
	plan := newPoolPlan(n, k.T(1).Sizes(), k.T(0).Sizes(), adaptiveWindows)
	spreadKernel(k, plan, func(z, y, x *span) []int64 {
		return []int64{int64(z.full), int64(y.full), int64(x.full)}[3-n:]
	})
}

// spreadKernel adds each element of the gradient, divided by the window's divisors one after the other, to all places of
// its window.
func spreadKernel(k *Kernel, p *poolPlan, divisors func(z, y, x *span) []int64) {
	if k.Out[0].Numel() == 0 {
		return
	}
	switch workType(k.Out[0].DType()) {
	case tensor.Float64:
		spreadPlanes(k, p, divisors, rounder[float64](k.Out[0].DType()))
	case tensor.Float32:
		spreadPlanes(k, p, divisors, rounder[float32](k.Out[0].DType()))
	default:
		spreadPlanes(k, p, divisors, func(v int64) int64 { return v })
	}
}

func spreadPlanes[T poolNumber](k *Kernel, p *poolPlan, divisors func(z, y, x *span) []int64, round func(T) T) {
	work := workType(k.Out[0].DType())
	g := tensor.Contiguous[T](k.as(k.T(0), work))
	outT := k.room(0, work)
	out := tensor.Contiguous[T](outT)
	clear(out)
	in, on := p.inSize(), p.outSize()
	k.Pool.ParallelFor(p.planes, p.grainOf(), func(lo, hi int) {
		p.each(lo, hi, func(plane, o int, z, y, c *span) {
			v := g[plane*on+o]
			for _, d := range divisors(z, y, c) {
				v = round(v / round(T(d)))
			}
			dst := out[plane*in : (plane+1)*in]
			for iz := z.lo; iz < z.hi; iz++ {
				for iy := y.lo; iy < y.hi; iy++ {
					row := dst[(iz*p.in[1]+iy)*p.in[2]:]
					for ix := c.lo; ix < c.hi; ix++ {
						row[ix] = round(row[ix] + v)
					}
				}
			}
		})
	})
	k.deliver(0, outT)
}
