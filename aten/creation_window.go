package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// windowOps are the window functions of signal processing, and small composites that make tensors from tensors.
var windowOps = []Op{
	windowOp("hann_window(int window_length, ", false, hannWindow),
	windowOp("hann_window.periodic(int window_length, bool periodic, ", true, hannWindow),
	windowOp("hamming_window(int window_length, ", false, hammingWindow),
	windowOp("hamming_window.periodic(int window_length, bool periodic, ", true, hammingWindow),
	windowOp("hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, ", true, hammingWindow),
	windowOp("hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, ", true, hammingWindow),
	windowOp("blackman_window(int window_length, ", false, blackmanWindow),
	windowOp("blackman_window.periodic(int window_length, bool periodic, ", true, blackmanWindow),
	windowOp("bartlett_window(int window_length, ", false, bartlettWindow),
	windowOp("bartlett_window.periodic(int window_length, bool periodic, ", true, bartlettWindow),
	windowOp("kaiser_window(int window_length, ", false, kaiserWindow),
	windowOp("kaiser_window.periodic(int window_length, bool periodic, ", true, kaiserWindow),
	windowOp("kaiser_window.beta(int window_length, bool periodic, float beta, ", true, kaiserWindow),
	{
		Schema: "_shape_as_tensor(Tensor self) -> Tensor",
		Shape: func(a *Args) []Meta {
			return []Meta{Contig(tensor.Int64, symbolic.N(int64(a.Tensor(0).Dim())))}
		},
		CPU: func(k *Kernel) {
			t, _ := tensor.FromSlice(append([]int64(nil), k.T(0).Sizes()...), int64(k.T(0).Dim()))
			Copy(k.Pool, k.Out[0], t)
		},
	},
	{
		Schema: "_dim_arange(Tensor like, int dim) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("arange", a.Tensor(0).Size(int(a.I64(1))))) },
	},
	{
		Schema: "one_hot(Tensor self, int num_classes=-1) -> Tensor",
		Decomp: oneHot,
	},
	{
		Schema: "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			x := a.Tensor(0)
			Check(x.Dim() == 1, "x must be a one-dimensional tensor.")
			n, ok := a.OptInt(1)
			if !ok {
				n = x.Sizes[0]
			}
			v := powers(b, x, n)
			if !a.Bool(2) {
				v = b.Call("flip", v, []int{1})
			}
			return One(v)
		},
	},
	{
		Schema: "linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			x := a.Tensor(0)
			n, ok := a.OptInt(1)
			if x.Dim() == 0 {
				x = b.Call("reshape", x, Ints(1))
			}
			if !ok {
				n = x.Sizes[x.Dim()-1]
			}
			Check(n.Gt(symbolic.N(1)), "N must be greater than 1.")
			if x.DType.IsIntegral() {
				x = b.Call("to.dtype", x, SumType(x.DType))
			}
			return One(powers(b, x, n))
		},
	},
}

// windowOp is a window of argument 0 points. f gives the value at point i of n; a periodic window leaves out the last point
// of a symmetric one that is longer by one.
func windowOp(params string, hasPeriodic bool, f func(b *Build, a *Args, n int64, dt tensor.DType) *Value) Op {
	return Op{Schema: params + factoryArgs, Decomp: func(b *Build, a *Args) []*Value {
		n, dt := a.I64(0), a.DType(a.Index("dtype"), tensor.Float32)
		periodic := !hasPeriodic || a.Bool(1)
		Check(n >= 0, "%s requires non-negative window_length, got window_length=%d", a.Op.schema.Base, n)
		Check(dt.IsFloat() || dt.IsComplex(), "%s expects floating point dtypes, got: TensorOptions(dtype=%s)", a.Op.schema.Base, dt)
		Check(n <= maxAlloc, "%s: window_length=%d is too large", a.Op.schema.Base, n)
		if n <= 1 {
			return One(b.Call("ones", []int64{n}, Kw("dtype", dt)))
		}
		if !periodic {
			return One(f(b, a, n, dt))
		}
		return One(b.Call("slice.Tensor", f(b, a, n+1, dt), 0, 0, n))
	}}
}

// cosineWindow is the sum of weights[j] * cos(2*pi*j*i/(n-1)).
func cosineWindow(b *Build, n int64, dt tensor.DType, weights ...float64) *Value {
	i := b.Call("arange", n, Kw("dtype", dt))
	var sum *Value
	for j := len(weights) - 1; j >= 1; j-- {
		term := b.Call("mul.Tensor", b.Call("cos", b.Call("mul.Tensor", i, 2*math.Pi*float64(j)/float64(n-1))), weights[j])
		if sum != nil {
			term = b.Call("add.Tensor", sum, term)
		}
		sum = term
	}
	return b.Call("add.Tensor", sum, weights[0])
}

