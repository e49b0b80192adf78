package aten

import (
	"math"
	"math/bits"
	"math/cmplx"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// fftOps are discrete Fourier transforms, computed in complex128. Normalization: 0 none, 1 by sqrt(n), 2 by n.
var fftOps = concat([]Op{
	{Schema: "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		if !x.DType.IsComplex() {
			Fail("Expected a complex tensor, got %s", x.DType.CPPName())
		}
		WrapDims(a.I64s(1), x.Dim())
		return []Meta{Contig(x.DType, x.Sizes...)}
	}, CPU: func(k *Kernel) {
		buf := complexCopy(k, k.T(0))
		n := transformDims(k, buf, k.I64s(1), k.Bool(3))
		scaleAndStore(k, buf, n, k.I64(2))
	}},
	{Schema: "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", Tags: Core, Shape: func(a *Args) []Meta {
		x, dims := a.Tensor(0), a.I64s(1)
		dt := x.DType.Complex()
		if dt == tensor.Invalid || x.DType.IsComplex() {
			Fail("Expected a real floating point tensor, got %s", x.DType.CPPName())
		}
		sizes := append([]symbolic.Int{}, x.Sizes...)
		if a.Bool(3) {
			d := WrapDim(dims[len(dims)-1], x.Dim())
			sizes[d] = sizes[d].DivN(2).AddN(1)
		}
		return []Meta{Contig(dt, sizes...)}
	}, CPU: func(k *Kernel) {
		buf := complexCopy(k, k.T(0))
		dims := k.I64s(1)
		n := transformDims(k, buf, dims, true)
		if k.Bool(3) {
			d := WrapDim(dims[len(dims)-1], buf.Dim())
			sizes := append([]int64{}, buf.Sizes()...)
			sizes[d] = sizes[d]/2 + 1
			buf = buf.WithView(sizes, buf.Strides(), 0)
		}
		scaleAndStore(k, buf, n, k.I64(2))
	}},
	{Schema: "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor", Tags: Core, Shape: func(a *Args) []Meta {
		x, dims := a.Tensor(0), a.I64s(1)
		if !x.DType.IsComplex() {
			Fail("Expected a complex tensor, got %s", x.DType.CPPName())
		}
		sizes := append([]symbolic.Int{}, x.Sizes...)
		sizes[WrapDim(dims[len(dims)-1], x.Dim())] = a.Int(3)
		return []Meta{Contig(x.DType.Real(), sizes...)}
	}, CPU: c2rKernel},
}, fft1("fft_fft", true, false), fft1("fft_ifft", false, false), fft1("fft_rfft", true, true), []Op{
	{Schema: "fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		d := WrapDim(a.I64(2), x.Dim())
		n, ok := a.OptInt(1)
		if !ok {
			n = x.Sizes[d].SubN(1).MulN(2)
		}
		if n.Int64() < 1 {
			Fail("Invalid number of data points (%v) specified", n)
		}
		x = fitTo(b, promoteComplex(b, x), d, n.DivN(2).AddN(1))
		return One(b.Call("_fft_c2r", x, []int{d}, normOf(a.Str(3), false), n))
	}},
})

// fft1 makes a one-dimensional transform.
func fft1(name string, forward, half bool) []Op {
	return []Op{{Schema: name + "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		d := WrapDim(a.I64(2), x.Dim())
		n, ok := a.OptInt(1)
		if !ok {
			n = x.Sizes[d]
		}
		if n.Int64() < 1 {
			Fail("Invalid number of data points (%v) specified", n)
		}
		if half {
			if x.DType.IsComplex() {
				Fail("rfft expects a real input tensor, but got %s", x.DType.CPPName())
			}
			if x.DType.IsIntegral() {
				x = b.Call("_to_copy", x, Kw("dtype", tensor.Float32))
			}
			return One(b.Call("_fft_r2c", fitTo(b, x, d, n), []int{d}, normOf(a.Str(3), true), true))
		}
		x = fitTo(b, promoteComplex(b, x), d, n)
		return One(b.Call("_fft_c2c", x, []int{d}, normOf(a.Str(3), forward), forward))
	}}}
}

func promoteComplex(b *Build, x *Value) *Value {
	if x.DType.IsComplex() {
		return x
	}
	dt := FloatType(x.DType).Complex()
	if dt == tensor.Invalid {
		Fail("Unsupported dtype %s", x.DType.CPPName())
	}
	return b.Call("_to_copy", x, Kw("dtype", dt))
}

// fitTo cuts dimension d to n, or pads it with zeros.
func fitTo(b *Build, x *Value, d int, n symbolic.Int) *Value {
	switch have := x.Sizes[d]; {
	case have.Gt(n):
		return b.Call("slice.Tensor", x, d, 0, n)
	case have.Lt(n):
		pads := make([]any, 2*(x.Dim()-d))
		for i := range pads {
			pads[i] = 0
		}
		pads[len(pads)-1] = n.Sub(have)
		return b.Call("constant_pad_nd", x, pads, 0)
	}
	return x
}

