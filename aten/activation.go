package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"math"
	"math/cmplx"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// activationOps are the activation functions of neural networks, softmax and dropout among them.
var activationOps = concat(
	act("relu", Core, func(x float64) float64 {
		if x <= 0 {
			return pick(x == 0, x, 0)
		}
		return x
	}, nil),
	act("silu", 0, func(x float64) float64 { return x / (1 + math.Exp(-x)) }, func(z complex128) complex128 { return z / (1 + cmplx.Exp(-z)) }),
	act("mish", 0, func(x float64) float64 { return x * math.Tanh(softplus(x, 1, 20)) }, nil),
	act("hardswish", 0, func(x float64) float64 { return x * clampFloat(x+3, 0, 6) / 6 }, nil),
	act("hardsigmoid", 0, func(x float64) float64 { return clampFloat(x+3, 0, 6) / 6 }, nil),
	act("selu", 0, func(x float64) float64 {
		const alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
		if x > 0 {
			return scale * x
		}
		return scale * alpha * math.Expm1(x)
	}, nil),
	act("log_sigmoid", 0, logSigmoid, nil),
	[]Op{
		{Schema: "relu6(Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("hardtanh", a.Tensor(0), 0, 6)) }},
		{Schema: "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", Tags: Core | Pointwise, Shape: shapeSame, CPU: func(k *Kernel) {
			alpha, scale, in := k.Scalar(1).Float64(), k.Scalar(2).Float64(), k.Scalar(3).Float64()
			k.Map1(real1(func(x float64) float64 {
				if x > 0 {
					return x * scale
				}
				return scale * alpha * math.Expm1(x*in)
			}), k.T(0))
		}},
		{Schema: "celu(Tensor self, Scalar alpha=1.0) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: func(k *Kernel) {
			alpha := k.Scalar(1).Float64()
			k.Map1(real1(func(x float64) float64 {
				if x > 0 {
					return x
				}
				return alpha * math.Expm1(x/alpha)
			}), k.T(0))
		}},
		{Schema: "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", Tags: Core | Pointwise, Shape: shapeSame, CPU: func(k *Kernel) {
			s := k.Scalar(1).Float64()
			k.Map1(real1(func(x float64) float64 { return pick(x > 0, x, x*s) }), k.T(0))
		}},
		{Schema: "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", Tags: Core | Pointwise, Shape: func(a *Args) []Meta {
			if a.Tensor(0).DType == tensor.Bool {
				FailAs("NotImplementedError", "Bool inputs not supported for hardtanh")
			}
			return shapeSame(a)
		}, CPU: func(k *Kernel) {
			k.Map1(clampFn(k.Scalar(1), true, k.Scalar(2), true), k.T(0))
		}},
		{Schema: "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: func(k *Kernel) {
			beta, th := k.Scalar(1).Float64(), k.Scalar(2).Float64()
			k.Map1(real1(func(x float64) float64 { return softplus(x, beta, th) }), k.T(0))
		}},
		{Schema: "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: func(k *Kernel) {
			l := k.Scalar(1).Float64()
			k.Map1(real1(func(x float64) float64 {
				switch {
				case x > l:
					return x - l
				case x < -l:
					return x + l
				case x != x:
					return x
				}
				return 0
			}), k.T(0))
		}},
		{Schema: "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: func(k *Kernel) {
			l := k.Scalar(1).Float64()
			k.Map1(real1(func(x float64) float64 { return pick(x >= -l && x <= l, 0, x) }), k.T(0))
		}},
		{Schema: "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: func(k *Kernel) {
			t, v := k.Scalar(1), k.Scalar(2)
			f := real1(func(x float64) float64 { return pick(x <= t.Float64(), v.Float64(), x) })
			f.I64 = Each1(func(x int64) int64 { return pick(x <= t.Int64(), v.Int64(), x) })
			k.Map1(f, k.T(0))
		}},
		{Schema: "prelu(Tensor self, Tensor weight) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
			x, w := a.Tensor(0), a.Tensor(1)
			if w.Numel().Ne(symbolic.N(1)) && x.Dim() > 1 {
				sizes := make([]any, x.Dim())
				for i := range sizes {
					sizes[i] = 1
				}
				sizes[1] = -1
				w = b.Call("reshape", w, sizes)
			} else if x.Dim() <= 1 || w.Dim() > 0 {
				w = b.Call("reshape", w, []any{})
				if a.Tensor(1).Numel().Ne(symbolic.N(1)) {
					w = a.Tensor(1)
				}
			}
			return One(b.Call("_prelu_kernel", x, w))
		}},
		{Schema: "_prelu_kernel(Tensor self, Tensor weight) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: map2(floats(func(x, w float64) float64 { return pick(x > 0, x, x*w) }))},
		{Schema: "glu(Tensor self, int dim=-1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
			x := a.Tensor(0)
			if x.Dim() == 0 {
				Fail("glu does not support 0-dimensional tensors")
			}
			d := WrapDim(a.I64(1), x.Dim())
			n := x.Sizes[d]
			if n.Int64()%2 != 0 {
				Fail("Halving dimension must be even, but dimension %d is size %v", d, n)
			}
			h := n.DivN(2)
			first := b.Call("slice.Tensor", x, d, 0, h)
			return One(b.Call("mul.Tensor", first, b.Call("sigmoid", b.Call("slice.Tensor", x, d, h, n))))
		}},
		{Schema: "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", Decomp: softmaxInt("_softmax")},
		{Schema: "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", Decomp: softmaxInt("_log_softmax")},
		{Schema: "special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", Decomp: softmaxInt("_softmax")},
		{Schema: "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", Decomp: softmaxInt("_log_softmax")},
		{Schema: "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", Tags: Core, Shape: shapeSoftmax, CPU: func(k *Kernel) { softmaxKernel(k, false) }},
		{Schema: "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", Tags: Core, Shape: shapeSoftmax, CPU: func(k *Kernel) { softmaxKernel(k, true) }},
		{Schema: "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
			out := softmaxInt("_softmax")(b, a)[0]
			masked := b.Call("all.dim", b.Call("eq.Scalar", a.Tensor(0), FloatS(math.Inf(-1))), a.V[1], true)
			return One(b.Call("where.self", masked, b.Call("scalar_tensor", 0.0, Kw("dtype", out.DType)), out))
		}},
		{Schema: "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)", Decomp: func(b *Build, a *Args) []*Value {
			return []*Value{b.Call("log_sigmoid", a.Tensor(0)), b.Call("new_empty", a.Tensor(0), []int{0})}
		}},
	},
)

