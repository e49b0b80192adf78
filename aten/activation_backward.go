package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
)

// activationBackwardOps are the gradients of activation functions: the gradient of the output times the derivative.
var activationBackwardOps = []Op{
	backwardOp("tanh_backward(Tensor grad_output, Tensor output) -> Tensor", nil, func(*Args) func(g, y float64) float64 {
		return func(g, y float64) float64 { return g * (1 - y*y) }
	}, func(g, y complex128) complex128 { return g * conj(1-y*y) }),
	backwardOp("sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", nil, func(*Args) func(g, y float64) float64 {
		return func(g, y float64) float64 { return g * (y * (1 - y)) }
	}, func(g, y complex128) complex128 { return g * conj(y*(1-y)) }),
	backwardOp("silu_backward(Tensor grad_output, Tensor self) -> Tensor", nil, func(*Args) func(g, x float64) float64 {
		return func(g, x float64) float64 { s := sigmoid(x); return g * s * (1 + x*(1-s)) }
	}, nil),
	backwardOp("mish_backward(Tensor grad_output, Tensor self) -> Tensor", nil, func(*Args) func(g, x float64) float64 {
		return func(g, x float64) float64 {
			t := math.Tanh(softplus(x, 1, 20))
			return g * (t + x*sigmoid(x)*(1-t*t))
		}
	}, nil),
	backwardOp("gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor", func(a *Args) {
		Check(a.Str(2) == "none" || a.Str(2) == "tanh", "approximate argument must be either none or tanh.")
	}, geluGrad, nil),
	backwardOp("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", nil, func(*Args) func(g, x float64) float64 {
		return func(g, x float64) float64 { return pick(x > -3 && x < 3, g/6, 0) }
	}, nil),
	backwardOp("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", nil, func(*Args) func(g, x float64) float64 {
		return func(g, x float64) float64 {
			switch {
			case x <= -3:
				return 0
			case x < 3:
				return g * (x/3 + 0.5)
			}
			return g
		}
	}, nil),
	backwardOp("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor", nil, func(a *Args) func(g, x float64) float64 {
		lo, hi := a.Scalar(2).Float64(), a.Scalar(3).Float64()
		return func(g, x float64) float64 { return pick(x <= lo || x >= hi, 0, g) }
	}, nil),
	backwardOp("hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor", nil, shrinkGrad, nil),
	backwardOp("softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor", nil, shrinkGrad, nil),
	backwardOp("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor", nil, func(a *Args) func(g, x float64) float64 {
		t := a.Scalar(2).Float64()
		return func(g, x float64) float64 { return pick(x <= t, 0, g) }
	}, nil),
	backwardOp("leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor", func(a *Args) {
		Check(!a.Bool(3) || a.Scalar(2).Float64() >= 0, "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. This is caused by calling in-place forward function with a negative slope, please call out-of-place version instead.")
	}, func(a *Args) func(g, x float64) float64 {
		s := a.Scalar(2).Float64()
		return func(g, x float64) float64 { return pick(x > 0, g, g*s) }
	}, nil),
	backwardOp("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor", nil, func(a *Args) func(g, x float64) float64 {
		beta, th := a.Scalar(2).Float64(), a.Scalar(3).Float64()
		return func(g, x float64) float64 {
			if x*beta > th {
				return g
			}
			z := math.Exp(x * beta)
			return g * z / (z + 1)
		}
	}, nil),
	backwardOp("logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor", nil, func(a *Args) func(g, x float64) float64 {
		lo, ok := a.OptFloat(2)
		outside := pick(ok, 0, math.NaN())
		return func(g, x float64) float64 { return pick(x >= lo && x <= 1-lo, g/(x*(1-x)), outside) }
	}, nil),
	{Schema: "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: eluGrad},
	{Schema: "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor", Tags: Pointwise, Shape: func(a *Args) []Meta {
		g, x := a.Tensor(0), a.Tensor(1)
		return []Meta{PointwiseMeta(ResultType(g, x), g, x)}
	}, CPU: map2(floats(func(g, x float64) float64 { return g / (1 + math.Exp(x)) }))},
	{Schema: "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		g, x, w := a.Tensor(0), a.Tensor(1), a.Tensor(2)
		up := b.Call("gt.Scalar", x, 0)
		return []*Value{
			b.Call("where.self", up, g, b.Call("mul.Tensor", w, g)),
			b.Call("where.ScalarSelf", up, 0, b.Call("mul.Tensor", x, g)),
		}
	}},
	{Schema: "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, bool self_is_result) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		lo, hi := a.Scalar(3).Float64(), a.Scalar(4).Float64()
		if a.Bool(5) && hi-lo > 1e-6 {
			return One(b.Call("mul.Tensor", a.Tensor(0), a.Tensor(2)))
		}
		return One(b.Call("leaky_relu_backward", a.Tensor(0), a.Tensor(1), (lo+hi)/2, a.V[6]))
	}},
	{Schema: "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor", Decomp: gluGrad},
	{Schema: "infinitely_differentiable_gelu_backward(Tensor grad, Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("gelu_backward", a.Tensor(0), a.Tensor(1)))
	}},
	{Schema: "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor", Decomp: inFloat(func(b *Build, a *Args) []*Value {
		g := b.Call("mul.Tensor", a.Tensor(0), a.Tensor(1))
		total := b.Call("sum.dim_IntList", g, []symbolic.Int{a.Int(2)}, true)
		r := b.Call("sub.Tensor", g, b.Call("mul.Tensor", a.Tensor(1), total))
		return One(b.Call("contiguous", b.Call("to.dtype", r, a.V[3])))
	})},
	{Schema: "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor", Decomp: inFloat(func(b *Build, a *Args) []*Value {
		g := a.Tensor(0)
		total := b.Call("sum.dim_IntList", g, []symbolic.Int{a.Int(2)}, true)
		r := b.Call("sub.Tensor", g, b.Call("mul.Tensor", b.Call("exp", a.Tensor(1)), total))
		return One(b.Call("contiguous", b.Call("to.dtype", r, a.V[3])))
	})},
}

