package aten

import "math"

// antialiasOps interpolate with a filter as wide as the reduction, as Pillow does.
var antialiasOps = concat(
	upsample("_upsample_bilinear2d_aa", 2, triangleTaps), upsample("_upsample_bicubic2d_aa", 2, keysTaps), upsample("_upsample_lanczos2d_aa", 2, lanczosTaps),
	[]Op{upsampleBackward("_upsample_bilinear2d_aa", 2, triangleTaps), upsampleBackward("_upsample_bicubic2d_aa", 2, keysTaps), upsampleBackward("_upsample_lanczos2d_aa", 2, lanczosTaps)},
)

var triangleTaps = filterTaps(1, func(x float64) float64 { return math.Max(0, 1-math.Abs(x)) })

var keysTaps = filterTaps(2, func(x float64) float64 {
	const a = -0.5
	switch x = math.Abs(x); {
	case x < 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return (((x-5)*x+8)*x - 4) * a
	}
	return 0
})

// lanczosTaps is the cardinal sine under a window of three of its lobes.
var lanczosTaps = filterTaps(3, func(x float64) float64 {
	switch {
	case x == 0:
		return 1
	case math.Abs(x) >= 3:
		return 0
	}
	x *= math.Pi
	return math.Sin(x) / x * math.Sin(x/3) / (x / 3)
})

// filterTaps weighs all source positions within support by f, stretched by the scale where that shrinks.
func filterTaps(support float64, f func(x float64) float64) taps {
	return func(i int64, x *axis) ([]int64, []float64) {
		scale := x.r(x.scale)
		if x.align {
			scale = 0
			if x.out > 1 {
				scale = x.r(float64(x.in-1) / float64(x.out-1))
			}
		}
		reach, stretch := support, 1.0
		if scale >= 1 {
			reach, stretch = x.r(support*scale), x.r(1/scale)
		}
		center := x.r(scale * (float64(i) + 0.5))
		lo := max(int64(x.r(x.r(center-reach)+0.5)), 0)
		hi := min(int64(x.r(x.r(center+reach)+0.5)), x.in)
		var at []int64
		var w []float64
		sum := 0.0
		for s := lo; s < hi; s++ {
			v := x.r(f(x.r(x.r(x.r(float64(s)-center)+0.5) * stretch)))
			at, w = append(at, s), append(w, v)
			sum = x.r(sum + v)
		}
		for j := range w {
			if sum != 0 {
				w[j] = x.r(w[j] / sum)
			}
		}
		return at, w
	}
}