func act(name string, tags Tag, f func(float64) float64, c func(complex128) complex128) []Op {
	fn := real1(f)
	if c != nil {
		fn.C128 = Each1(c)
		fn.C64 = Each1(func(z complex64) complex64 { return complex64(c(complex128(z))) })
	}
	if fast := fastF32(name); fast != nil {
		fn.F32 = fast
	}
	if name == "relu" {
		fn.I64 = Each1(func(x int64) int64 { return max(x, 0) })
	}
	return []Op{{Schema: name + "(Tensor self) -> Tensor", Tags: tags | Pointwise, Shape: func(a *Args) []Meta {
		if name == "relu" && a.Tensor(0).DType == tensor.Bool {
			FailAs("NotImplementedError", "Boolean inputs not supported for relu")
		}
		return shapeSame(a)
	}, CPU: map1(fn)}}
}

func softplus(x, beta, threshold float64) float64 {
	if x*beta > threshold {
		return x
	}
	return math.Log1p(math.Exp(x*beta)) / beta
}

func logSigmoid(x float64) float64 { return math.Min(x, 0) - math.Log1p(math.Exp(-math.Abs(x))) }

func softmaxInt(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		if a.Has(2) {
			dt := a.DType(2, x.DType)
			return One(b.Call(name, b.Call("to.dtype", x, dt), a.V[1], false))
		}
		return One(b.Call(name, x, a.V[1], false))
	}
}

