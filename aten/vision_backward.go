package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// visionBackwardOps are the gradients of torchvision's region operators with respect to their input.
var visionBackwardOps = []Op{
	{Schema: "torchvision::_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool aligned) -> Tensor",
		Shape: regionGradient(5, 1), CPU: roiAlignBackward},
	{Schema: "torchvision::_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
		Shape: regionGradient(6, 1), CPU: roiPoolBackward},
	{Schema: "torchvision::_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
		Shape: regionGradient(7, 1), CPU: psRoiAlignBackward},
	{Schema: "torchvision::_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
		Shape: regionGradient(6, 1), CPU: psRoiPoolBackward},
}

// regionGradient is the shape of an input whose four sizes start at argument size.
func regionGradient(size, rois int) func(a *Args) []Meta {
	return func(a *Args) []Meta {
		g, r := a.Tensor(0), a.Tensor(rois)
		Check(r.Dim() == 2 && r.Sizes[1].Eq(symbolic.N(5)), "Tensor rois should have shape as Tensor[K, 5]")
		Check(g.Dim() == 4 && g.Sizes[0].Eq(r.Sizes[0]), "expected a gradient of 4 dimensions for %v regions, got sizes %s", r.Sizes[0], sizesText(g.Sizes))
		mustFloat("roi_backward", g.DType)
		return []Meta{Contig(g.DType, a.Int(size), a.Int(size+1), a.Int(size+2), a.Int(size+3))}
	}
}

// regionGrid walks over the gradient of a pooling: one region, channel and bin after the other.
type regionGrid struct {
	grad, rois, out []float64
	sizes           []int64 // of the gradient
	c, h, w         int64   // of the input
}

func newRegionGrid(k *Kernel) *regionGrid {
	s := k.Out[0].Sizes()
	return &regionGrid{grad: k.floats(k.T(0)), rois: k.floats(k.T(1)), out: make([]float64, k.Out[0].Numel()), sizes: k.T(0).Sizes(), c: s[1], h: s[2], w: s[3]}
}

// each calls f with each region's batch index and corners, the channel and bin, and the place of the gradient's element.
func (r *regionGrid) each(n int64, f func(b int64, box []float64, ch, i, j, at int64)) {
	at := int64(0)
	for reg := range r.sizes[0] {
		box := r.rois[reg*5 : reg*5+5]
		b := int64(box[0])
		if b < 0 || b >= n {
			FailIndex("batch index %d of a region is out of bounds for a batch of %d", b, n)
		}
		for ch := range r.sizes[1] {
			for i := range r.sizes[2] {
				for j := range r.sizes[3] {
					f(b, box[1:], ch, i, j, at)
					at++
				}
			}
		}
	}
}

// plane is the gradient of one channel of one image.
func (r *regionGrid) plane(b, ch int64) []float64 {
	if ch < 0 || ch >= r.c {
		FailIndex("channel %d is out of bounds for %d channels", ch, r.c)
	}
	return r.out[(b*r.c+ch)*r.h*r.w : (b*r.c+ch+1)*r.h*r.w]
}

// bilinearSpread adds v to the four neighbours of a position, as bilinearAt weighs them.
func bilinearSpread(p []float64, h, w int64, y, x, v float64) {
	if y < -1 || y > float64(h) || x < -1 || x > float64(w) {
		return
	}
	y, x = max(y, 0), max(x, 0)
	yl, xl := int64(y), int64(x)
	yh, xh := yl+1, xl+1
	if yl >= h-1 {
		yl, yh, y = h-1, h-1, float64(h-1)
	}
	if xl >= w-1 {
		xl, xh, x = w-1, w-1, float64(w-1)
	}
	ly, lx := y-float64(yl), x-float64(xl)
	p[yl*w+xl] += (1 - ly) * (1 - lx) * v
	p[yl*w+xh] += (1 - ly) * lx * v
	p[yh*w+xl] += ly * (1 - lx) * v
	p[yh*w+xh] += ly * lx * v
}

// samples calls f for each sample of a bin that starts at (y, x) and is bh by bw large, with the number of samples.
func samples(y, x, bh, bw float64, ratio int64, f func(y, x, count float64)) {
	gh, gw := ratio, ratio
	if ratio <= 0 {
		gh, gw = ceilInt(bh), ceilInt(bw)
	}
	for iy := range gh {
		for ix := range gw {
			f(y+(float64(iy)+0.5)*bh/float64(gh), x+(float64(ix)+0.5)*bw/float64(gw), float64(gh*gw))
		}
	}
}

