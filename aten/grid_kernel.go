package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

func shapeGrid(a *Args, n int) []Meta {
	x, g := a.Tensor(0), a.Tensor(1)
	Check(x.Dim() > 0 && g.Dim() > 0 && x.Sizes[0].Eq(g.Sizes[0]),
		"grid_sampler(): expected grid and input to have same batch size, but got input with sizes %s and grid with sizes %s", listText(x.Sizes), listText(g.Sizes))
	Check(g.Sizes[g.Dim()-1].Eq(symbolic.N(int64(x.Dim()-2))),
		"grid_sampler(): expected grid to have size %d in last dimension, but got grid with sizes %s", x.Dim()-2, listText(g.Sizes))
	for d := 2; d < x.Dim(); d++ {
		if x.Sizes[d].Eq(symbolic.N(0)) {
			Fail("grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes %s with dimension %d being empty", listText(x.Sizes), d)
		}
	}
	Check(x.Dim() == n+2 && g.Dim() == n+2, "grid_sampler(): expected %dD input and grid with same number of dimensions, but got input with sizes %s and grid with sizes %s", n+2, listText(x.Sizes), listText(g.Sizes))
	mustFloat(pick(n == 2, "grid_sampler_2d_cpu_kernel_impl", "grid_sampler3d_cpu"), x.DType)
	Check(x.DType == g.DType, "expected scalar type %s but found %s", x.DType.CPPName(), g.DType.CPPName())
	sizes := append([]symbolic.Int{x.Sizes[0], x.Sizes[1]}, g.Sizes[1:n+1]...)
	return []Meta{Contig(x.DType, sizes...)}
}

func gridKernel(k *Kernel, n int) {
	if k.Out[0].Numel() == 0 {
		return
	}
	if k.Out[0].DType() == tensor.Float64 {
		gridSample[float64](k, n)
		return
	}
	gridSample[float32](k, n)
}

// gridModes holds a grid sampling's modes: interpolation 0 bilinear, 1 nearest, 2 bicubic; padding 0 zeros, 1 border,
// 2 reflection. In 16-bit types every operation is rounded, as in PyTorch, which computes only cubic volumes in float32.
type gridModes[T float32 | float64] struct {
	mode, pad int64
	align     bool
	round     func(T) T // nil for the types that compute as they are
}

func (g *gridModes[T]) q(v T) T {
	if g.round == nil {
		return v
	}
	return g.round(v)
}

func gridSample[T float32 | float64](k *Kernel, n int) {
	dt := k.Out[0].DType()
	work := workType(dt)
	x, grid := k.T(0), tensor.Contiguous[T](k.as(k.T(1), work))
	xs := tensor.Contiguous[T](k.as(x, work))
	outT := k.room(0, work)
	out := tensor.Contiguous[T](outT)
	g := &gridModes[T]{mode: k.I64(2), pad: k.I64(3), align: k.Bool(4)}
	if dt != work && !(n == 3 && g.mode == 2) {
		g.round = rounder[T](dt)
	}
	size := [3]int{1, 1, 1}
	for d := range n {
		size[3-n+d] = int(x.Sizes()[2+d])
	}
	plane, channels := size[0]*size[1]*size[2], int(x.Sizes()[1])
	points := len(grid) / n / int(x.Sizes()[0]) // of one batch
	k.Pool.ParallelFor(len(grid)/n, max(1, 1024/max(1, channels)), func(lo, hi int) {
		for p := lo; p < hi; p++ {
			b := p / points
			in := xs[b*channels*plane : (b+1)*channels*plane]
			to := out[b*channels*points+p%points:]
			if n == 3 {
				g.volume(to, points, in, size, grid[p*3], grid[p*3+1], grid[p*3+2])
			} else {
				g.image(to, points, in, size[1], size[2], grid[p*2], grid[p*2+1])
			}
		}
	})
	k.deliver(0, outT)
}

// place is the input position of a grid coordinate in an image.
func (g *gridModes[T]) place(v T, size int) T {
	if g.align {
		return g.q(g.q(v+1) * g.q(T(size-1)/2))
	}
	return g.q(g.q(g.q(v+1)*g.q(T(size)/2)) - 0.5)
}

