package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// span is the window of one output position along one dimension: the input positions lo, lo+step, ... below hi, which lie
// inside the input, and the number of positions that an average counts when padding counts.
type span struct{ lo, hi, step, full int }

// poolPlan is a pooling brought to three spatial dimensions over contiguous planes.
type poolPlan struct {
	planes  int
	in, out [3]int
	win     [3][]span
}

func (p *poolPlan) inSize() int  { return p.in[0] * p.in[1] * p.in[2] }
func (p *poolPlan) outSize() int { return p.out[0] * p.out[1] * p.out[2] }

// newPoolPlan takes the last n dimensions of in and out as spatial ones; windows gives the spans of spatial dimension d.
func newPoolPlan(n int, in, out []int64, windows func(d, in, out int) []span) *poolPlan {
	p := &poolPlan{planes: 1, in: [3]int{1, 1, 1}, out: [3]int{1, 1, 1}}
	for _, s := range in[:len(in)-n] {
		p.planes *= int(s)
	}
	for d := range 3 {
		p.win[d] = []span{{0, 1, 1, 1}}
	}
	for d := range n {
		e := 3 - n + d
		p.in[e], p.out[e] = int(in[len(in)-n+d]), int(out[len(out)-n+d])
		p.win[e] = windows(d, p.in[e], p.out[e])
	}
	return p
}

// slidingWindows are those of an ordinary pooling.
func slidingWindows(kernel, stride, pad, dil []int64) func(d, in, out int) []span {
	return func(d, in, out int) []span {
		k, s, p, dl := int(kernel[d]), int(stride[d]), int(pad[d]), int(dil[d])
		w := make([]span, out)
		for i := range w {
			lo := i*s - p
			hi := min(lo+(k-1)*dl+1, in)
			full := min(i*s-p+k, in+p) - lo
			if lo < 0 {
				lo += (-lo + dl - 1) / dl * dl
			}
			w[i] = span{lo, hi, dl, full}
		}
		return w
	}
}

// adaptiveWindows divide the input into out overlapping parts.
func adaptiveWindows(_, in, out int) []span {
	w := make([]span, out)
	for i := range w {
		lo, hi := i*in/out, ((i+1)*in+out-1)/out
		w[i] = span{lo, hi, 1, hi - lo}
	}
	return w
}

// each calls f for every output position o of every plane in [lo, hi) with its windows.
func (p *poolPlan) each(lo, hi int, f func(plane, o int, z, y, x *span)) {
	for pl := lo; pl < hi; pl++ {
		o := 0
		for z := range p.win[0] {
			for y := range p.win[1] {
				for x := range p.win[2] {
					f(pl, o, &p.win[0][z], &p.win[1][y], &p.win[2][x])
					o++
				}
			}
		}
	}
}

// grainOf is the number of planes worth a hand-over to another worker.
func (p *poolPlan) grainOf() int { return max(1, grain/max(1, max(p.inSize(), p.outSize()))) }

// number that pools compute in.
type poolNumber interface{ float32 | float64 | int64 }

// lowest is what a dilated window that meets no element answers.
func lowest[T poolNumber]() T {
	switch any(T(0)).(type) {
	case int64:
		v := int64(math.MinInt64)
		return T(v)
	}
	return T(math.Inf(-1))
}

// maxWindows writes the largest element of each window to out and its place in the plane to idx, unless idx is nil. A NaN
// wins; among equals the first one does.
func maxWindows[T poolNumber](k *Kernel, p *poolPlan, x, out []T, idx []int64) {
	in, on := p.inSize(), p.outSize()
	k.Pool.ParallelFor(p.planes, p.grainOf(), func(lo, hi int) {
		if idx == nil && p.in[0] == 1 && p.out[0] == 1 {
			for pl := lo; pl < hi; pl++ {
				maxPlane(p, x[pl*in:(pl+1)*in], out[pl*on:(pl+1)*on])
			}
			return
		}
		p.each(lo, hi, func(plane, o int, z, y, c *span) {
			src := x[plane*in : (plane+1)*in]
			at := (z.lo*p.in[1]+y.lo)*p.in[2] + c.lo
			best := lowest[T]()
			if z.lo < z.hi && y.lo < y.hi && c.lo < c.hi {
				best = src[at]
			}
			for iz := z.lo; iz < z.hi; iz += z.step {
				for iy := y.lo; iy < y.hi; iy += y.step {
					row := (iz*p.in[1] + iy) * p.in[2]
					for ix := c.lo; ix < c.hi; ix += c.step {
						if v := src[row+ix]; v > best || v != v {
							best, at = v, row+ix
						}
					}
				}
			}
			out[plane*on+o] = best
			if idx != nil {
				idx[plane*on+o] = int64(at)
			}
		})
	})
}

