package aten

import (
	"math"
)

// gridBackwardOps are the gradients of grid sampling: of the input, where each weight carries back what it took, and of the grid, by
// the slope of the interpolation. They are computed in float64.
var gridBackwardOps = []Op{
	{Schema: "grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)", Shape: func(a *Args) []Meta {
		m := gridBackwardMeta(a, 2)
		if !a.Bools(6)[0] {
			m[0] = Undefined
		}
		return m
	}, CPU: func(k *Kernel) { gridBackward(k, 2) }},
	{Schema: "grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)", Shape: func(a *Args) []Meta {
		Check(a.I64(3) != 2, "grid_sampler(): bicubic interpolation only supports 4D input")
		m := gridBackwardMeta(a, 3)
		if !a.Bools(6)[0] {
			m[0] = Undefined
		}
		return m
	}, CPU: func(k *Kernel) { gridBackward(k, 3) }},
	{Schema: "_grid_sampler_2d_cpu_fallback_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> (Tensor, Tensor)", Shape: func(a *Args) []Meta { return gridBackwardMeta(a, 2) },
		CPU: func(k *Kernel) { gridBackward(k, 2) }},
}

func gridBackwardMeta(a *Args, n int) []Meta {
	g, x, grid := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	out := shapeGrid(&Args{V: []any{x, grid}}, n)[0]
	Check(SameSizes(g.Sizes, out.Sizes), "grid_sampler_%dd_backward: expected a gradient of sizes %s, got %s", n, sizesText(out.Sizes), sizesText(g.Sizes))
	return []Meta{Contig(x.DType, x.Sizes...), Contig(grid.DType, grid.Sizes...)}
}

// gridTap is a neighbour along one dimension: its index (-1 outside), its weight, and the weight's slope over the grid coordinate.
type gridTap struct {
	at            int64
	weight, slope float64
}

func gridBackward(k *Kernel, n int) {
	x, grad, grid := k.floats(k.T(1)), k.floats(k.T(0)), k.floats(k.T(2))
	g := &gridModes[float64]{mode: k.I64(3), pad: k.I64(4), align: k.Bool(5)}
	size := k.T(1).Sizes()
	batch, channels, spatial := size[0], size[1], size[2:]
	plane := int64(1)
	for _, s := range spatial {
		plane *= s
	}
	points := int64(len(grid)) / int64(n) / max(batch, 1)
	dx, dg := make([]float64, len(x)), make([]float64, len(grid))
	for p := range batch * points {
		b := p / max(points, 1)
		taps := make([][]gridTap, n) // of the last dimension last, as the sizes have it
		for d := range n {
			taps[d] = g.taps(grid[p*int64(n)+int64(n-1-d)], int(spatial[d]))
		}
		eachTap(taps, func(at int64, chosen []gridTap) {
			for c := range channels {
				i := (b*channels+c)*plane + at
				o := grad[(b*channels+c)*points+p%points]
				w := o
				for _, t := range chosen {
					w *= t.weight
				}
				dx[i] += w
				for d := range chosen {
					s := o * x[i]
					for e, t := range chosen {
						s *= pick(e == d, t.slope, t.weight)
					}
					dg[p*int64(n)+int64(n-1-d)] += s
				}
			}
		}, spatial)
	}
	for i, v := range [][]float64{dx, dg} {
		if k.Out[i] != nil {
			k.storeFloats(k.Out[i], v)
		}
	}
}

// eachTap calls f for every combination of neighbours inside the input, with its place there.
func eachTap(taps [][]gridTap, f func(at int64, chosen []gridTap), sizes []int64) {
	chosen := make([]gridTap, len(taps))
	var walk func(d int, at int64)
	walk = func(d int, at int64) {
		if d == len(taps) {
			f(at, chosen)
			return
		}
		for _, t := range taps[d] {
			if t.at >= 0 {
				chosen[d] = t
				walk(d+1, at*sizes[d]+t.at)
			}
		}
	}
	walk(0, 0)
}

// taps gives the neighbours of a grid coordinate along a dimension.
func (g *gridModes[T]) taps(v T, size int) []gridTap {
	inside := func(i int) int64 {
		if i < 0 || i >= size {
			return -1
		}
		return int64(i)
	}
	slope := float64(size) / 2
	if g.align {
		slope = float64(size-1) / 2
	}
	pos := g.place(v, size)
	if g.mode == 2 {
		low := floorOf(pos)
		w, ds := g.coefficients(pos-low), cubicSlopes(float64(pos-low))
		out := make([]gridTap, 4)
		for i := range out {
			out[i] = gridTap{inside(whole(g.padded(low+T(i-1), size))), float64(w[i]), ds[i] * slope}
		}
		return out
	}
	slope *= g.padSlope(float64(pos), size)
	pos = g.padded(pos, size)
	if g.mode == 1 {
		return []gridTap{{inside(whole(T(math.RoundToEven(float64(pos))))), 1, 0}}
	}
	low := floorOf(pos)
	up := float64(pos - low)
	return []gridTap{{inside(whole(low)), 1 - up, -slope}, {inside(whole(low) + 1), up, slope}}
}

// cubicSlopes are the derivatives of the four weights of the cubic convolution kernel with a = -0.75.
func cubicSlopes(t float64) [4]float64 {
	const a = -0.75
	far := func(x float64) float64 { return (3*a*x-10*a)*x + 8*a }
	near := func(x float64) float64 { return (3*(a+2)*x - 2*(a+3)) * x }
	return [4]float64{far(t + 1), near(t), -near(1 - t), -far(2 - t)}
}

// padSlope is the derivative of a padded position: 0 where it is held at an end, -1 where it runs back.
func (g *gridModes[T]) padSlope(v float64, size int) float64 {
	held := func(v float64) float64 { return pick(v <= 0 || v >= float64(size-1), 0.0, 1) }
	switch g.pad {
	case 1:
		return held(v)
	case 2:
		low, span := -0.5, float64(size)
		if g.align {
			low, span = 0, float64(size-1)
		}
		if span == 0 {
			return 0
		}
		sign := 1.0
		if v -= low; v < 0 {
			sign, v = -1, -v
		}
		extra := math.Mod(v, span)
		if math.Mod(math.Floor(v/span), 2) == 0 {
			return sign * held(extra+low)
		}
		return -sign * held(span-extra+low)
	}
	return 1
}