func hannWindow(b *Build, _ *Args, n int64, dt tensor.DType) *Value {
	return cosineWindow(b, n, dt, 0.5, -0.5)
}

func hammingWindow(b *Build, a *Args, n int64, dt tensor.DType) *Value {
	alpha, beta := 0.54, 0.46
	if i := a.Index("alpha"); i >= 0 {
		alpha = a.Float(i)
	}
	if i := a.Index("beta"); i >= 0 {
		beta = a.Float(i)
	}
	return cosineWindow(b, n, dt, alpha, -beta)
}

func blackmanWindow(b *Build, _ *Args, n int64, dt tensor.DType) *Value {
	return cosineWindow(b, n, dt, 0.42, -0.5, 0.08)
}

func bartlettWindow(b *Build, _ *Args, n int64, dt tensor.DType) *Value {
	w := b.Call("mul.Tensor", b.Call("arange", n, Kw("dtype", dt)), 2/float64(n-1))
	half := (n-1)/2 + 1
	down := b.Call("add.Tensor", b.Call("mul.Tensor", b.Call("slice.Tensor", w, 0, half), -1.0), 2.0)
	return b.Call("cat", []*Value{b.Call("slice.Tensor", w, 0, 0, half), down})
}

func kaiserWindow(b *Build, a *Args, n int64, dt tensor.DType) *Value {
	beta := 12.0
	if i := a.Index("beta"); i >= 0 {
		beta = a.Float(i)
	}
	v := make([]float64, n)
	for i := range v {
		r := (float64(i) - float64(n-1)/2) / (float64(n-1) / 2)
		v[i] = besselI0(beta*math.Sqrt(max(1-r*r, 0))) / besselI0(beta)
	}
	t, _ := tensor.FromSlice(v, n)
	return b.Call("to.dtype", FromTensor(t), dt)
}

// besselI0 is the modified Bessel function of order 0 by its power series, with the terms scaled so that none overflows.
func besselI0(x float64) float64 {
	q := x * x / 4
	sum, term := 1.0, 1.0
	for k := 1.0; k < 1e5; k++ {
		term *= q / (k * k)
		sum += term
		if term < sum*1e-17 {
			break
		}
	}
	return sum
}

func oneHot(b *Build, a *Args) []*Value {
	x, classes := a.Tensor(0), a.I64(1)
	Check(x.DType == tensor.Int64, "one_hot is only applicable to index tensor of type LongTensor.")
	if x.empty() && classes <= 0 {
		Fail("Can not infer total number of classes from empty tensor.")
	}
	n := a.Int(1)
	if classes == -1 {
		s := b.CallResult("item", b.Call("max", x)).(Scalar)
		n = s.I.AddN(1)
	}
	Check(n.Ge(symbolic.N(1)) || x.empty(), "num_classes should be positive")
	shape := append(cloneInts(x.Sizes), n)
	if x.empty() {
		return One(b.Call("zeros", shape, Kw("dtype", tensor.Int64)))
	}
	if x.T != nil {
		lo := b.CallResult("item", b.Call("min", x)).(Scalar)
		hi := b.CallResult("item", b.Call("max", x)).(Scalar)
		Check(lo.Int64() >= 0, "Class values must be non-negative.")
		Check(hi.Int64() < n.Int64(), "Class values must be smaller than num_classes.")
	}
	zeros := b.Call("zeros", shape, Kw("dtype", tensor.Int64))
	return One(b.Call("scatter.value", zeros, -1, b.Call("unsqueeze", x, -1), 1))
}

// powers gives [..., n] with x**0, x**1, ... along the new dimension.
func powers(b *Build, x *Value, n symbolic.Int) *Value {
	last := b.Call("unsqueeze", x, -1)
	one := b.Call("ones_like", last)
	if n.Le(symbolic.N(1)) {
		return b.Call("slice.Tensor", one, -1, 0, n)
	}
	shape := append(cloneInts(x.Sizes), n.SubN(1))
	rep := b.Call("cumprod", b.Call("expand", last, shape), -1)
	return b.Call("cat", []*Value{b.Call("to.dtype", one, rep.DType), rep}, -1)
}
