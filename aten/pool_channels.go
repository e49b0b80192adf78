package aten

import (
	"math"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// channelsInside reports that t [N, C, spatial...] of float32 lies in memory as [N, spatial..., C] without gaps.
func channelsInside(t *tensor.Tensor) bool {
	n := t.Dim()
	if n < 3 || t.DType() != tensor.Float32 || t.Sizes()[1] < 4 {
		return false
	}
	size, st := t.Sizes(), t.Strides()
	next := size[1]
	if st[1] != 1 {
		return false
	}
	for d := n - 1; d >= 2; d-- {
		if size[d] != 1 && st[d] != next {
			return false
		}
		next *= size[d]
	}
	return size[0] == 1 || st[0] == next
}

// byChannels reports that a pooling of rank n runs over vectors of channels.
func (p *poolPlan) byChannels(n int, x, out *tensor.Tensor) bool {
	return x.Dim() == n+2 && channelsInside(x) && channelsInside(out)
}

// rows calls f for every output position with the vector of its channels and the rows of x that its window meets.
func (p *poolPlan) rows(k *Kernel, x, out *tensor.Tensor, f func(dst []float32, z, y, c *span, row func(iz, iy, ix int) []float32)) {
	channels := int(x.Sizes()[1])
	src, dst := tensor.Data[float32](x), tensor.Data[float32](out)
	on := p.outSize()
	k.Pool.ParallelFor(int(x.Sizes()[0])*on, max(1, grain/(channels*max(1, p.inSize()/max(on, 1)))), func(lo, hi int) {
		batch := 0
		row := func(iz, iy, ix int) []float32 {
			at := ((batch*p.in[0]+iz)*p.in[1]+iy)*p.in[2] + ix
			return src[at*channels : (at+1)*channels]
		}
		for t := lo; t < hi; t++ {
			batch = t / on
			z, y, c := t%on/(p.out[1]*p.out[2]), t%on/p.out[2]%p.out[1], t%p.out[2]
			f(dst[t*channels:(t+1)*channels], &p.win[0][z], &p.win[1][y], &p.win[2][c], row)
		}
	})
}

// maxRows is maxWindows over vectors of channels.
func maxRows(k *Kernel, p *poolPlan, x, out *tensor.Tensor) {
	p.rows(k, x, out, func(dst []float32, z, y, c *span, row func(iz, iy, ix int) []float32) {
		first := true
		for iz := z.lo; iz < z.hi; iz += z.step {
			for iy := y.lo; iy < y.hi; iy += y.step {
				for ix := c.lo; ix < c.hi; ix += c.step {
					if first {
						copy(dst, row(iz, iy, ix))
						first = false
					} else {
						cpu.MaximumF32(dst, row(iz, iy, ix), dst)
					}
				}
			}
		}
		if first {
			cpu.FillF32(dst, float32(math.Inf(-1)))
		}
	})
}

// avgRows is avgWindows over vectors of channels.
func avgRows(k *Kernel, p *poolPlan, x, out *tensor.Tensor, full bool, divisor int64) {
	p.rows(k, x, out, func(dst []float32, z, y, c *span, row func(iz, iy, ix int) []float32) {
		clear(dst)
		for iz := z.lo; iz < z.hi; iz++ {
			for iy := y.lo; iy < y.hi; iy++ {
				for ix := c.lo; ix < c.hi; ix++ {
					cpu.AddF32(dst, dst, row(iz, iy, ix))
				}
			}
		}
		cpu.DivScalarF32(dst, dst, float32(avgCount(z, y, c, full, divisor)))
	})
}