func roiAlignBackward(k *Kernel) {
	r := newRegionGrid(k)
	s, ph, pw, ratio, off := k.Float(2), float64(k.I64(3)), float64(k.I64(4)), k.I64(9), pick(k.Bool(10), 0.5, 0)
	r.each(k.I64(5), func(b int64, box []float64, ch, i, j, at int64) {
		x0, y0 := box[0]*s-off, box[1]*s-off
		rw, rh := box[2]*s-off-x0, box[3]*s-off-y0
		if off == 0 {
			rw, rh = max(rw, 1), max(rh, 1)
		}
		bh, bw, p := rh/ph, rw/pw, r.plane(b, ch)
		samples(y0+float64(i)*bh, x0+float64(j)*bw, bh, bw, ratio, func(y, x, n float64) { bilinearSpread(p, r.h, r.w, y, x, r.grad[at]/n) })
	})
	k.storeFloats(k.Out[0], r.out)
}

func roiPoolBackward(k *Kernel) {
	r := newRegionGrid(k)
	arg := tensor.Contiguous[int64](k.as(k.T(2), tensor.Int64))
	Check(len(arg) == len(r.grad), "expected a place for each of %d gradients, got %d", len(r.grad), len(arg))
	r.each(k.I64(6), func(b int64, _ []float64, ch, _, _, at int64) {
		if arg[at] >= 0 {
			r.plane(b, ch)[indexRow(arg[at], r.h*r.w)] += r.grad[at]
		}
	})
	k.storeFloats(k.Out[0], r.out)
}

// psChannels gives the input channel of each element.
func psChannels(k *Kernel, n int) []int64 {
	m := tensor.Contiguous[int64](k.as(k.T(2), tensor.Int64))
	Check(len(m) == n, "expected a channel for each of %d gradients, got %d", n, len(m))
	return m
}

func psRoiAlignBackward(k *Kernel) {
	r := newRegionGrid(k)
	chans := psChannels(k, len(r.grad))
	s, ph, pw, ratio := k.Float(3), float64(k.I64(4)), float64(k.I64(5)), k.I64(6)
	r.each(k.I64(7), func(b int64, box []float64, _, i, j, at int64) {
		x0, y0 := box[0]*s-0.5, box[1]*s-0.5
		bh, bw, p := (box[3]*s-0.5-y0)/ph, (box[2]*s-0.5-x0)/pw, r.plane(b, chans[at])
		samples(y0+float64(i)*bh, x0+float64(j)*bw, bh, bw, ratio, func(y, x, n float64) { bilinearSpread(p, r.h, r.w, y, x, r.grad[at]/n) })
	})
	k.storeFloats(k.Out[0], r.out)
}

func psRoiPoolBackward(k *Kernel) {
	r := newRegionGrid(k)
	chans := psChannels(k, len(r.grad))
	s, ph, pw := float64(float32(k.Float(3))), k.I64(4), k.I64(5)
	r.each(k.I64(6), func(b int64, box []float64, _, i, j, at int64) {
		x0, y0 := roundHalfAway(box[0]*s), roundHalfAway(box[1]*s)
		bh := float32(max(roundHalfAway(box[3]*s)-y0, 1)) / float32(ph)
		bw := float32(max(roundHalfAway(box[2]*s)-x0, 1)) / float32(pw)
		ys := clampInt(int64(math.Floor(float64(float32(i)*bh)))+y0, 0, r.h)
		ye := clampInt(int64(math.Ceil(float64(float32(i+1)*bh)))+y0, 0, r.h)
		xl := clampInt(int64(math.Floor(float64(float32(j)*bw)))+x0, 0, r.w)
		xr := clampInt(int64(math.Ceil(float64(float32(j+1)*bw)))+x0, 0, r.w)
		p := r.plane(b, chans[at])
		for y := ys; y < ye; y++ {
			for x := xl; x < xr; x++ {
				p[y*r.w+x] += r.grad[at] / float64((ye-ys)*(xr-xl))
			}
		}
	})
	k.storeFloats(k.Out[0], r.out)
}
