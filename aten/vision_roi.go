package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// roiOps pool regions of interest, and convolve at learnt offsets (torchvision).
var roiOps = []Op{
	{Schema: "torchvision::roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)", Shape: func(a *Args) []Meta {
		checkRois(a)
		x := a.Tensor(0)
		m := Contig(x.DType, a.Tensor(1).Sizes[0], x.Sizes[1], a.Int(3), a.Int(4))
		i := m
		i.DType = tensor.Int32
		return []Meta{m, i}
	}, CPU: roiPool},
	{Schema: "torchvision::ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)", Shape: shapePS, CPU: psRoiAlign},
	{Schema: "torchvision::ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)", Shape: shapePS, CPU: psRoiPool},
	{Schema: "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor", Shape: shapeDeform, CPU: deformKernel},
}

func checkRois(a *Args) {
	if r := a.Tensor(1); r.Dim() != 2 || r.Sizes[1].Ne(symbolic.N(5)) {
		Fail("Tensor rois should have shape as Tensor[K, 5]")
	}
	if a.Tensor(0).Dim() != 4 {
		Fail("the input of a region operator must have 4 dimensions, got %v", a.Tensor(0).Sizes)
	}
}

// shapePS: the input's channels are split over the bins; the second result maps outputs to input channels.
func shapePS(a *Args) []Meta {
	checkRois(a)
	x := a.Tensor(0)
	bins := a.Int(3).Mul(a.Int(4))
	if bins.Int64() <= 0 || x.Sizes[1].Int64()%bins.Int64() != 0 {
		Fail("input channels must be a multiple of pooling height * pooling width")
	}
	m := Contig(x.DType, a.Tensor(1).Sizes[0], x.Sizes[1].FloorDiv(bins), a.Int(3), a.Int(4))
	i := m
	i.DType = tensor.Int32
	return []Meta{m, i}
}

// roi is one region: its batch index and corners in the input's image.
type roi struct {
	batch int64
	box   [4]float64
}

func roisOf(k *Kernel) []roi {
	v := f64s(k, k.T(1))
	n := k.T(0).Sizes()[0]
	out := make([]roi, len(v)/5)
	for i := range out {
		r := v[5*i : 5*i+5]
		out[i].batch = int64(r[0])
		if b := out[i].batch; b < 0 || b >= n {
			FailIndex("batch index %d of a region is out of bounds for a batch of %d", b, n)
		}
		copy(out[i].box[:], r[1:])
	}
	return out
}

func storeI32(k *Kernel, out *tensor.Tensor, v []int32) {
	t, err := tensor.FromSlice(v, out.Sizes()...)
	if err != nil {
		Fail("%v", err)
	}
	Copy(k.Pool, out, t)
}

// roundHalfAway rounds as C's round().
func roundHalfAway(v float64) int64 { return int64(math.Round(v)) }

func clampInt(v, lo, hi int64) int64 { return min(max(v, lo), hi) }

func roiPool(k *Kernel) {
	x := k.T(0)
	xs := f64s(k, x)
	c, h, w := x.Sizes()[1], x.Sizes()[2], x.Sizes()[3]
	ph, pw, scale := k.I64(3), k.I64(4), float64(float32(k.Float(2)))
	res, arg := make([]float64, 0, k.Out[0].Numel()), make([]int32, 0, k.Out[0].Numel())
	for _, r := range roisOf(k) {
		x0, y0 := roundHalfAway(r.box[0]*scale), roundHalfAway(r.box[1]*scale)
		x1, y1 := roundHalfAway(r.box[2]*scale), roundHalfAway(r.box[3]*scale)
		bh := float32(max(y1-y0+1, 1)) / float32(ph)
		bw := float32(max(x1-x0+1, 1)) / float32(pw)
		for ch := range c {
			plane := xs[(r.batch*c+ch)*h*w : (r.batch*c+ch+1)*h*w]
			for i := range ph {
				ys := clampInt(int64(math.Floor(float64(float32(i)*bh)))+y0, 0, h)
				ye := clampInt(int64(math.Ceil(float64(float32(i+1)*bh)))+y0, 0, h)
				for j := range pw {
					xl := clampInt(int64(math.Floor(float64(float32(j)*bw)))+x0, 0, w)
					xr := clampInt(int64(math.Ceil(float64(float32(j+1)*bw)))+x0, 0, w)
					best, at := 0.0, int32(-1)
					if ye > ys && xr > xl {
						best = -math.MaxFloat32
					}
					for y := ys; y < ye; y++ {
						for q := xl; q < xr; q++ {
							if v := plane[y*w+q]; v > best {
								best, at = v, int32(y*w+q)
							}
						}
					}
					res, arg = append(res, best), append(arg, at)
				}
			}
		}
	}
	storeF64(k, k.Out[0], res)
	storeI32(k, k.Out[1], arg)
}