// normOf gives the number of a normalization mode.
func normOf(s string, forward bool) int {
	switch s {
	case "", "backward":
		return pick(forward, 0, 2)
	case "forward":
		return pick(forward, 2, 0)
	case "ortho":
		return 1
	}
	Fail("Invalid normalization mode: \"%s\"", s)
	return 0
}

func complexCopy(k *Kernel, t *tensor.Tensor) *tensor.Tensor {
	c := tensor.New(tensor.Complex128, t.Sizes()...)
	Copy(k.Pool, c, t)
	return c
}

// transformDims transforms a contiguous complex128 tensor in place along dims and gives the number of points of one transform.
func transformDims(k *Kernel, t *tensor.Tensor, dims []int64, forward bool) float64 {
	n := 1.0
	for _, d := range WrapDims(dims, t.Dim()) {
		n *= float64(t.Sizes()[d])
		if t.Numel() == 0 {
			continue
		}
		eachRow(k, t, t, d, KC128, func(dst, src Block) { copy(As[complex128](dst), dft(As[complex128](src), forward)) })
	}
	return n
}

func scaleAndStore(k *Kernel, t *tensor.Tensor, n float64, mode int64) {
	scale := 1.0
	switch mode {
	case 1:
		scale = 1 / math.Sqrt(n)
	case 2:
		scale = 1 / n
	}
	if scale != 1 {
		v := tensor.Data[complex128](t)
		for i := range v {
			v[i] *= complex(scale, 0)
		}
	}
	Copy(k.Pool, k.Out[0], t)
}

// c2rKernel transforms all dimensions but the last as complex, completes the last by symmetry and takes the real part.
func c2rKernel(k *Kernel) {
	buf := complexCopy(k, k.T(0))
	dims := k.I64s(1)
	n := 1.0
	if len(dims) > 1 {
		n = transformDims(k, buf, dims[:len(dims)-1], false)
	}
	d := WrapDim(dims[len(dims)-1], buf.Dim())
	size := k.I64(3)
	sizes := append([]int64{}, buf.Sizes()...)
	half := sizes[d]
	sizes[d] = size
	full := tensor.New(tensor.Complex128, sizes...)
	outer, inner := int64(1), int64(1)
	for i, s := range sizes {
		if i < d {
			outer *= s
		} else if i > d {
			inner *= s
		}
	}
	src, dst := tensor.Data[complex128](buf), tensor.Data[complex128](full)
	for o := range outer {
		for i := range size {
			for j := range inner {
				var z complex128
				if m := size - i; i <= size/2 && i < half {
					z = src[(o*half+i)*inner+j]
					if i == 0 || 2*i == size {
						z = complex(real(z), 0)
					}
				} else if i > size/2 && m < half {
					z = cmplx.Conj(src[(o*half+m)*inner+j])
				}
				dst[(o*size+i)*inner+j] = z
			}
		}
	}
	n *= transformDims(k, full, []int64{int64(d)}, false)
	scaleAndStore(k, full, n, k.I64(2))
}

// dft transforms any length: powers of two directly, others by Bluestein's chirp (Bluestein 1970).
func dft(x []complex128, forward bool) []complex128 {
	n := len(x)
	sign := 1.0
	if forward {
		sign = -1
	}
	if n&(n-1) == 0 {
		out := append([]complex128(nil), x...)
		radix2(out, sign)
		return out
	}
	m := 1 << bits.Len(uint(2*n-1))
	chirp := make([]complex128, n)
	for i := range chirp {
		t := sign * math.Pi * float64(i*i%(2*n)) / float64(n)
		chirp[i] = complex(math.Cos(t), math.Sin(t))
	}
	a, b := make([]complex128, m), make([]complex128, m)
	for i, v := range x {
		a[i] = v * chirp[i]
		b[i] = cmplx.Conj(chirp[i])
		if i > 0 {
			b[m-i] = b[i]
		}
	}
	radix2(a, -1)
	radix2(b, -1)
	for i := range a {
		a[i] *= b[i]
	}
	radix2(a, 1)
	out := make([]complex128, n)
	for i := range out {
		out[i] = a[i] * chirp[i] / complex(float64(m), 0)
	}
	return out
}

// radix2 is the in-place Cooley-Tukey transform of a power of two.
func radix2(x []complex128, sign float64) {
	n := len(x)
	if n < 2 {
		return
	}
	shift := 64 - uint(bits.TrailingZeros(uint(n)))
	for i := range x {
		if j := int(bits.Reverse64(uint64(i)) >> shift); i < j {
			x[i], x[j] = x[j], x[i]
		}
	}
	for size := 2; size <= n; size *= 2 {
		half := size / 2
		for j := range half {
			t := sign * 2 * math.Pi * float64(j) / float64(size)
			w := complex(math.Cos(t), math.Sin(t))
			for i := j; i < n; i += size {
				u, v := x[i], x[i+half]*w
				x[i], x[i+half] = u+v, u-v
			}
		}
	}
}
