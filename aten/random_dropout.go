package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// dropoutOps zero random elements or channels and scale the rest.
var dropoutOps = []Op{
	dropoutOp("dropout(Tensor input, float p, bool train) -> Tensor", false, false),
	dropoutOp("feature_dropout(Tensor input, float p, bool train) -> Tensor", true, false),
	dropoutOp("alpha_dropout(Tensor input, float p, bool train) -> Tensor", false, true),
	dropoutOp("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor", true, true),
	dropoutInPlace("dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", "dropout"),
	dropoutInPlace("feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", "feature_dropout"),
	dropoutInPlace("alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", "alpha_dropout"),
	dropoutInPlace("feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", "feature_alpha_dropout"),
	{
		Schema: "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
		Tags:   Core | Random,
		Decomp: func(b *Build, a *Args) []*Value {
			x, p := a.Tensor(0), a.Float(1)
			if train, ok := a.V[2].(bool); ok && !train || x.empty() {
				return []*Value{b.Call("clone", x), b.Call("ones_like", x, Kw("dtype", tensor.Bool))}
			}
			mask := b.Call("bernoulli_.float", b.Call("empty_like", x, Kw("dtype", tensor.Bool)), 1-p)
			if p == 1 {
				return []*Value{b.Call("mul.Tensor", x, mask), mask}
			}
			// The scale is a number of x's dtype, as in dropout.
			return []*Value{b.Call("mul.Tensor", x, b.Call("div.Tensor", b.Call("to.dtype", mask, x.DType), 1-p)), mask}
		},
	},
	{
		Schema: "_masked_scale(Tensor self, Tensor mask, float scale) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("mul.Tensor", b.Call("mul.Tensor", a.Tensor(0), a.Tensor(1)), a.Float(2)))
		},
	},
	{
		Schema: "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("mul.Tensor", b.Call("mul.Tensor", a.Tensor(0), a.Tensor(1)), a.Float(2)))
		},
	},
	{
		Schema: "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor",
		Tags:   Random,
		Decomp: func(b *Build, a *Args) []*Value {
			noise := b.Call("empty_like", a.Tensor(0))
			return One(b.CallN("rrelu_with_noise_functional", a.Tensor(0), noise, a.V[1], a.V[2], a.V[3])[0])
		},
	},
	{
		Schema: "rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor(a!)",
		Tags:   Random,
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("copy_", a.Tensor(0), b.Call("rrelu", a.V...)))
		},
	},
	{
		Schema: "rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor",
		Tags:   Random,
		Decomp: func(b *Build, a *Args) []*Value {
			r := b.CallN("rrelu_with_noise_functional", a.V...)
			if a.Bool(4) {
				b.Call("copy_", a.Tensor(1), r[1])
			}
			return r[:1]
		},
	},
	{
		Schema: "rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor(a!)",
		Tags:   Random,
		Decomp: func(b *Build, a *Args) []*Value {
			r := b.CallN("rrelu_with_noise_functional", a.V...)
			if a.Bool(4) {
				b.Call("copy_", a.Tensor(1), r[1])
			}
			return One(b.Call("copy_", a.Tensor(0), r[0]))
		},
	},
	{
		Schema: "rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)",
		Tags:   Random,
		Shape: func(a *Args) []Meta {
			x := a.Tensor(0)
			Check(x.DType.IsFloat(), "\"rrelu_with_noise_out_cpu\" not implemented for '%s'", x.DType.CPPName())
			Check(a.Scalar(2).Float64() <= a.Scalar(3).Float64(), "Lower bound should be less than or equal to the upper bound")
			return []Meta{likeDense(x), likeDense(a.Tensor(1))}
		},
		CPU: rreluKernel,
	},
}

// dropoutOp draws a mask for elements, or for whole channels [N, C, 1, ...]. The alpha forms keep mean and variance under
// selu (Klambauer et al. 2017, Self-Normalizing Neural Networks).
func dropoutOp(schema string, feature, alpha bool) Op {
	return Op{Schema: schema, Tags: Random, Decomp: func(b *Build, a *Args) []*Value {
		x, p := a.Tensor(0), a.Float(1)
		Check(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got %v", p)
		if p == 0 || !a.Bool(2) || x.empty() {
			return One(b.Call("alias", x))
		}
		if p == 1 {
			return One(b.Call("mul.Tensor", x, b.Call("zeros", []int{}, Kw("dtype", x.DType))))
		}
		noise := b.Call("bernoulli_.float", dropoutNoise(b, x, feature), 1-p)
		if !alpha {
			return One(b.Call("mul.Tensor", x, b.Call("div.Tensor", noise, 1-p)))
		}
		const c = 1.7580993408473766
		s := 1 / math.Sqrt((c*c*p+1)*(1-p))
		shift := b.Call("add.Tensor", b.Call("mul.Tensor", b.Call("add.Tensor", noise, -1), c*s), c*s*p)
		return One(b.Call("add.Tensor", b.Call("mul.Tensor", x, b.Call("mul.Tensor", noise, s)), shift))
	}}
}

func dropoutNoise(b *Build, x *Value, feature bool) *Value {
	if !feature {
		return b.Call("empty_like", x)
	}
	Check(x.Dim() >= 2, "Feature dropout requires at least 2 dimensions in the input")
	sizes := cloneInts(x.Sizes)
	for d := 2; d < len(sizes); d++ {
		sizes[d] = symbolic.N(1)
	}
	return b.Call("empty.memory_format", sizes, Kw("dtype", x.DType))
}

func dropoutInPlace(schema, name string) Op {
	return Op{Schema: schema, Tags: Random, Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		if a.Float(1) == 0 || !a.Bool(2) || x.empty() {
			Check(a.Float(1) >= 0 && a.Float(1) <= 1, "dropout probability has to be between 0 and 1, but got %v", a.Float(1))
			return One(x)
		}
		return One(b.Call("copy_", x, b.Call(name, a.V...)))
	}}
}

// rreluKernel multiplies numbers up to 0 by a random slope, or by the middle one when not training.
func rreluKernel(k *Kernel) {
	x := k.floats(k.T(0))
	lo, hi := k.Scalar(2).Float64(), k.Scalar(3).Float64()
	out := make([]float64, len(x))
	var noise []float64
	if !k.Bool(4) {
		for i, v := range x {
			if out[i] = v; v <= 0 {
				out[i] = v * (lo + hi) / 2
			}
		}
		Copy(k.Pool, k.Out[1], k.T(1))
	} else {
		g, narrow := k.rand(), k.Out[0].DType() != tensor.Float64
		if narrow {
			lo, hi = float64(float32(lo)), float64(float32(hi))
		}
		noise = make([]float64, len(x))
		for i, v := range x {
			out[i], noise[i] = v, 1
			if v <= 0 {
				r := g.Float64()*(hi-lo) + lo
				if narrow {
					r = float64(float32(r))
				}
				out[i], noise[i] = v*r, r
			}
		}
		k.storeFloats(k.Out[1], noise)
	}
	k.storeFloats(k.Out[0], out)
}
