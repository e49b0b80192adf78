package aten

import (
	"slices"

	"github.com/pt2go/pt2/symbolic"
)

// fftnParams are the common parameters of transforms over several dimensions.
type fftnParams struct {
	dims  []int
	sizes []symbolic.Int // of the transformed dimensions
	free  bool           // the last size was not given
	norm  string
}

func fftN(name, args string, f func(b *Build, x *Value, p fftnParams) *Value) Op {
	return Op{Schema: name + "(Tensor self, " + args + ", str? norm=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		return One(f(b, x, newFFTnParams(a, x)))
	}}
}

func newFFTnParams(a *Args, x *Value) fftnParams {
	p := fftnParams{norm: a.Str(3), free: true}
	s, given := a.Ints(1), a.Has(1)
	if a.Has(2) {
		for _, d := range a.I64s(2) {
			w := WrapDim(d, x.Dim())
			Check(!slices.Contains(p.dims, w), "FFT dims must be unique")
			p.dims = append(p.dims, w)
		}
	}
	if given {
		Check(!a.Has(2) || len(p.dims) == len(s), "When given, dim and shape arguments must have the same length")
		Check(len(s) <= x.Dim(), "Got shape with %d values but input tensor only has %d dimensions.", len(s), x.Dim())
	}
	if !a.Has(2) {
		from := 0
		if given {
			from = x.Dim() - len(s)
		}
		for d := from; d < x.Dim(); d++ {
			p.dims = append(p.dims, d)
		}
	}
	for i, d := range p.dims {
		n := x.Sizes[d]
		if given && !s[i].Eq(symbolic.N(-1)) {
			n = s[i]
			p.free = false
		} else {
			p.free = true
		}
		mustPoints(n)
		p.sizes = append(p.sizes, n)
	}
	return p
}

func (p *fftnParams) mustTransform(name string) {
	Check(len(p.dims) > 0, "%s must transform at least one axis", name)
}

func fftnC2C(forward bool) func(b *Build, x *Value, p fftnParams) *Value {
	return func(b *Build, x *Value, p fftnParams) *Value {
		x = fitFFT(b, promoteFFT(b, x, true), p.dims, p.sizes)
		return b.Call("_fft_c2c", x, p.dims, normOf(p.norm, forward), forward)
	}
}

func rfftn(b *Build, x *Value, p fftnParams) *Value {
	mustRealFFT(x, "rfftn expects a real-valued input tensor, but got %s")
	p.mustTransform("rfftn")
	x = fitFFT(b, promoteFFT(b, x, false), p.dims, p.sizes)
	return b.Call("_fft_r2c", x, p.dims, normOf(p.norm, true), true)
}

func ihfftn(b *Build, x *Value, p fftnParams) *Value {
	p.mustTransform("ihfftn")
	mustRealFFT(x, "Only supports floating-point dtypes, but found: %s")
	x = fitFFT(b, promoteFFT(b, x, false), p.dims, p.sizes)
	last := len(p.dims) - 1
	norm := normOf(p.norm, false)
	y := b.Call("_fft_r2c", x, p.dims[last:], norm, true)
	if last == 0 {
		return b.Call("conj", y)
	}
	return b.Call("_fft_c2c", b.Call("conj_physical", y), p.dims[:last], norm, false)
}

// fitC2R gives the input of a complex-to-real transform and the size of the last dimension after it.
func (p *fftnParams) fitC2R(b *Build, x *Value, name string) (*Value, symbolic.Int) {
	p.mustTransform(name)
	last := len(p.dims) - 1
	n := p.sizes[last]
	if p.free {
		n = x.Sizes[p.dims[last]].SubN(1).MulN(2)
	}
	mustPoints(n)
	p.sizes[last] = n.DivN(2).AddN(1)
	return fitFFT(b, promoteFFT(b, x, true), p.dims, p.sizes), n
}

func irfftn(b *Build, x *Value, p fftnParams) *Value {
	x, n := p.fitC2R(b, x, "irfftn")
	return b.Call("_fft_c2r", x, p.dims, normOf(p.norm, false), n)
}

func hfftn(b *Build, x *Value, p fftnParams) *Value {
	x, n := p.fitC2R(b, x, "hfftn")
	norm, last := normOf(p.norm, true), len(p.dims)-1
	if last > 0 {
		x = b.Call("_fft_c2c", x, p.dims[:last], norm, true)
	}
	return b.Call("_fft_c2r", b.Call("conj_physical", x), p.dims[last:], norm, n)
}