// maxPlane pools one plane of two dimensions without places: rows are reduced first, columns then.
func maxPlane[T poolNumber](p *poolPlan, src, out []T) {
	w := p.in[2]
	line := make([]T, w)
	for y := range p.win[1] {
		s := &p.win[1][y]
		for i := range line {
			line[i] = lowest[T]()
		}
		if s.lo < s.hi {
			copy(line, src[s.lo*w:(s.lo+1)*w])
		}
		for iy := s.lo + s.step; iy < s.hi; iy += s.step {
			row := src[iy*w : (iy+1)*w]
			for i, v := range row {
				if v > line[i] || v != v {
					line[i] = v
				}
			}
		}
		dst := out[y*p.out[2] : (y+1)*p.out[2]]
		for i := range dst {
			c := &p.win[2][i]
			best := lowest[T]()
			if c.lo < c.hi {
				best = line[c.lo]
			}
			for ix := c.lo + c.step; ix < c.hi; ix += c.step {
				if v := line[ix]; v > best || v != v {
					best = v
				}
			}
			dst[i] = best
		}
	}
}

// avgWindows writes the average of each window: over all positions of it, padding included, if full, over those inside the
// input else; a divisor other than 0 replaces the count.
func avgWindows[T poolNumber](k *Kernel, p *poolPlan, x, out []T, full bool, divisor int64) {
	in, on := p.inSize(), p.outSize()
	k.Pool.ParallelFor(p.planes, p.grainOf(), func(lo, hi int) {
		p.each(lo, hi, func(plane, o int, z, y, c *span) {
			src := x[plane*in : (plane+1)*in]
			var sum T
			for iz := z.lo; iz < z.hi; iz++ {
				for iy := y.lo; iy < y.hi; iy++ {
					row := (iz*p.in[1] + iy) * p.in[2]
					for ix := c.lo; ix < c.hi; ix++ {
						sum += src[row+ix]
					}
				}
			}
			out[plane*on+o] = sum / T(avgCount(z, y, c, full, divisor))
		})
	})
}

func avgCount(z, y, x *span, full bool, divisor int64) int64 {
	switch {
	case divisor != 0:
		return divisor
	case full:
		return int64(z.full) * int64(y.full) * int64(x.full)
	}
	n := int64(z.hi-z.lo) * int64(y.hi-y.lo) * int64(x.hi-x.lo)
	if n <= 0 {
		return 1 // a window wholly in the padding: nothing was summed
	}
	return n
}

// room gives contiguous memory of dtype dt and the shape of output i to compute into: the output itself where it is such.
func (k *Kernel) room(i int, dt tensor.DType) *tensor.Tensor {
	if o := k.Out[i]; o.DType() == dt && o.IsContiguous() {
		return o
	}
	return tensor.New(dt, k.Out[i].Sizes()...)
}

// deliver stores what was computed into the tensor that room gave.
func (k *Kernel) deliver(i int, t *tensor.Tensor) {
	if t != k.Out[i] {
		Copy(k.Pool, k.Out[i], t)
	}
}

// workType is the dtype in which the kernels of planes compute: the 16-bit floats in float32, integers in int64.
func workType(dt tensor.DType) tensor.DType {
	switch KindOf(dt) {
	case KF32:
		return tensor.Float32
	case KF64:
		return tensor.Float64
	case KC64:
		return tensor.Complex64
	case KC128:
		return tensor.Complex128
	}
	return tensor.Int64
}

// mustFloat refuses dtypes other than the floats, as a kernel that has no code for them.
func mustFloat(name string, dt tensor.DType) {
	if !dt.IsFloat() || dt.IsFloat8() {
		failKernel(name, dt)
	}
}

// failKernel refuses a dtype that PyTorch's kernel of that name has no code for.
func failKernel(name string, dt tensor.DType) {
	FailAs("NotImplementedError", "\"%s\" not implemented for '%s'", name, dt.CPPName())
}

// keepFormat is fresh memory of the given sizes, channels-last if x suggests it.
func keepFormat(x *Value, dt tensor.DType, sizes []symbolic.Int) Meta {
	m := Contig(dt, sizes...)
	if x.SuggestChannelsLast() {
		m.Strides = ChannelsLastStrides(sizes)
	}
	return m
}