// psBins calls f for each output of a position-sensitive pooling: its region, bin and input channel.
func psBins(k *Kernel, f func(r *roi, i, j int64, plane []float64) float64) {
	x := k.T(0)
	xs := f64s(k, x)
	c, h, w := x.Sizes()[1], x.Sizes()[2], x.Sizes()[3]
	ph, pw := k.I64(3), k.I64(4)
	res, chans := make([]float64, 0, k.Out[0].Numel()), make([]int32, 0, k.Out[0].Numel())
	rois := roisOf(k)
	for n := range rois {
		r := &rois[n]
		for o := range c / (ph * pw) {
			for i := range ph {
				for j := range pw {
					ch := (o*ph+i)*pw + j
					res = append(res, f(r, i, j, xs[(r.batch*c+ch)*h*w:(r.batch*c+ch+1)*h*w]))
					chans = append(chans, int32(ch))
				}
			}
		}
	}
	storeF64(k, k.Out[0], res)
	storeI32(k, k.Out[1], chans)
}

func psRoiAlign(k *Kernel) {
	h, w := k.T(0).Sizes()[2], k.T(0).Sizes()[3]
	ph, pw, s, ratio := k.I64(3), k.I64(4), k.Float(2), k.I64(5)
	psBins(k, func(r *roi, i, j int64, plane []float64) float64 {
		x0, y0 := r.box[0]*s-0.5, r.box[1]*s-0.5
		bh, bw := (r.box[3]*s-0.5-y0)/float64(ph), (r.box[2]*s-0.5-x0)/float64(pw)
		gh, gw := ratio, ratio
		if ratio <= 0 {
			gh, gw = ceilInt(bh), ceilInt(bw)
		}
		sum := 0.0
		for iy := range gh {
			for ix := range gw {
				sum += bilinearAt(plane, h, w, y0+float64(i)*bh+(float64(iy)+0.5)*bh/float64(gh), x0+float64(j)*bw+(float64(ix)+0.5)*bw/float64(gw))
			}
		}
		return sum / float64(gh*gw)
	})
}

func psRoiPool(k *Kernel) {
	h, w := k.T(0).Sizes()[2], k.T(0).Sizes()[3]
	ph, pw, s := k.I64(3), k.I64(4), float64(float32(k.Float(2)))
	psBins(k, func(r *roi, i, j int64, plane []float64) float64 {
		x0, y0 := roundHalfAway(r.box[0]*s), roundHalfAway(r.box[1]*s)
		x1, y1 := roundHalfAway(r.box[2]*s), roundHalfAway(r.box[3]*s)
		bh := float32(max(y1-y0, 1)) / float32(ph)
		bw := float32(max(x1-x0, 1)) / float32(pw)
		ys := clampInt(int64(math.Floor(float64(float32(i)*bh)))+y0, 0, h-1)
		ye := clampInt(int64(math.Ceil(float64(float32(i+1)*bh)))+y0, 0, h-1)
		xl := clampInt(int64(math.Floor(float64(float32(j)*bw)))+x0, 0, w-1)
		xr := clampInt(int64(math.Ceil(float64(float32(j+1)*bw)))+x0, 0, w-1)
		if ye <= ys || xr <= xl {
			return 0
		}
		sum := 0.0
		for y := ys; y < ye; y++ {
			for q := xl; q < xr; q++ {
				sum += plane[y*w+q]
			}
		}
		return sum / float64((ye-ys)*(xr-xl))
	})
}

