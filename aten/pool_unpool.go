package aten

import (
	"fmt"
	"math"
	"strings"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// unpoolOps put elements at places that a max pooling noted, and pool windows whose places are drawn at random.
var unpoolOps = []Op{
	{
		Schema: "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
		Shape:  func(a *Args) []Meta { return shapeUnpool(a, 2) },
		CPU:    func(k *Kernel) { unpoolKernel(k, 2) },
	},
	{
		Schema: "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
		Shape: func(a *Args) []Meta {
			m := shapeUnpool(a, 3)
			s := a.I64s(3)
			Check(len(s) == 3, "There should be exactly three elements (depth, height, width) in stride, but got: %d elements.", len(s))
			Check(len(a.Ints(4)) == 3, "There should be exactly three elements (depth, height, width) in padding, but got: %d elements.", len(a.Ints(4)))
			Check(s[0] > 0 && s[1] > 0 && s[2] > 0, "strides should be greater than zero, but got stride: [%d, %d, %d]", s[0], s[1], s[2])
			return m
		},
		CPU: func(k *Kernel) { unpoolKernel(k, 3) },
	},
	{
		Schema: "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)",
		Shape:  func(a *Args) []Meta { return shapeFractional(a, 2) },
		CPU:    func(k *Kernel) { fractionalKernel(k, 2) },
	},
	{
		Schema: "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)",
		Shape:  func(a *Args) []Meta { return shapeFractional(a, 3) },
		CPU:    func(k *Kernel) { fractionalKernel(k, 3) },
	},
}

func shapeUnpool(a *Args, n int) []Meta {
	x, idx, size := a.Tensor(0), a.Tensor(1), a.Ints(2)
	name := fmt.Sprintf("max_unpooling%dd", n)
	axes := pick(n == 2, "(height, width)", "(depth, height, width)")
	Check(idx.DType == tensor.Int64, "elements in indices should be type int64 but got: %s", idx.DType.CPPName())
	Check(len(size) == n, "There should be exactly %s elements %s in output_size, but got %d elements.", pick(n == 2, "two", "three"), axes, len(size))
	Check(x.Dim() == n+1 || x.Dim() == n+2, "Input to %s should be a %dd or %dd Tensor, but got a tensor with %d dimensions.", name, n+1, n+2, x.Dim())
	Check(SameSizes(x.Sizes, idx.Sizes), "Expected shape of indices to be same as that of the input tensor (%s) but got indices tensor with shape: %s", listText(x.Sizes), listText(idx.Sizes))
	for d := 1; d < x.Dim(); d++ {
		if x.Sizes[d].Eq(symbolic.N(0)) {
			Fail("%s_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, but input has sizes %s with dimension %d being empty", name, listText(x.Sizes), d)
		}
	}
	mustFloat(a.Op.schema.Base, x.DType)
	sizes := append(append([]symbolic.Int{}, x.Sizes[:x.Dim()-n]...), size...)
	if n == 3 {
		return []Meta{Contig(x.DType, sizes...)}
	}
	return []Meta{keepFormat(x, x.DType, sizes)}
}

// listText prints sizes as "[2, 3]".
func listText(v []symbolic.Int) string {
	s := make([]string, len(v))
	for i, x := range v {
		s[i] = x.String()
	}
	return "[" + strings.Join(s, ", ") + "]"
}

func unpoolKernel(k *Kernel, n int) {
	size := k.I64s(2)
	bad := func(at int64) {
		Fail("Found an invalid max index: %d (output volumes are of size %s)", at, strings.ReplaceAll(strings.Trim(fmt.Sprint(size), "[]"), " ", "x"))
	}
	scatterPlanes(k, n, k.T(0), k.T(1), bad, false)
}

func shapeFractional(a *Args, n int) []Meta {
	x, r := a.Tensor(0), a.Tensor(3)
	base := a.Op.schema.Base
	name := base + pick(n == 2, "()", "_out()")
	tuple := pick(n == 2, "tuple of Ints", "tuple of three Ints")
	ks, size := a.I64s(1), a.Ints(2)
	Check(len(ks) == n || len(ks) == 1 && n == 3, "%s: kernel_size must either be a single Int or %s", base, tuple)
	Check(len(size) == n || len(size) == 1 && n == 3, "%s: output_size must either be a single Int or %s", base, tuple)
	ks, size = Int64s(nth(a.Ints(1), n)), nth(size, n)
	for _, v := range ks {
		Check(v > 0, "%s: kernel size should be greater than zero, but got %s", name, timesSizes(Ints(ks...)))
	}
	Check(x.Dim() == n+1 || x.Dim() == n+2, "%s: Expected %dD or %dD tensor, but got: %s", name, n+1, n+2, listText(x.Sizes))
	for d := x.Dim() - n - 1; d < x.Dim(); d++ {
		if x.Sizes[d].Eq(symbolic.N(0)) {
			Fail("%s: Expected input to have non-zero size for non-batch dimensions, but got%s with dimension %d being empty.", name, listText(x.Sizes), d)
		}
	}
	for i, axis := range []string{"time", "height", "width"}[3-n:] {
		in := x.Sizes[x.Dim()-n+i]
		Check(size[i].AddN(ks[i]-1).Le(in), "%s: pool %s %d too large relative to input %s %v", name, axis, ks[i], axis, in)
	}
	checkSamples(x, r, n)
	mustFloat(base+"_out_frame", x.DType)
	sizes := append(append([]symbolic.Int{}, x.Sizes[:x.Dim()-n]...), size...)
	return []Meta{Contig(x.DType, sizes...), Contig(tensor.Int64, sizes...)}
}

// checkSamples refuses random samples that are not [batch, channels, n].
func checkSamples(x, r *Value, n int) {
	Check(x.DType == r.DType, "Expect _random_samples to have the same dtype as input")
	Check(r.Dim() == 3, "Expect _random_samples to have 3 dimensions, got %d", r.Dim())
	batch := symbolic.N(1)
	if x.Dim() == n+2 {
		batch = x.Sizes[0]
	}
	Check(r.Sizes[0].Ge(batch), "Expect _random_samples.size(0) no less then input batch size.")
	Check(r.Sizes[1].Eq(x.Sizes[x.Dim()-n-1]), "Expect _random_samples.size(1) equals to input channel size.")
	Check(r.Sizes[2].Eq(symbolic.N(int64(n))), "Expect _random_samples.size(2) equals to %d; got %v.", n, r.Sizes[2])
}

func fractionalKernel(k *Kernel, n int) {
	if k.Out[0].Numel() == 0 {
		return
	}
	if k.Out[0].DType() == tensor.Float64 {
		fractionalPlanes[float64](k, n)
		return
	}
	fractionalPlanes[float32](k, n)
}

// fractionalPlanes pools each plane by its own windows; a NaN wins, the last of several.
func fractionalPlanes[T float32 | float64](k *Kernel, n int) {
	work := workType(k.Out[0].DType())
	x, r := tensor.Contiguous[T](k.as(k.T(0), work)), tensor.Contiguous[T](k.as(k.T(3), work))
	outT, idxT := k.room(0, work), k.room(1, tensor.Int64)
	out, idx := tensor.Contiguous[T](outT), tensor.Contiguous[int64](idxT)
	round := rounder[T](k.Out[0].DType())
	ks := Int64s(nth(k.Ints(1), n))
	p := newPoolPlan(n, k.T(0).Sizes(), k.Out[0].Sizes(), func(_, _, out int) []span { return make([]span, out) })
	in, on := p.inSize(), p.outSize()
	k.Pool.ParallelFor(p.planes, p.grainOf(), func(lo, hi int) {
		q := *p
		for pl := lo; pl < hi; pl++ {
			for d := range n {
				e := 3 - n + d
				// Samples stand in the order width, height for two dimensions, time, height, width for three.
				s := r[pl*n+pick(n == 2, n-1-d, d)]
				q.win[e] = fractionalSpans(s, q.in[e], q.out[e], int(ks[d]), round)
			}
			src := x[pl*in : (pl+1)*in]
			q.each(0, 1, func(_, o int, z, y, c *span) {
				best, at := T(math.Inf(-1)), (z.lo*q.in[1]+y.lo)*q.in[2]+c.lo
				for iz := z.lo; iz < z.hi; iz++ {
					for iy := y.lo; iy < y.hi; iy++ {
						for ix := c.lo; ix < c.hi; ix++ {
							if i := (iz*q.in[1]+iy)*q.in[2] + ix; src[i] > best || src[i] != src[i] {
								best, at = src[i], i
							}
						}
					}
				}
				out[pl*on+o], idx[pl*on+o] = best, int64(at)
			})
		}
	})
	k.deliver(0, outT)
	k.deliver(1, idxT)
}

// fractionalSpans are the windows of one dimension: their starts grow by alpha on average, the last one ends with the input.
func fractionalSpans[T float32 | float64](sample T, in, out, kernel int, round func(T) T) []span {
	w := make([]span, out)
	if out > 1 {
		alpha := round(round(T(in-kernel)) / round(T(out-1)))
		first := int(round(sample * alpha))
		for i := range out - 1 {
			lo := int(round(round(round(T(i))+sample)*alpha)) - first
			w[i] = span{lo, lo + kernel, 1, kernel}
		}
	}
	if out > 0 {
		w[out-1] = span{in - kernel, in, 1, kernel}
	}
	return w
}

// rounder rounds to the values of dt, in which PyTorch's kernel keeps its sums.
func rounder[T float32 | float64](dt tensor.DType) func(T) T {
	switch dt {
	case tensor.Float16:
		return func(v T) T { return T(tensor.F16ToF32(tensor.F32ToF16(float32(v)))) }
	case tensor.BFloat16:
		return func(v T) T { return T(tensor.BF16ToF32(tensor.F32ToBF16(float32(v)))) }
	}
	return func(v T) T { return v }
}

// scatterPlanes writes the elements of src to zeroed planes of Out[0], of n dimensions, at the places idx; with add it sums
// those that meet.
func scatterPlanes(k *Kernel, n int, src, idx *tensor.Tensor, bad func(at int64), add bool) {
	if k.Out[0].DType() == tensor.Float64 {
		scatterInto[float64](k, n, src, idx, bad, add)
		return
	}
	scatterInto[float32](k, n, src, idx, bad, add)
}

func scatterInto[T float32 | float64](k *Kernel, n int, src, idx *tensor.Tensor, bad func(at int64), add bool) {
	if k.Out[0].Numel() == 0 {
		return
	}
	work := workType(k.Out[0].DType())
	g, at := tensor.Contiguous[T](k.as(src, work)), tensor.Contiguous[int64](k.contiguous(idx))
	outT := k.room(0, work)
	out := tensor.Contiguous[T](outT)
	clear(out)
	plane := 1
	for _, s := range k.Out[0].Sizes()[k.Out[0].Dim()-n:] {
		plane *= int(s)
	}
	planes := len(out) / plane
	per := len(g) / planes
	round := rounder[T](k.Out[0].DType())
	k.Pool.ParallelFor(planes, max(1, grain/max(1, plane)), func(lo, hi int) {
		for pl := lo; pl < hi; pl++ {
			dst := out[pl*plane : (pl+1)*plane]
			for i, v := range g[pl*per : (pl+1)*per] {
				to := at[pl*per+i]
				if to < 0 || to >= int64(plane) {
					bad(to)
				}
				if add {
					v = round(dst[to] + v)
				}
				dst[to] = v
			}
		}
	})
	k.deliver(0, outT)
}
