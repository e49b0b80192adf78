package aten

import (
	"math"
	"math/cmplx"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// complexOps take complex tensors apart and put them together; conjugation and negation are lazy bits as in PyTorch.
var complexOps = []Op{
	{Schema: "view_as_real(Tensor(a) self) -> Tensor(a)", Tags: LazyBits, Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		if x.Conj {
			Fail("view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original.")
		}
		if !x.DType.IsComplex() {
			Fail("view_as_real is only supported for complex tensors")
		}
		m := x.ViewMeta(append(append([]symbolic.Int{}, x.Sizes...), symbolic.N(2)), append(doubled(x.Strides), symbolic.N(1)), x.Offset.MulN(2))
		m.DType = x.DType.Real()
		return []Meta{m}
	}},
	{Schema: "view_as_complex(Tensor(a) self) -> Tensor(a)", Tags: LazyBits, Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		n := x.Dim() - 1
		if n < 0 || x.Sizes[n].Ne(symbolic.N(2)) {
			Fail("Tensor must have a last dimension of size 2")
		}
		if x.Strides[n].Int64() != 1 {
			Fail("Tensor must have a last dimension with stride 1")
		}
		dt := x.DType.Complex()
		if dt == tensor.Invalid || x.DType.IsComplex() {
			Fail("view_as_complex is only supported for floating point tensors, but got a tensor of scalar type: %s", x.DType.CPPName())
		}
		st := make([]symbolic.Int, n)
		for i := range st {
			if x.Strides[i].Int64()%2 != 0 {
				Fail("Tensor must have a stride divisible by 2 for all but last dimension")
			}
			st[i] = x.Strides[i].DivN(2)
		}
		if x.Offset.Int64()%2 != 0 {
			Fail("Tensor must have a storage_offset divisible by 2")
		}
		m := x.ViewMeta(x.Sizes[:n], st, x.Offset.DivN(2))
		m.DType = dt
		return []Meta{m}
	}},
	{Schema: "real(Tensor(a) self) -> Tensor(a)", Tags: LazyBits, Shape: func(a *Args) []Meta { return []Meta{partMeta(a.Tensor(0), 0)} }},
	{Schema: "imag(Tensor(a) self) -> Tensor(a)", Tags: LazyBits, Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		if !x.DType.IsComplex() {
			Fail("imag is not implemented for tensors with non-complex dtypes.")
		}
		m := partMeta(x, 1)
		m.Neg = x.Conj != x.Neg
		return []Meta{m}
	}},
	{Schema: "_conj(Tensor(a) self) -> Tensor(a)", Tags: LazyBits, Shape: conjMeta},
	{Schema: "conj(Tensor(a) self) -> Tensor(a)", Tags: LazyBits, Shape: conjMeta},
	{Schema: "_neg_view(Tensor(a) self) -> Tensor(a)", Tags: LazyBits, Shape: func(a *Args) []Meta {
		m := a.Tensor(0).AliasMeta()
		m.Neg = !m.Neg
		return []Meta{m}
	}},
	{Schema: "_conj_physical(Tensor self) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: conjKernel},
	{Schema: "conj_physical(Tensor self) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: conjKernel},
	{Schema: "angle(Tensor self) -> Tensor", Tags: Pointwise, Shape: func(a *Args) []Meta {
		m := shapeFloat(a)
		m[0].DType = m[0].DType.Real()
		return m
	}, CPU: func(k *Kernel) {
		x := k.T(0)
		if x.DType().IsComplex() {
			Loop(k.Pool, []Operand{{T: k.Out[0], Kind: KF64}}, []Operand{{T: x, Kind: KC128}}, func(o, in []Block) {
				for i, z := range As[complex128](in[0]) {
					As[float64](o[0])[i] = cmplx.Phase(z)
				}
			})
			return
		}
		k.Map1(real1(func(x float64) float64 {
			switch {
			case x != x:
				return x
			case x < 0:
				return math.Pi
			}
			return 0
		}), x)
	}},
	{Schema: "complex(Tensor real, Tensor imag) -> Tensor", Shape: shapeComplex, CPU: func(k *Kernel) {
		complexKernel(k, func(re, im float64) complex128 { return complex(re, im) })
	}},
	{Schema: "polar(Tensor abs, Tensor angle) -> Tensor", Shape: shapeComplex, CPU: func(k *Kernel) {
		complexKernel(k, func(r, t float64) complex128 { return complex(r*math.Cos(t), r*math.Sin(t)) })
	}},
}

func doubled(s []symbolic.Int) []symbolic.Int {
	out := make([]symbolic.Int, len(s))
	for i := range s {
		out[i] = s[i].MulN(2)
	}
	return out
}

func partMeta(x *Value, part int64) Meta {
	if !x.DType.IsComplex() {
		return x.AliasMeta()
	}
	m := x.ViewMeta(x.Sizes, doubled(x.Strides), x.Offset.MulN(2).AddN(part))
	m.DType, m.Conj = x.DType.Real(), false
	return m
}

func conjMeta(a *Args) []Meta {
	m := a.Tensor(0).AliasMeta()
	if m.DType.IsComplex() {
		m.Conj = !m.Conj
	}
	return []Meta{m}
}

func conjKernel(k *Kernel) {
	x := k.T(0)
	if x.DType().IsComplex() {
		x = x.WithBits(true, false)
	}
	Copy(k.Pool, k.Out[0], x)
}

func shapeComplex(a *Args) []Meta {
	x, y := a.Tensor(0), a.Tensor(1)
	dt := x.DType.Complex()
	part := func(dt tensor.DType) bool {
		return dt == tensor.Float16 || dt == tensor.Float32 || dt == tensor.Float64
	}
	if !part(x.DType) || !part(y.DType) {
		FailAs("NotImplementedError", "Expected both inputs to be Half, Float or Double tensors but got %s and %s", x.DType.CPPName(), y.DType.CPPName())
	}
	Check(x.DType == y.DType, "Expected object of scalar type %s but got scalar type %s for second argument", x.DType.CPPName(), y.DType.CPPName())
	return []Meta{PointwiseMeta(dt, x, y)}
}

func complexKernel(k *Kernel, f func(x, y float64) complex128) {
	Loop(k.Pool, []Operand{{T: k.Out[0], Kind: KC128}}, []Operand{{T: k.T(0), Kind: KF64}, {T: k.T(1), Kind: KF64}}, func(o, in []Block) {
		x, y := As[float64](in[0]), As[float64](in[1])
		for i := range x {
			As[complex128](o[0])[i] = f(x[i], y[i])
		}
	})
}

// withComplex adds the form for complex numbers to a function of two floats.
func withComplex(f Fn2, c func(x, y complex128) complex128) Fn2 {
	f.C128 = Each2(c)
	f.C64 = Each2(func(x, y complex64) complex64 { return complex64(c(complex128(x), complex128(y))) })
	return f
}

// logAddExp is log(exp(x) + exp(y)), computed from the difference so that nothing overflows. A NaN part makes both NaN.
func logAddExp(x, y complex128) complex128 {
	if cmplx.IsNaN(x) || cmplx.IsNaN(y) || math.IsNaN(imag(x)) || math.IsNaN(imag(y)) || math.IsNaN(real(x)) || math.IsNaN(real(y)) {
		return complex(math.NaN(), math.NaN())
	}
	lo, hi := x, y
	if real(lo) >= real(hi) {
		lo, hi = hi, lo
	}
	if math.IsInf(real(lo), 0) && real(lo) == real(hi) {
		if real(lo) < 0 {
			return lo
		}
		return cmplx.Log(cmplx.Exp(lo) + cmplx.Exp(hi))
	}
	d := lo - hi
	e := complex(math.Exp(real(d))*math.Cos(imag(d)), math.Exp(real(d))*math.Sin(imag(d)))
	return hi + cmplx.Log(1+e)
}