func shapeDeform(a *Args) []Meta {
	x, w, off := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	if x.Dim() != 4 || w.Dim() != 4 || off.Dim() != 4 {
		Fail("deform_conv2d: input, weight and offset must have 4 dimensions, got %v, %v and %v", x.Sizes, w.Sizes, off.Sizes)
	}
	groups, og := a.Int(11), a.Int(12)
	if groups.Le(symbolic.N(0)) || og.Int64() <= 0 || !x.Sizes[1].Eq(w.Sizes[1].Mul(groups)) || x.Sizes[1].Int64()%og.Int64() != 0 || w.Sizes[0].Mod(groups).Ne(symbolic.N(0)) {
		Fail("deform_conv2d: input %v, weight %v, %v groups and %v offset groups do not fit together", x.Sizes, w.Sizes, groups, og)
	}
	size := func(in, k symbolic.Int, i int) symbolic.Int {
		if a.I64(5+i) <= 0 || a.I64(9+i) <= 0 || a.I64(7+i) < 0 {
			Fail("deform_conv2d: stride and dilation must be positive, padding not negative")
		}
		return in.Add(a.Int(7 + i).MulN(2)).Sub(a.Int(9 + i).Mul(k.SubN(1))).SubN(1).FloorDiv(a.Int(5 + i)).AddN(1)
	}
	oh, ow := size(x.Sizes[2], w.Sizes[2], 0), size(x.Sizes[3], w.Sizes[3], 1)
	if oh.Int64() <= 0 || ow.Int64() <= 0 {
		Fail("Calculated output size too small - out_h: %v out_w: %v", oh, ow)
	}
	taps := w.Sizes[2].Mul(w.Sizes[3])
	if !off.Sizes[1].Eq(og.Mul(taps).MulN(2)) || !off.Sizes[2].Eq(oh) || !off.Sizes[3].Eq(ow) || !off.Sizes[0].Eq(x.Sizes[0]) {
		Fail("offset output dims: (%v, %v) - computed output dims: (%v, %v)", off.Sizes[2], off.Sizes[3], oh, ow)
	}
	if m := a.Tensor(3); a.Bool(13) && (m.Dim() != 4 || !m.Sizes[0].Eq(x.Sizes[0]) || !m.Sizes[1].Eq(og.Mul(taps)) || !m.Sizes[2].Eq(oh) || !m.Sizes[3].Eq(ow)) {
		Fail("mask.shape[1] is not valid: got: %v expected: %v", m.Sizes, og.Mul(taps))
	}
	return []Meta{Contig(x.DType, x.Sizes[0], w.Sizes[0], oh, ow)}
}

// deformKernel samples the input at shifted positions into columns and multiplies by the weight (Dai et al. 2017; the mask is
// that of Zhu et al. 2018).
func deformKernel(k *Kernel) {
	x, w, out := k.T(0), k.T(1), k.Out[0]
	if out.Numel() == 0 {
		return
	}
	xs, ws, off, bias := f64s(k, x), f64s(k, w), f64s(k, k.T(2)), f64s(k, k.T(4))
	var mask []float64
	if k.Bool(13) {
		mask = f64s(k, k.T(3))
	}
	n, c, h, wd := x.Sizes()[0], x.Sizes()[1], x.Sizes()[2], x.Sizes()[3]
	o, cg, kh, kw := w.Sizes()[0], w.Sizes()[1], w.Sizes()[2], w.Sizes()[3]
	oh, ow := out.Sizes()[2], out.Sizes()[3]
	groups, og, taps, pos := k.I64(11), k.I64(12), kh*kw, oh*ow
	res := make([]float64, n*o*pos)
	for b := range n {
		cols := make([]float64, c*taps*pos)
		for ch := range c {
			plane := xs[(b*c+ch)*h*wd : (b*c+ch+1)*h*wd]
			g := ch / (c / og)
			for t := range taps {
				ti := g*taps + t
				for p := range pos {
					y := float64(p/ow*k.I64(5)-k.I64(7)+t/kw*k.I64(9)) + off[((b*og*taps+ti)*2)*pos+p]
					q := float64(p%ow*k.I64(6)-k.I64(8)+t%kw*k.I64(10)) + off[((b*og*taps+ti)*2+1)*pos+p]
					v := zeroPadded(plane, h, wd, y, q)
					if mask != nil {
						v *= mask[(b*og*taps+ti)*pos+p]
					}
					cols[(ch*taps+t)*pos+p] = v
				}
			}
		}
		for oc := range o {
			dst := res[(b*o+oc)*pos : (b*o+oc+1)*pos]
			g := oc / (o / groups)
			for i := range dst {
				dst[i] = bias[oc]
			}
			for i := range cg * taps {
				f := ws[oc*cg*taps+i]
				for p, v := range cols[(g*cg*taps+i)*pos : (g*cg*taps+i+1)*pos] {
					dst[p] += f * v
				}
			}
		}
	}
	storeF64(k, out, res)
}

// zeroPadded interpolates with zeros outside the plane.
func zeroPadded(p []float64, h, w int64, y, x float64) float64 {
	if !(y > -1 && y < float64(h) && x > -1 && x < float64(w)) {
		return 0
	}
	fy, fx := math.Floor(y), math.Floor(x)
	ly, lx := y-fy, x-fx
	get := func(iy, ix int64) float64 {
		if iy < 0 || iy >= h || ix < 0 || ix >= w {
			return 0
		}
		return p[iy*w+ix]
	}
	yl, xl := int64(fy), int64(fx)
	return (1-ly)*(1-lx)*get(yl, xl) + (1-ly)*lx*get(yl, xl+1) + ly*(1-lx)*get(yl+1, xl) + ly*lx*get(yl+1, xl+1)
}
