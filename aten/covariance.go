package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// covarianceOps estimate covariances of variables, which are rows, from observations, which are columns.
var covarianceOps = []Op{
	{Schema: "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(covariance(b, a.Tensor(0), a.I64(1), a.OptTensor(2), a.OptTensor(3)))
	}},
	{Schema: "corrcoef(Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		Check(x.Dim() <= 2, "corrcoef(): expected input to have two or fewer dimensions but got an input with %d dimensions", x.Dim())
		c := covariance(b, x, 1, nil, nil)
		if c.Dim() == 0 {
			return One(b.Call("div.Tensor", c, c))
		}
		d := b.Call("diagonal", c)
		if c.DType.IsComplex() {
			d = b.Call("real", d)
		}
		d = b.Call("sqrt", d)
		c = b.Call("div.Tensor", c, b.Call("unsqueeze", d, 1))
		c = b.Call("div.Tensor", c, b.Call("unsqueeze", d, 0))
		if !c.DType.IsComplex() {
			return One(b.Call("clamp", c, -1, 1))
		}
		re, im := b.Call("clamp", b.Call("real", c), -1, 1), b.Call("clamp", b.Call("imag", c), -1, 1)
		return One(b.Call("complex", re, im))
	}},
	{Schema: "_is_all_true(Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		Check(a.Tensor(0).DType == tensor.Bool, "Expected self.scalar_type() == at::kBool to be true, but got false.")
		return One(b.Call("all", a.Tensor(0)))
	}},
	{Schema: "_is_any_true(Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		Check(a.Tensor(0).DType == tensor.Bool, "Expected self.scalar_type() == at::kBool to be true, but got false.")
		return One(b.Call("any", a.Tensor(0)))
	}},
}

// covariance weighs observations by whole frequencies f and by importance w, each [observations] or nil.
func covariance(b *Build, x *Value, correction int64, f, w *Value) *Value {
	Check(x.Dim() <= 2, "cov(): expected input to have two or fewer dimensions but got an input with %d dimensions", x.Dim())
	Check(x.DType != tensor.Bool, "cov(): bool dtype is not supported for input")
	if x.Dim() < 2 {
		x = b.Call("view", b.Call("reshape", x, []int64{-1}), []symbolic.Int{symbolic.N(1), x.Numel()})
	}
	n := x.Sizes[1]
	for _, v := range []struct {
		t    *Value
		name string
	}{{f, "fweights"}, {w, "aweights"}} {
		if v.t == nil {
			continue
		}
		Check(v.t.Dim() <= 1, "cov(): expected %s to have one or fewer dimensions but got %s with %d dimensions", v.name, v.name, v.t.Dim())
		Check(v.t.Numel().Eq(n), "cov(): expected %s to have the same numel as there are observations in the input but got %v != %v", v.name, v.t.Numel(), n)
		whole := v.t.DType.IsIntegral() && v.t.DType != tensor.Bool
		Check(v.name == "aweights" || whole, "cov(): expected fweights to have integral dtype but got fweights with %s dtype", v.t.DType.CPPName())
		Check(v.name == "fweights" || v.t.DType.IsFloat(), "cov(): expected aweights to have floating point dtype but got aweights with %s dtype", v.t.DType.CPPName())
	}
	if _, computing := b.Exec.(Computing); computing {
		for _, v := range []struct {
			t    *Value
			name string
		}{{f, "fweights"}, {w, "aweights"}} {
			if v.t != nil {
				b.CallN("_assert_async.msg", b.Call("all", b.Call("ge.Scalar", v.t, 0)), "cov(): "+v.name+" cannot be negative")
			}
		}
	}
	all := f
	if w != nil {
		all = w
		if f != nil {
			all = b.Call("mul.Tensor", f, w)
		}
	}
	var total, mean *Value
	if all == nil {
		total = b.Call("scalar_tensor", Scalar{Kind: IntScalar, I: n}, Kw("dtype", tensor.Int64))
		mean = b.Call("sum.dim_IntList", x, []int{1}, true)
	} else {
		total = b.Call("sum", all)
		mean = b.Call("sum.dim_IntList", b.Call("mul.Tensor", x, all), []int{1}, true)
	}
	mean = b.Call("div.Tensor", mean, total)
	norm := total
	switch {
	case w != nil && correction != 0 && f != nil:
		s := b.Call("sum", b.Call("mul.Tensor", all, w))
		norm = b.Call("sub.Tensor", total, b.Call("div.Tensor", b.Call("mul.Scalar", s, correction), total))
	case w != nil && correction != 0:
		s := b.Call("sum", b.Call("mul.Tensor", w, w))
		norm = b.Call("sub.Tensor", total, b.Call("div.Tensor", b.Call("mul.Scalar", s, correction), total))
	default:
		norm = b.Call("sub.Scalar", total, correction)
	}
	norm = b.Call("clamp_min", norm, 0)
	x = b.Call("sub.Tensor", x, mean)
	y := x
	if all != nil {
		y = b.Call("mul.Tensor", x, all)
	}
	c := b.Call("mm", x, b.Call("conj", b.Call("t", y)))
	return b.Call("squeeze", b.Call("div.Tensor", c, norm))
}
