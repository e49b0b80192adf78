package aten

import (
	"math"
	"math/bits"
	"math/cmplx"
	"slices"
	"sync"

	"github.com/pt2go/pt2/tensor"
)

func c2cKernel(k *Kernel) {
	if lanesC2C(k) {
		return
	}
	buf := complexCopy(k, k.T(0))
	var n int64 = 1
	if dims := k.I64s(1); len(dims) > 0 {
		n = transformDims(k, buf, WrapDims(dims, buf.Dim()), k.Bool(3))
	}
	scaleAndStore(k, buf, n, k.I64(2))
}

// r2cKernel transforms the last dimension first and goes on with its lower half; the other half is the conjugate of the
// lower one, mirrored along every transformed dimension.
func r2cKernel(k *Kernel) {
	if k.Out[0].Numel() == 0 {
		return
	}
	if lanesR2C(k) {
		return
	}
	buf := complexCopy(k, k.T(0))
	dims := WrapDims(k.I64s(1), buf.Dim())
	last := dims[len(dims)-1]
	n := transformDims(k, buf, []int{last}, true)
	if k.Bool(3) {
		sizes := slices.Clone(buf.Sizes())
		sizes[last] = sizes[last]/2 + 1
		buf = buf.WithView(sizes, buf.Strides(), 0)
	}
	n *= transformDims(k, buf, dims[:len(dims)-1], true)
	scaleAndStore(k, buf, n, k.I64(2))
}

// c2rKernel transforms all dimensions but the last as complex, completes the last by symmetry and takes the real part.
func c2rKernel(k *Kernel) {
	if k.Out[0].Numel() == 0 {
		return
	}
	if lanesC2R(k) {
		return
	}
	buf := complexCopy(k, k.T(0))
	dims := WrapDims(k.I64s(1), buf.Dim())
	d := dims[len(dims)-1]
	n := transformDims(k, buf, dims[:len(dims)-1], false)
	size := k.I64(3)
	given := slices.Clone(buf.Sizes())
	given[d] = min(given[d], size/2+1)
	sizes := slices.Clone(given)
	sizes[d] = size
	full := tensor.New(tensor.Complex128, sizes...)
	Copy(k.Pool, full.WithView(given, full.Strides(), 0), buf.WithView(given, buf.Strides(), 0))
	p := newDFT(int(size), false)
	eachRow(k, full, full, d, KC128, func(dst, src Block) {
		x := append([]complex128(nil), As[complex128](src)...)
		x[0] = complex(real(x[0]), 0)
		for i := 1; i < (len(x)+1)/2; i++ {
			x[len(x)-i] = cmplx.Conj(x[i])
		}
		if len(x)%2 == 0 {
			x[len(x)/2] = complex(real(x[len(x)/2]), 0)
		}
		p.transform(As[complex128](dst), x)
	})
	scaleAndStore(k, full, n*size, k.I64(2))
}

func complexCopy(k *Kernel, t *tensor.Tensor) *tensor.Tensor {
	c := tensor.New(tensor.Complex128, t.Sizes()...)
	Copy(k.Pool, c, t)
	return c
}

// transformDims transforms a complex128 tensor in place along dims and gives the number of points of one transform.
func transformDims(k *Kernel, t *tensor.Tensor, dims []int, forward bool) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= t.Sizes()[d]
		if t.Numel() == 0 {
			continue
		}
		p := newDFT(int(t.Sizes()[d]), forward)
		eachRow(k, t, t, d, KC128, func(dst, src Block) { p.transform(As[complex128](dst), As[complex128](src)) })
	}
	return n
}

// scaleAndStore normalizes and stores the transform of n points; a real output takes the real part.
func scaleAndStore(k *Kernel, t *tensor.Tensor, n, mode int64) {
	scale := 1.0
	switch mode {
	case 1:
		scale = 1 / math.Sqrt(float64(n))
	case 2:
		scale = 1 / float64(n)
	}
	Loop(k.Pool, []Operand{{T: k.Out[0], Kind: KC128}}, []Operand{{T: t, Kind: KC128}}, func(outs, ins []Block) {
		dst, src := As[complex128](outs[0]), As[complex128](ins[0])
		for i, v := range src {
			dst[i] = complex(real(v)*scale, imag(v)*scale)
		}
	})
}

// dftPlan is a transform of one length and direction. It is safe for concurrent use.
//
// Lengths whose prime factors are at most maxRadix take Stockham's form of the mixed-radix algorithm; others Bluestein's
// chirp (Bluestein 1970) through a power of two.
type dftPlan struct {
	n       int
	factors []int
	root    []complex128 // root[i] = exp(sign*2*pi*i*I/n)
	chirp   []complex128 // Bluestein: exp(sign*pi*i*i*I/n)
	filter  []complex128 // Bluestein: the transform of the conjugate chirp, over the padded length
	fwd     *dftPlan     // Bluestein: the padded length forward and backward
	bwd     *dftPlan
	scratch sync.Pool
}