// padded brings a position into the image; zeros padding leaves it outside.
func (g *gridModes[T]) padded(v T, size int) T {
	switch g.pad {
	case 1:
		return g.clip(v, size)
	case 2:
		low, twice := T(-0.5), g.q(T(size)*2)
		if g.align {
			low, twice = 0, g.q(T(size-1)*2)
			if size <= 1 {
				return 0
			}
		}
		v = T(math.Abs(float64(g.q(v - low))))
		flips := T(math.Trunc(float64(g.q(v / twice))))
		extra := g.q(v - g.q(flips*twice))
		return g.clip(g.q(min(extra, g.q(twice-extra))+low), size)
	}
	return v
}

func (g *gridModes[T]) clip(v T, size int) T {
	if v != v {
		return 0
	}
	return min(max(v, 0), g.q(T(size-1)))
}

// whole is v as an index; what an int32 cannot hold lies outside every image.
func whole[T float32 | float64](v T) int {
	if !(v > -1<<31 && v < 1<<31-1) {
		return -100
	}
	return int(v)
}

func floorOf[T float32 | float64](v T) T { return T(math.Floor(float64(v))) }

// image samples all channels of an image [channels, h, w] at one grid point; out has a step between channels.
func (g *gridModes[T]) image(out []T, step int, in []T, h, w int, gx, gy T) {
	x, y := g.place(gx, w), g.place(gy, h)
	if g.mode == 2 {
		g.cubic(out, step, in, h, w, x, y)
		return
	}
	x, y = g.padded(x, w), g.padded(y, h)
	if g.mode == 1 {
		ix, iy := whole(T(math.RoundToEven(float64(x)))), whole(T(math.RoundToEven(float64(y))))
		inside := ix >= 0 && ix < w && iy >= 0 && iy < h
		for c := 0; c*h*w < len(in); c++ {
			out[c*step] = 0
			if inside {
				out[c*step] = in[c*h*w+iy*w+ix]
			}
		}
		return
	}
	fx, fy := floorOf(x), floorOf(y)
	right, down := g.q(x-fx), g.q(y-fy)
	left, up := g.q(1-right), g.q(1-down)
	weight := [4]T{g.q(up * left), g.q(up * right), g.q(down * left), g.q(down * right)}
	ix, iy := whole(fx), whole(fy)
	var at [4]int // -1 outside
	for i := range at {
		px, py := ix+i%2, iy+i/2
		at[i] = py*w + px
		if px < 0 || px >= w || py < 0 || py >= h {
			at[i] = -1
		}
	}
	for c := 0; c*h*w < len(in); c++ {
		img := in[c*h*w : (c+1)*h*w]
		var s T
		for i, a := range at {
			var v T
			if a >= 0 {
				v = img[a]
			}
			v = g.q(v * weight[i])
			if i == 0 {
				s = v
			} else {
				s = g.q(s + v)
			}
		}
		out[c*step] = s
	}
}

// coefficients are the four weights of the cubic convolution kernel (Keys 1981) with a = -0.75 at fraction t.
func (g *gridModes[T]) coefficients(t T) [4]T {
	const a = -0.75
	far := func(x T) T {
		v := g.q(g.q(a*x) - 5*a)
		v = g.q(g.q(v*x) + 8*a)
		return g.q(g.q(v*x) - 4*a)
	}
	near := func(x T) T {
		v := g.q(g.q((a+2)*x) - (a + 3))
		return g.q(g.q(g.q(v*x)*x) + 1)
	}
	return [4]T{far(g.q(t + 1)), near(t), near(g.q(1 - t)), far(g.q(2 - t))}
}

func (g *gridModes[T]) cubic(out []T, step int, in []T, h, w int, x, y T) {
	fx, fy := floorOf(x), floorOf(y)
	wx, wy := g.coefficients(g.q(x-fx)), g.coefficients(g.q(y-fy))
	var ix, iy [4]int
	for i := range 4 {
		ix[i], iy[i] = whole(g.padded(g.q(fx+T(i-1)), w)), whole(g.padded(g.q(fy+T(i-1)), h))
	}
	for c := 0; c*h*w < len(in); c++ {
		img := in[c*h*w : (c+1)*h*w]
		var s T
		for i, py := range iy {
			var line T
			for j, px := range ix {
				var v T
				if px >= 0 && px < w && py >= 0 && py < h {
					v = img[py*w+px]
				}
				line = g.q(line + g.q(wx[j]*v))
			}
			s = g.q(s + g.q(wy[i]*line))
		}
		out[c*step] = s
	}
}

