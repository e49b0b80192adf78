package aten

import (
	"slices"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// fftOps are discrete Fourier transforms, computed in complex128. Normalization: 0 none, 1 by sqrt(n), 2 by n.
var fftOps = []Op{
	{Schema: "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		mustComplexFFT(x)
		return []Meta{fftMeta(x, x.DType, x.Sizes, sortFFTDims(x, a.I64s(1), false))}
	}, CPU: func(k *Kernel) { c2cKernel(k) }},
	{Schema: "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", Tags: Core, Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		if !x.DType.IsFloat() {
			FailType("Only supports floating-point dtypes, but found: %s", x.DType.CPPName())
		}
		mustMKL(x.DType)
		dims := sortFFTDims(x, mustDims(a.I64s(1)), true)
		sizes := slices.Clone(x.Sizes)
		if d := dims[len(dims)-1]; a.Bool(3) {
			sizes[d] = sizes[d].DivN(2).AddN(1)
		}
		return []Meta{fftMeta(x, x.DType.Complex(), sizes, dims)}
	}, CPU: r2cKernel},
	{Schema: "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor", Tags: Core, Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		mustComplexFFT(x)
		dims := sortFFTDims(x, mustDims(a.I64s(1)), true)
		last := len(dims) - 1
		if last > 0 {
			m := fftMeta(x, x.DType, x.Sizes, dims[:last])
			x = &Value{Meta: m}
		}
		sizes := slices.Clone(x.Sizes)
		sizes[dims[last]] = a.Int(3)
		return []Meta{fftMeta(x, x.DType.Real(), sizes, dims[last:])}
	}, CPU: c2rKernel},
	fft1("fft_fft", func(b *Build, x *Value, p fftParams) *Value {
		if x.DType.IsComplex() {
			return p.c2c(b, x, true)
		}
		return p.r2c(b, x, true, false)
	}),
	fft1("fft_ifft", func(b *Build, x *Value, p fftParams) *Value {
		if x.DType.IsComplex() {
			return p.c2c(b, x, false)
		}
		return p.r2c(b, x, false, false)
	}),
	fft1("fft_rfft", func(b *Build, x *Value, p fftParams) *Value {
		mustRealFFT(x, "rfft expects a real input tensor, but got %s")
		return p.r2c(b, x, true, true)
	}),
	fft1("fft_ihfft", func(b *Build, x *Value, p fftParams) *Value {
		mustRealFFT(x, "ihfft expects a real input tensor, but got %s")
		return p.r2c(b, x, false, true)
	}),
	fft1("fft_irfft", func(b *Build, x *Value, p fftParams) *Value { return p.c2r(b, x, false) }),
	fft1("fft_hfft", func(b *Build, x *Value, p fftParams) *Value { return p.c2r(b, x, true) }),
	fftN("fft_fftn", "SymInt[1]? s=None, int[1]? dim=None", fftnC2C(true)),
	fftN("fft_ifftn", "SymInt[1]? s=None, int[1]? dim=None", fftnC2C(false)),
	fftN("fft_rfftn", "SymInt[1]? s=None, int[1]? dim=None", rfftn),
	fftN("fft_ihfftn", "SymInt[1]? s=None, int[1]? dim=None", ihfftn),
	fftN("fft_irfftn", "SymInt[1]? s=None, int[1]? dim=None", irfftn),
	fftN("fft_hfftn", "SymInt[1]? s=None, int[1]? dim=None", hfftn),
	fftN("fft_fft2", "SymInt[1]? s=None, int[1] dim=[-2, -1]", fftnC2C(true)),
	fftN("fft_ifft2", "SymInt[1]? s=None, int[1] dim=[-2, -1]", fftnC2C(false)),
	fftN("fft_rfft2", "SymInt[1]? s=None, int[1] dim=[-2, -1]", rfftn),
	fftN("fft_ihfft2", "SymInt[1]? s=None, int[1] dim=[-2, -1]", ihfftn),
	fftN("fft_irfft2", "SymInt[1]? s=None, int[1] dim=[-2, -1]", irfftn),
	fftN("fft_hfft2", "SymInt[1]? s=None, int[1] dim=[-2, -1]", hfftn),
	{Schema: "fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", Decomp: fftShift(0)},
	{Schema: "fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", Decomp: fftShift(1)},
	fftFreq("fft_fftfreq", func(b *Build, n int64, kw []any) *Value {
		head := b.Call("arange.start_step", append([]any{0, (n + 1) / 2}, kw...)...)
		return b.Call("cat", []*Value{head, b.Call("arange.start_step", append([]any{-(n / 2), 0}, kw...)...)})
	}),
	fftFreq("fft_rfftfreq", func(b *Build, n int64, kw []any) *Value {
		return b.Call("arange.start_step", append([]any{0, n/2 + 1}, kw...)...)
	}),
}

