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

// gridKernel samples at x = (g+1)*(W/2) - 0.5 (align_corners: (g+1)*((W-1)/2)); modes 0 bilinear, 1 nearest, 2 bicubic;
// padding 0 zeros, 1 border, 2 reflection. PyTorch rounds each step to the input's dtype, 16-bit floats too, which decides
// between neighbours, so the same is done here.
func gridKernel(k *Kernel) {
	x, g, out := k.T(0), k.T(1), k.Out[0]
	if out.Numel() == 0 {
		return
	}
	xs, gs := f64s(k, x), f64s(k, g)
	n, c, h, w := x.Sizes()[0], x.Sizes()[1], x.Sizes()[2], x.Sizes()[3]
	oh, ow := g.Sizes()[1], g.Sizes()[2]
	dt := x.DType()
	p := gridPlane{h: h, w: w, mode: k.I64(2), pad: k.I64(3), align: k.Bool(4), rd: func(v float64) float64 { return v }}
	if dt != tensor.Float64 {
		p.rd = func(v float64) float64 { return roundTo(dt, v) }
	}
	res := make([]float64, out.Numel())
	k.Pool.ParallelFor(int(n*oh), 8, func(lo, hi int) {
		for r := int64(lo); r < int64(hi); r++ {
			b, i := r/oh, r%oh
			for j := range ow {
				at := ((b*oh+i)*ow + j) * 2
				px, py := p.coord(gs[at], w), p.coord(gs[at+1], h)
				for ch := range c {
					res[((b*c+ch)*oh+i)*ow+j] = p.sample(xs[(b*c+ch)*h*w:(b*c+ch+1)*h*w], py, px)
				}
			}
		}
	})
	storeF64(k, out, res)
}

// gridPlane samples planes of h rows and w columns; rd rounds to the dtype that PyTorch computes in.
type gridPlane struct {
	h, w, mode, pad int64
	align           bool
	rd              func(float64) float64
}

// coord brings a grid coordinate from [-1, 1] to elements.
func (p *gridPlane) coord(v float64, size int64) float64 {
	v = p.rd(v + 1)
	if p.align {
		return p.rd(v * p.rd(float64(size-1)/2))
	}
	return p.rd(p.rd(v*p.rd(float64(size)/2)) - 0.5)
}

// padded brings a coordinate into the plane; zeros padding leaves it outside.
func (p *gridPlane) padded(v float64, size int64) float64 {
	switch p.pad {
	case 1:
		v = clampFloat(v, 0, float64(size-1))
	case 2:
		shift, span := 0.5, p.rd(float64(size)*2)
		if p.align {
			shift, span = 0, p.rd(float64(size-1)*2)
		}
		if span == 0 {
			return 0
		}
		v = math.Abs(p.rd(v + shift))
		rest := p.rd(v - p.rd(math.Trunc(p.rd(v/span))*span))
		v = p.rd(math.Min(rest, p.rd(span-rest)) - shift)
		v = clampFloat(v, 0, float64(size-1))
	}
	return v
}

func (p *gridPlane) at(plane []float64, iy, ix float64) float64 {
	if iy < 0 || iy >= float64(p.h) || ix < 0 || ix >= float64(p.w) || iy != iy || ix != ix {
		return 0
	}
	return plane[int64(iy)*p.w+int64(ix)]
}

func (p *gridPlane) sample(plane []float64, y, x float64) float64 {
	if p.mode == 2 {
		return p.cubic(plane, y, x)
	}
	y, x = p.padded(y, p.h), p.padded(x, p.w)
	if p.mode == 1 {
		return p.at(plane, math.RoundToEven(y), math.RoundToEven(x))
	}
	rd := p.rd
	fy, fx := math.Floor(y), math.Floor(x)
	west, north := rd(x-fx), rd(y-fy)
	east, south := rd(1-west), rd(1-north)
	s := rd(p.at(plane, fy, fx) * rd(east*south))
	s = rd(s + rd(p.at(plane, fy, fx+1)*rd(west*south)))
	s = rd(s + rd(p.at(plane, fy+1, fx)*rd(east*north)))
	return rd(s + rd(p.at(plane, fy+1, fx+1)*rd(west*north)))
}

func (p *gridPlane) cubic(plane []float64, y, x float64) float64 {
	rd := p.rd
	fy, fx := math.Floor(y), math.Floor(x)
	wy, wx := p.cubicWeights(rd(y-fy)), p.cubicWeights(rd(x-fx))
	s := 0.0
	for i := range 4 {
		row := 0.0
		iy := p.padded(rd(fy+float64(i)-1), p.h)
		for j := range 4 {
			row = rd(row + rd(wx[j]*p.at(plane, iy, p.padded(rd(fx+float64(j)-1), p.w))))
		}
		s = rd(s + rd(wy[i]*row))
	}
	return s
}

// cubicWeights are those of Keys' kernel with a = -0.75, as [keys], rounded at each step.
func (p *gridPlane) cubicWeights(t float64) [4]float64 {
	const a = -0.75
	rd := p.rd
	near := func(x float64) float64 { return rd(rd(rd(rd(rd(rd((a+2)*x)-rd(a+3))*x)*x)) + 1) }
	far := func(x float64) float64 {
		return rd(rd(rd(rd(rd(rd(a*x)-rd(5*a))*x)+rd(8*a))*x) - rd(4*a))
	}
	return [4]float64{far(rd(t + 1)), near(t), near(rd(1 - t)), far(rd(2 - t))}
}