// deep is the input position of a grid coordinate in a volume.
func (g *gridModes[T]) deep(v T, size int) T {
	if g.align {
		return g.q(g.q(g.q(v+1)/2) * g.q(T(size-1)))
	}
	return g.q(g.q(g.q(g.q(v+1)*g.q(T(size)))-1) / 2)
}

// deepPadded brings a position into the volume; zeros padding leaves it outside.
func (g *gridModes[T]) deepPadded(v T, size int) T {
	lo, hi := T(-0.5), g.q(g.q(T(size))-0.5)
	if g.align {
		lo, hi = 0, g.q(T(size-1))
	}
	switch g.pad {
	case 1:
		return g.clip(v, size)
	case 2:
		if hi <= lo {
			return 0
		}
		span := g.q(hi - lo)
		v = T(math.Abs(float64(g.q(v - lo))))
		extra := g.q(T(math.Mod(float64(v), float64(span))))
		if math.Mod(math.Floor(float64(g.q(v/span))), 2) == 0 {
			v = g.q(extra + lo)
		} else {
			v = g.q(g.q(span-extra) + lo)
		}
		return g.clip(v, size)
	}
	return v
}

// volume samples all channels of a volume [channels, d, h, w] at one grid point.
func (g *gridModes[T]) volume(out []T, step int, in []T, size [3]int, gx, gy, gz T) {
	pos := [3]T{g.deep(gz, size[0]), g.deep(gy, size[1]), g.deep(gx, size[2])}
	if g.mode == 2 {
		g.cubicVolume(out, step, in, size, pos)
		return
	}
	for d := range pos {
		pos[d] = g.deepPadded(pos[d], size[d])
	}
	plane := size[0] * size[1] * size[2]
	var near [3]int
	corners := 8
	var frac, rest [3]T // distances from the lower and to the upper neighbour
	for d, v := range pos {
		if g.mode == 1 {
			near[d], corners = whole(T(math.RoundToEven(float64(v)))), 1
			rest[d] = 1
			continue
		}
		near[d] = whole(floorOf(v))
		frac[d], rest[d] = g.q(v-T(near[d])), g.q(T(near[d]+1)-v)
	}
	var at [8]int
	var weight [8]T
	for i := range corners {
		at[i] = 0
		var w [3]T
		for d := range 3 {
			up := i >> (2 - d) & 1
			p := near[d] + up
			w[d] = pick(up == 1, frac[d], rest[d])
			if p < 0 || p >= size[d] || at[i] < 0 {
				at[i] = -1
			} else {
				at[i] = at[i]*size[d] + p
			}
		}
		weight[i] = g.q(g.q(w[2]*w[1]) * w[0])
	}
	for c := 0; c*plane < len(in); c++ {
		var s T
		for i, a := range at[:corners] {
			if a >= 0 {
				s = g.q(s + g.q(in[c*plane+a]*weight[i]))
			}
		}
		out[c*step] = s
	}
}

// cubicVolume is volume for cubic interpolation: along x, then y, then z, over 64 neighbours that are each padded.
func (g *gridModes[T]) cubicVolume(out []T, step int, in []T, size [3]int, pos [3]T) {
	var w [3][4]T
	var at [3][4]int // -1 outside
	for d, v := range pos {
		low := floorOf(v)
		w[d] = g.coefficients(v - low)
		for i := range 4 {
			p := whole(g.deepPadded(low+T(i-1), size[d]))
			at[d][i] = pick(p >= 0 && p < size[d], p, -1)
		}
	}
	plane := size[0] * size[1] * size[2]
	for c := 0; c*plane < len(in); c++ {
		vol := in[c*plane : (c+1)*plane]
		out[c*step] = weighted(&w[0], func(z int) T {
			return weighted(&w[1], func(y int) T {
				return weighted(&w[2], func(x int) T {
					pz, py, px := at[0][z], at[1][y], at[2][x]
					if pz < 0 || py < 0 || px < 0 {
						return 0
					}
					return vol[(pz*size[1]+py)*size[2]+px]
				})
			})
		})
	}
}

// weighted sums four numbers with weights.
func weighted[T float32 | float64](w *[4]T, v func(i int) T) T {
	return v(0)*w[0] + v(1)*w[1] + v(2)*w[2] + v(3)*w[3]
}