func mustComplexFFT(x *Value) {
	if !x.DType.IsComplex() {
		Fail("Only supports complex dtypes, but found: %s", x.DType.CPPName())
	}
	mustMKL(x.DType.Real())
}

func mustMKL(dt tensor.DType) {
	if dt != tensor.Float32 && dt != tensor.Float64 {
		FailAs("NotImplementedError", "MKL FFT doesn't support tensors of type: %s", dt.CPPName())
	}
}

func mustRealFFT(x *Value, format string) {
	if x.DType.IsComplex() {
		FailType(format, x.DType.CPPName())
	}
}

func mustDims(dims []int64) []int64 {
	Check(len(dims) > 0, "ArrayRef: attempted to access back() of empty list")
	return dims
}

// sortFFTDims wraps dims and brings them into the order of falling strides, the last one in its place if keepLast.
func sortFFTDims(x *Value, dims []int64, keepLast bool) []int {
	if len(dims) == 0 {
		return nil
	}
	if x.Dim() == 0 {
		FailIndex("Dimension specified as %d but tensor has no dimensions", dims[0])
	}
	out := WrapDims(dims, x.Dim())
	end := len(out)
	if keepLast {
		end--
	}
	byStride(x, out[:end])
	return out
}

// byStride sorts dims so that strides fall; equal ones keep their order.
func byStride(x *Value, dims []int) {
	slices.SortStableFunc(dims, func(i, j int) int {
		switch si, sj := x.Strides[i], x.Strides[j]; {
		case si.Gt(sj):
			return -1
		case si.Lt(sj):
			return 1
		}
		return 0
	})
}

// fftMeta gives the layout of a transform's output: the dimensions that are not transformed first, by falling strides of the
// input, then the transformed ones in the order of dims. That is how PyTorch hands batches to MKL.
func fftMeta(x *Value, dt tensor.DType, sizes []symbolic.Int, dims []int) Meta {
	m := Contig(dt, sizes...)
	if m.empty() {
		return m
	}
	if len(dims) == 0 {
		return LikeMeta(x, dt, PreserveFormat)
	}
	var order []int
	for d := range sizes {
		if !slices.Contains(dims, d) {
			order = append(order, d)
		}
	}
	byStride(x, order)
	order = append(order, dims...)
	stride := symbolic.N(1)
	st := make([]symbolic.Int, len(sizes))
	for i := len(order) - 1; i >= 0; i-- {
		st[order[i]] = stride
		stride = stride.Mul(sizes[order[i]])
	}
	return Strided(dt, sizes, st)
}

// fftParams are the common parameters of one-dimensional transforms; n is unset if the size stays.
type fftParams struct {
	n    symbolic.Int
	set  bool
	dim  int
	norm string
}

func fft1(name string, f func(b *Build, x *Value, p fftParams) *Value) Op {
	return Op{Schema: name + "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		if x.Dim() == 0 {
			FailIndex("Dimension specified as %d but tensor has no dimensions", a.I64(2))
		}
		p := fftParams{dim: WrapDim(a.I64(2), x.Dim()), norm: a.Str(3)}
		p.n, p.set = a.OptInt(1)
		return One(f(b, x, p))
	}}
}