func shapeSoftmax(a *Args) []Meta {
	x := a.Tensor(0)
	WrapDim(a.I64(1), x.Dim())
	dt := x.DType
	if !dt.IsFloat() || dt.IsFloat8() {
		failDType(a.Op, dt)
	}
	if a.Bool(2) {
		if dt != tensor.Float16 {
			Fail("conversion is supported for Half type only")
		}
		dt = tensor.Float32
	}
	m := LikeMeta(x, dt, NoFormat)
	m.Strides = ContiguousStrides(x.Sizes)
	return []Meta{m}
}

// softmaxKernel works row by row along dim, in float64 for float64 and in float32 with float64 sums otherwise.
func softmaxKernel(k *Kernel, log bool) {
	x, out := k.T(0), k.Out[0]
	if x.Numel() == 0 {
		return
	}
	d := WrapDim(k.I64(1), x.Dim())
	if x.Dim() == 0 {
		x, out = x.WithView([]int64{1}, []int64{1}, x.Offset()), out.WithView([]int64{1}, []int64{1}, out.Offset())
	}
	if x.DType() == tensor.Float64 {
		eachRow(k, x, out, d, KF64, func(dst, src Block) { softmaxRow(As[float64](dst), As[float64](src), log) })
		return
	}
	if n := int(x.Sizes()[d]); d == x.Dim()-1 && x.DType() == tensor.Float32 && out.DType() == tensor.Float32 && x.IsContiguous() && out.IsContiguous() {
		f := cpu.SoftmaxF32
		if log {
			f = cpu.LogSoftmaxF32
		}
		f(k.Pool, tensor.Contiguous[float32](out), tensor.Contiguous[float32](x), int(x.Numel())/n, n)
		return
	}
	if x.DType() == tensor.Float32 && out.DType() == tensor.Float32 && softmaxColumns(k, x, out, d, log) {
		return
	}
	eachRow(k, x, out, d, KF32, func(dst, src Block) { softmaxRow(As[float32](dst), As[float32](src), log) })
}

// softmaxColumns serves a dimension d that is not the innermost one in memory, where x and out lie alike without gaps: it goes through
// rows of neighbouring elements. It reports whether it did.
func softmaxColumns(k *Kernel, x, out *tensor.Tensor, d int, log bool) bool {
	it := NewIter(x.Sizes(), x, out)
	if !it.contig(0) || !it.contig(1) {
		return false
	}
	n, step := int(x.Sizes()[d]), int(x.Strides()[d])
	if n == 1 {
		step = 1
	}
	src, dst := tensor.Data[float32](x), tensor.Data[float32](out)
	if step == 1 {
		f := cpu.SoftmaxF32
		if log {
			f = cpu.LogSoftmaxF32
		}
		f(k.Pool, dst, src, int(it.N)/n, n)
		return true
	}
	const width = 256
	pieces := (step + width - 1) / width
	k.Pool.ParallelFor(int(it.N)/(n*step)*pieces, max(1, grain/(4*n*min(step, width))), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			c := i % pieces * width
			at := i/pieces*n*step + c
			cpu.SoftmaxColumnsF32(dst[at:], src[at:], n, step, min(width, step-c), log)
		}
	})
	return true
}

func softmaxRow[T float32 | float64](d, x []T, log bool) {
	m := T(math.Inf(-1))
	for _, v := range x {
		m = nanMax(m, v)
	}
	sum := 0.0
	for i, v := range x {
		e := math.Exp(float64(v - m))
		sum += e
		d[i] = T(e)
	}
	if log {
		l := math.Log(sum)
		for i, v := range x {
			d[i] = T(float64(v-m) - l)
		}
		return
	}
	inv := 1 / sum
	for i := range d {
		d[i] = T(float64(d[i]) * inv)
	}
}
