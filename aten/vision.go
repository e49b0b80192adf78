package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"sort"

	"github.com/pt2go/pt2/tensor"
)

// visionOps are operators of torchvision.
var visionOps = []Op{
	{Schema: "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", Tags: DataDependent, Dynamic: func(k *Kernel) []*tensor.Tensor {
		return []*tensor.Tensor{nms(k)}
	}},
	{Schema: "torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor", Shape: func(a *Args) []Meta {
		x, r := a.Tensor(0), a.Tensor(1)
		if r.Dim() != 2 || r.Sizes[1].Ne(symbolic.N(5)) {
			Fail("Tensor rois should have shape as Tensor[K, 5]")
		}
		return []Meta{Contig(x.DType, r.Sizes[0], x.Sizes[1], a.Int(3), a.Int(4))}
	}, CPU: roiAlign},
}

// nms keeps boxes by falling score, dropping those that overlap a kept one by more than the threshold.
func nms(k *Kernel) *tensor.Tensor {
	d := k.T(0)
	if d.Dim() != 2 || d.Sizes()[1] != 4 {
		Fail("boxes should be a 2d tensor with 4 elements in dimension 1, got sizes %v", d.Sizes())
	}
	if s := k.T(1); s.Dim() != 1 || s.Sizes()[0] != d.Sizes()[0] {
		Fail("boxes and scores should have same number of elements in dimension 0, got %d and %v", d.Sizes()[0], s.Sizes())
	}
	box, score := tensor.Contiguous[float32](k.as(d, tensor.Float32)), tensor.Contiguous[float32](k.as(k.T(1), tensor.Float32))
	order := make([]int, len(score))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return score[order[a]] > score[order[b]] })
	gone := make([]bool, len(order))
	keep := []int64{}
	area := func(b []float32) float32 { return (b[2] - b[0]) * (b[3] - b[1]) }
	for p, i := range order {
		if gone[i] {
			continue
		}
		keep = append(keep, int64(i))
		a := box[4*i : 4*i+4]
		for _, j := range order[p+1:] {
			b := box[4*j : 4*j+4]
			w := max(0, min(a[2], b[2])-max(a[0], b[0]))
			h := max(0, min(a[3], b[3])-max(a[1], b[1]))
			inter := w * h
			if float64(inter/(area(a)+area(b)-inter)) > k.Float(2) {
				gone[j] = true
			}
		}
	}
	t, err := tensor.FromSlice(keep, int64(len(keep)))
	if err != nil {
		Fail("%v", err)
	}
	return t
}

// roiAlign averages bilinear samples in each bin of each region (He et al., Mask R-CNN, 2017).
func roiAlign(k *Kernel) {
	x, out := k.T(0), k.Out[0]
	if out.Numel() == 0 {
		return
	}
	xs, rois := f64s(k, x), f64s(k, k.T(1))
	n, c, h, w := x.Sizes()[0], x.Sizes()[1], x.Sizes()[2], x.Sizes()[3]
	ph, pw := k.I64(3), k.I64(4)
	ratio := k.I64(5)
	off := 0.0
	if k.Bool(6) {
		off = 0.5
	}
	res := make([]float64, 0, out.Numel())
	for r := 0; r < len(rois); r += 5 {
		b := int64(rois[r])
		if b < 0 || b >= n {
			FailIndex("roi_align: batch index %d is out of bounds for a batch of %d", b, n)
		}
		s := k.Float(2)
		x0, y0, x1, y1 := rois[r+1]*s-off, rois[r+2]*s-off, rois[r+3]*s-off, rois[r+4]*s-off
		rw, rh := x1-x0, y1-y0
		if off == 0 {
			rw, rh = max(rw, 1), max(rh, 1)
		}
		bh, bw := rh/float64(ph), rw/float64(pw)
		gh, gw := ratio, ratio
		if ratio <= 0 {
			gh, gw = ceilInt(rh/float64(ph)), ceilInt(rw/float64(pw))
		}
		count := float64(max(gh*gw, 1))
		for ch := range c {
			plane := xs[(b*c+ch)*h*w : (b*c+ch+1)*h*w]
			for i := range ph {
				for j := range pw {
					sum := 0.0
					for iy := range gh {
						y := y0 + float64(i)*bh + (float64(iy)+0.5)*bh/float64(gh)
						for ix := range gw {
							sum += bilinearAt(plane, h, w, y, x0+float64(j)*bw+(float64(ix)+0.5)*bw/float64(gw))
						}
					}
					res = append(res, sum/count)
				}
			}
		}
	}
	storeF64(k, out, res)
}

func ceilInt(f float64) int64 {
	n := int64(f)
	if float64(n) < f {
		n++
	}
	return max(n, 0)
}

func bilinearAt(p []float64, h, w int64, y, x float64) float64 {
	if y < -1 || y > float64(h) || x < -1 || x > float64(w) {
		return 0
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
	return (1-ly)*(1-lx)*p[yl*w+xl] + (1-ly)*lx*p[yl*w+xh] + ly*(1-lx)*p[yh*w+xl] + ly*lx*p[yh*w+xh]
}
