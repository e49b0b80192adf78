package aten

import "math"

// antialiasOps interpolate with a filter as wide as the reduction, as Pillow does.
var antialiasOps = concat(
	upsample("_upsample_bilinear2d_aa", 2, filterTaps(1, func(x float64) float64 { return math.Max(0, 1-math.Abs(x)) })),
	upsample("_upsample_bicubic2d_aa", 2, filterTaps(2, func(x float64) float64 {
		const a = -0.5
		switch x = math.Abs(x); {
		case x < 1:
			return ((a+2)*x-(a+3))*x*x + 1
		case x < 2:
			return (((x-5)*x+8)*x - 4) * a
		}
		return 0
	})),
)

// filterTaps weighs all source positions within support by f, stretched by the scale where that shrinks.
func filterTaps(support float64, f func(x float64) float64) taps {
	return func(i, in, out int64, scale float64, align bool) ([]int64, []float64) {
		if align {
			scale = 0
			if out > 1 {
				scale = float64(in-1) / float64(out-1)
			}
		}
		reach, stretch := support, 1.0
		if scale >= 1 {
			reach, stretch = support*scale, 1/scale
		}
		center := scale * (float64(i) + 0.5)
		lo := max(int64(center-reach+0.5), 0)
		hi := min(int64(center+reach+0.5), in)
		var at []int64
		var w []float64
		sum := 0.0
		for s := lo; s < hi; s++ {
			v := f((float64(s) - center + 0.5) * stretch)
			at, w = append(at, s), append(w, v)
			sum += v
		}
		for j := range w {
			if sum != 0 {
				w[j] /= sum
			}
		}
		return at, w
	}
}