// backwardOp is a gradient from the gradient of the output and one saved tensor; a nil complex form refuses complex numbers.
func backwardOp(schema string, check func(a *Args), f func(a *Args) func(g, x float64) float64, c func(g, x complex128) complex128) Op {
	return Op{Schema: schema, Tags: Pointwise, Shape: func(a *Args) []Meta {
		if check != nil {
			check(a)
		}
		return shapeSame(a)
	}, CPU: func(k *Kernel) {
		fn := floats(f(k.Args))
		if c != nil {
			fn.C128 = Each2(c)
			fn.C64 = Each2(func(g, x complex64) complex64 { return complex64(c(complex128(g), complex128(x))) })
		}
		k.Map2(fn, k.T(0), k.T(1))
	}}
}

func conj(z complex128) complex128 { return complex(real(z), -imag(z)) }

func shrinkGrad(a *Args) func(g, x float64) float64 {
	l := a.Scalar(2).Float64()
	return func(g, x float64) float64 { return pick(x >= -l && x <= l, 0, g) }
}

func geluGrad(a *Args) func(g, x float64) float64 {
	if a.Str(2) == "none" {
		return func(g, x float64) float64 {
			cdf := 0.5 * (1 + math.Erf(x*math.Sqrt2/2))
			return g * (cdf + x*math.Exp(-0.5*x*x)/math.Sqrt(2*math.Pi))
		}
	}
	return func(g, x float64) float64 {
		const c, k = 0.7978845608028654, 0.044715 // sqrt(2/pi)
		t := math.Tanh(c * (x + k*x*x*x))
		return g * (0.5*(1+t) + 0.5*x*(1-t*t)*c*(1+3*k*x*x))
	}
}

func eluGrad(k *Kernel) {
	scale, in := k.Scalar(2).Float64(), k.Scalar(3).Float64()
	neg := k.Scalar(1).Float64() * scale
	isResult := k.Bool(4)
	k.Map2(floats(func(g, x float64) float64 {
		switch {
		case !(x <= 0):
			return g * scale
		case isResult:
			return g * in * (x + neg)
		}
		return g * in * neg * math.Exp(x*in)
	}), k.T(0), k.T(5))
}

func gluGrad(b *Build, a *Args) []*Value {
	g, x := a.Tensor(0), a.Tensor(1)
	Check(x.Dim() > 0, "glu does not support 0-dimensional tensors")
	d := WrapDim(a.I64(2), x.Dim())
	n := x.Sizes[d]
	Check(n.Int64()%2 == 0, "Halving dimension must be even, but dimension %d is size %v", d, n)
	h := n.DivN(2)
	first, second := b.Call("slice.Tensor", x, d, 0, h), b.Call("slice.Tensor", x, d, h, n)
	s := b.Call("sigmoid", second)
	slope := b.Call("mul.Tensor", b.Call("rsub.Scalar", s, 1.0), s)
	return One(b.Call("cat", []*Value{b.Call("mul.Tensor", s, g), b.Call("mul.Tensor", b.Call("mul.Tensor", slope, first), g)}, d))
}