// points is the number of data points, def unless n is given.
func (p *fftParams) points(def symbolic.Int) symbolic.Int {
	n := def
	if p.set {
		n = p.n
	}
	mustPoints(n)
	return n
}

func mustPoints(n symbolic.Int) {
	if n.Lt(symbolic.N(1)) {
		Fail("Invalid number of data points (%v) specified", n)
	}
}

func (p *fftParams) c2c(b *Build, x *Value, forward bool) *Value {
	x = fitFFT(b, x, []int{p.dim}, []symbolic.Int{p.points(x.Sizes[p.dim])})
	return b.Call("_fft_c2c", x, []int{p.dim}, normOf(p.norm, forward), forward)
}

func (p *fftParams) r2c(b *Build, x *Value, forward, onesided bool) *Value {
	x = promoteFFT(b, x, false)
	x = fitFFT(b, x, []int{p.dim}, []symbolic.Int{p.points(x.Sizes[p.dim])})
	y := b.Call("_fft_r2c", x, []int{p.dim}, normOf(p.norm, forward), onesided)
	if !forward {
		y = b.Call("conj", y)
	}
	return y
}

func (p *fftParams) c2r(b *Build, x *Value, forward bool) *Value {
	x = promoteFFT(b, x, true)
	n := p.points(x.Sizes[p.dim].SubN(1).MulN(2))
	if p.set {
		x = fitFFT(b, x, []int{p.dim}, []symbolic.Int{n.DivN(2).AddN(1)})
	}
	if forward {
		x = b.Call("conj", x)
	}
	return b.Call("_fft_c2r", x, []int{p.dim}, normOf(p.norm, forward), n)
}

// promoteFFT makes integers float32, and reals complex if asked to.
func promoteFFT(b *Build, x *Value, complexOut bool) *Value {
	if x.DType.IsComplex() {
		return x
	}
	dt := FloatType(x.DType)
	if dt != tensor.Float32 && dt != tensor.Float64 {
		FailAs("NotImplementedError", "Unsupported dtype %s", x.DType.CPPName())
	}
	if complexOut {
		dt = dt.Complex()
	}
	if dt == x.DType {
		return x
	}
	return b.Call("to.dtype", x, dt)
}

// fitFFT cuts dimensions to sizes or pads them with zeros.
func fitFFT(b *Build, x *Value, dims []int, sizes []symbolic.Int) *Value {
	pads := make([]symbolic.Int, 2*x.Dim())
	for i := range pads {
		pads[i] = symbolic.N(0)
	}
	pad := false
	for i, d := range dims {
		switch have, n := x.Sizes[d], sizes[i]; {
		case have.Lt(n):
			pads[len(pads)-2*d-1] = n.Sub(have)
			pad = true
		case have.Gt(n):
			x = b.Call("slice.Tensor", x, d, 0, n)
		}
	}
	if pad {
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

// fftShift rolls each dimension by half its size, rounded up if up is 1.
func fftShift(up int64) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		dims := a.I64s(1)
		if !a.Has(1) {
			for d := range x.Dim() {
				dims = append(dims, int64(d))
			}
		}
		shifts := make([]symbolic.Int, len(dims))
		for i, d := range dims {
			shifts[i] = x.Size(int(d)).AddN(up).DivN(2)
		}
		return One(b.Call("roll", x, shifts, dims))
	}
}

// fftFreq makes the sample frequencies of bins, which count gives as whole numbers.
func fftFreq(name string, count func(b *Build, n int64, kw []any) *Value) Op {
	return Op{Schema: name + "(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			n, dt := a.I64(0), a.DType(2, tensor.Float32)
			Check(dt.IsFloat() || dt.IsComplex(), "%s requires a floating point or complex dtype", name[len("fft_"):])
			Check(n >= 0, "Trying to create tensor with negative dimension %d: [%d]", n, n)
			t := count(b, n, []any{Kw("dtype", dt)})
			return One(b.Call("mul.Scalar", t, 1/(float64(n)*a.Float(1))))
		}}
}
