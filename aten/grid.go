package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// gridOps sample a tensor at the points of a grid, and make such grids.
var gridOps = []Op{
	{Schema: "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("grid_sampler_2d", a.V...))
	}},
	{Schema: "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", Tags: Core, Shape: func(a *Args) []Meta {
		x, g := a.Tensor(0), a.Tensor(1)
		if x.Dim() != 4 || g.Dim() != 4 || g.Sizes[3].Int64() != 2 || !x.Sizes[0].Eq(g.Sizes[0]) {
			Fail("grid_sampler(): expected 4D input and grid with same batch size, but got input with sizes %v and grid with sizes %v", x.Sizes, g.Sizes)
		}
		return []Meta{Contig(x.DType, x.Sizes[0], x.Sizes[1], g.Sizes[1], g.Sizes[2])}
	}, CPU: gridKernel},
	{Schema: "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		th, size := a.Tensor(0), a.Ints(1)
		if len(size) != 4 {
			Fail("affine_grid_generator needs 4d sizes here, got %v", size)
		}
		axis := func(n symbolic.Int) *Value {
			m := n.Int64()
			v := make([]float64, m)
			for i := range v {
				switch {
				case m <= 1:
				case a.Bool(2):
					v[i] = -1 + 2*float64(i)/float64(m-1)
				default:
					v[i] = (2*float64(i)+1)/float64(m) - 1
				}
			}
			t, err := tensor.FromSlice(v, m)
			if err != nil {
				Fail("%v", err)
			}
			return b.Call("to.dtype", t, th.DType)
		}
		h, w := size[2], size[3]
		hw := []symbolic.Int{h, w}
		xs := b.Call("expand", axis(w), hw)
		ys := b.Call("expand", b.Call("unsqueeze", axis(h), 1), hw)
		ones := b.Call("ones_like", b.Call("clone", xs))
		base := b.Call("reshape", b.Call("stack", []*Value{xs, ys, ones}, 2), []symbolic.Int{symbolic.N(1), h.Mul(w), symbolic.N(3)})
		base = b.Call("expand", base, []symbolic.Int{size[0], h.Mul(w), symbolic.N(3)})
		return One(b.Call("view", b.Call("bmm", base, b.Call("transpose.int", th, 1, 2)), []symbolic.Int{size[0], h, w, symbolic.N(2)}))
	}},
}

// gridKernel samples at x = ((g+1)*W-1)/2 (align_corners: (g+1)/2*(W-1)); modes 0 bilinear, 1 nearest, 2 bicubic; padding
// 0 zeros, 1 border, 2 reflection.
func gridKernel(k *Kernel) {
	x, g, out := k.T(0), k.T(1), k.Out[0]
	if out.Numel() == 0 {
		return
	}
	xs, gs := f64s(k, x), f64s(k, g)
	n, c, h, w := x.Sizes()[0], x.Sizes()[1], x.Sizes()[2], x.Sizes()[3]
	oh, ow := g.Sizes()[1], g.Sizes()[2]
	mode, pad, align := k.I64(2), k.I64(3), k.Bool(4)
	res := make([]float64, out.Numel())
	coord := func(v float64, size int64) float64 {
		if align {
			return (v + 1) / 2 * float64(size-1)
		}
		return ((v+1)*float64(size) - 1) / 2
	}
	k.Pool.ParallelFor(int(n*oh), 8, func(lo, hi int) {
		for r := int64(lo); r < int64(hi); r++ {
			b, i := r/oh, r%oh
			for j := range ow {
				at := ((b*oh+i)*ow + j) * 2
				px, py := coord(gs[at], w), coord(gs[at+1], h)
				for ch := range c {
					plane := xs[(b*c+ch)*h*w : (b*c+ch+1)*h*w]
					res[((b*c+ch)*oh+i)*ow+j] = samplePlane(plane, h, w, py, px, mode, pad, align)
				}
			}
		}
	})
	storeF64(k, out, res)
}

// padded brings a coordinate into the plane; zeros padding leaves it outside.
func padded(v float64, size, pad int64, align bool) float64 {
	switch pad {
	case 1:
		v = clampFloat(v, 0, float64(size-1))
	case 2:
		lo, hi := -0.5, float64(size)-0.5
		if align {
			lo, hi = 0, float64(size-1)
		}
		if hi <= lo {
			return 0
		}
		span := hi - lo
		v = math.Abs(v - lo)
		flips := math.Floor(v / span)
		v -= flips * span
		if math.Mod(flips, 2) == 0 {
			v += lo
		} else {
			v = span - v + lo
		}
		v = clampFloat(v, 0, float64(size-1))
	}
	return v
}

func samplePlane(p []float64, h, w int64, y, x float64, mode, pad int64, align bool) float64 {
	get := func(iy, ix float64) float64 {
		if iy < 0 || iy >= float64(h) || ix < 0 || ix >= float64(w) || iy != iy || ix != ix {
			return 0
		}
		return p[int64(iy)*w+int64(ix)]
	}
	if mode == 2 {
		fy, fx := math.Floor(y), math.Floor(x)
		wy, wx := keys(y-fy), keys(x-fx)
		s := 0.0
		for i := range 4 {
			for j := range 4 {
				s += wy[i] * wx[j] * get(padded(fy+float64(i)-1, h, pad, align), padded(fx+float64(j)-1, w, pad, align))
			}
		}
		return s
	}
	y, x = padded(y, h, pad, align), padded(x, w, pad, align)
	if mode == 1 {
		return get(math.RoundToEven(y), math.RoundToEven(x))
	}
	fy, fx := math.Floor(y), math.Floor(x)
	ly, lx := y-fy, x-fx
	return (1-ly)*(1-lx)*get(fy, fx) + (1-ly)*lx*get(fy, fx+1) + ly*(1-lx)*get(fy+1, fx) + ly*lx*get(fy+1, fx+1)
}