const maxRadix = 13

func newDFT(n int, forward bool) *dftPlan {
	sign := pick(forward, -1.0, 1.0)
	p := &dftPlan{n: n}
	rest := n
	for _, f := range [...]int{4, 2, 3, 5, 7, 11, maxRadix} {
		for rest%f == 0 && rest > 1 {
			p.factors = append(p.factors, f)
			rest /= f
		}
	}
	if rest > 1 {
		p.bluestein(sign)
		return p
	}
	p.root = make([]complex128, n)
	for i := range p.root {
		p.root[i] = unit(sign, 2*i, n)
	}
	return p
}

// unit is exp(sign*pi*I*i/n), exact at the multiples of a quarter turn.
func unit(sign float64, i, n int) complex128 {
	i %= 2 * n
	switch {
	case i == 0:
		return 1
	case 2*i == n:
		return complex(0, sign)
	case i == n:
		return -1
	case 2*i == 3*n:
		return complex(0, -sign)
	}
	s, c := math.Sincos(math.Pi * float64(i) / float64(n))
	return complex(c, sign*s)
}

func (p *dftPlan) bluestein(sign float64) {
	n := p.n
	m := 1 << bits.Len(uint(2*n-1))
	p.fwd, p.bwd = newDFT(m, true), newDFT(m, false)
	p.chirp = make([]complex128, n)
	b := make([]complex128, m)
	for i := range n {
		sq := int(uint64(i) * uint64(i) % uint64(2*n))
		p.chirp[i] = unit(sign, sq, n)
		b[i] = cmplx.Conj(p.chirp[i]) / complex(float64(m), 0)
		if i > 0 {
			b[m-i] = b[i]
		}
	}
	p.filter = make([]complex128, m)
	p.fwd.transform(p.filter, b)
}

// buffer lends scratch space of m elements.
func (p *dftPlan) buffer(m int) *[]complex128 {
	if b, ok := p.scratch.Get().(*[]complex128); ok {
		return b
	}
	b := make([]complex128, m)
	return &b
}

// transform computes dst from src, which both have n elements and may be the same memory.
func (p *dftPlan) transform(dst, src []complex128) {
	if p.chirp != nil {
		p.convolve(dst, src)
		return
	}
	tmp := p.buffer(2 * p.n)
	defer p.scratch.Put(tmp)
	a, b := (*tmp)[:p.n], (*tmp)[p.n:]
	copy(a, src)
	done := 1
	for _, r := range p.factors {
		p.stage(b, a, done, r)
		a, b = b, a
		done *= r
	}
	copy(dst, a)
}

func (p *dftPlan) convolve(dst, src []complex128) {
	m := len(p.filter)
	tmp := p.buffer(m)
	defer p.scratch.Put(tmp)
	a := *tmp
	clear(a)
	for i, v := range src {
		a[i] = v * p.chirp[i]
	}
	p.fwd.transform(a, a)
	for i := range a {
		a[i] *= p.filter[i]
	}
	p.bwd.transform(a, a)
	for i := range dst {
		dst[i] = a[i] * p.chirp[i]
	}
}

// stage joins r transforms of length done into one of length r*done, for all of the n/(r*done) interleaved subsequences:
// src is [r*m, done], dst is [m, r, done].
func (p *dftPlan) stage(dst, src []complex128, done, r int) {
	m := p.n / (done * r)
	var t [maxRadix]complex128
	for j := range m {
		for k := range done {
			for q := range r {
				v := src[(j+m*q)*done+k]
				if q*k != 0 {
					v *= p.root[q*k*m]
				}
				t[q] = v
			}
			out := dst[j*r*done+k:]
			switch r {
			case 2:
				out[0], out[done] = t[0]+t[1], t[0]-t[1]
			case 4:
				p.butterfly4(out, done, &t)
			default:
				p.butterfly(out, done, r, &t)
			}
		}
	}
}

func (p *dftPlan) butterfly4(out []complex128, done int, t *[maxRadix]complex128) {
	a, b, c, d := t[0]+t[2], t[0]-t[2], t[1]+t[3], t[1]-t[3]
	if i := p.root[p.n/4]; imag(i) < 0 {
		d = complex(imag(d), -real(d))
	} else {
		d = complex(-imag(d), real(d))
	}
	out[0], out[done], out[2*done], out[3*done] = a+c, b+d, a-c, b-d
}

func (p *dftPlan) butterfly(out []complex128, done, r int, t *[maxRadix]complex128) {
	step := p.n / r
	for i := range r {
		s := t[0]
		for q := 1; q < r; q++ {
			if at := q * i % r; at == 0 {
				s += t[q]
			} else {
				s += t[q] * p.root[at*step]
			}
		}
		out[i*done] = s
	}
}
