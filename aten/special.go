package aten

import (
	"math"

	"github.com/pt2go/pt2/tensor"
)

// specialOps are the functions of torch.special and their older names.
var specialOps = concat(
	specialUnary("lgamma", true, lgamma),
	specialUnary("digamma", true, digamma),
	specialUnary("special_i0e", true, func(x float64) float64 { return besselIe(0, math.Abs(x)) }),
	specialUnary("special_i1e", true, besselI1e),
	specialUnary("special_erfcx", false, erfcx),
	specialUnary("special_ndtri", false, ndtri),
	specialUnary("special_log_ndtr", false, logNdtr),
	specialUnary("special_airy_ai", false, airyAi),
	specialUnary("special_bessel_j0", false, besselJ0),
	specialUnary("special_bessel_j1", false, besselJ1),
	specialUnary("special_bessel_y0", false, besselY0),
	specialUnary("special_bessel_y1", false, besselY1),
	specialUnary("special_scaled_modified_bessel_k0", false, func(x float64) float64 { return besselKe(0, x) }),
	specialUnary("special_scaled_modified_bessel_k1", false, func(x float64) float64 { return besselKe(1, x) }),
	specialUnary("special_modified_bessel_k0", false, func(x float64) float64 { return besselK(0, x) }),
	specialUnary("special_modified_bessel_k1", false, func(x float64) float64 { return besselK(1, x) }),
	specialUnary("special_spherical_bessel_j0", false, sphericalJ0),
	polynomial("chebyshev_polynomial_t", chebyshevT[float32], chebyshevT[float64]),
	polynomial("chebyshev_polynomial_u", chebyshevU[float32], chebyshevU[float64]),
	polynomial("chebyshev_polynomial_v", chebyshevV[float32], chebyshevV[float64]),
	polynomial("chebyshev_polynomial_w", chebyshevW[float32], chebyshevW[float64]),
	polynomial("shifted_chebyshev_polynomial_t", shiftedT[float32], shiftedT[float64]),
	polynomial("shifted_chebyshev_polynomial_u", shiftedU[float32], shiftedU[float64]),
	polynomial("shifted_chebyshev_polynomial_v", shiftedV[float32], shiftedV[float64]),
	polynomial("shifted_chebyshev_polynomial_w", shiftedW[float32], shiftedW[float64]),
	polynomial("hermite_polynomial_h", hermiteH[float32], hermiteH[float64]),
	polynomial("hermite_polynomial_he", hermiteHe[float32], hermiteHe[float64]),
	polynomial("laguerre_polynomial_l", laguerre[float32], laguerre[float64]),
	polynomial("legendre_polynomial_p", legendre[float32], legendre[float64]),
	specialScaled("i0", true, func(x float64) float64 { return besselIe(0, math.Abs(x)) }),
	specialScaled("special_modified_bessel_i0", false, func(x float64) float64 { return besselIe(0, math.Abs(x)) }),
	specialScaled("special_i1", true, besselI1e),
	specialScaled("special_modified_bessel_i1", false, besselI1e),
	aliases1("special_gammaln", "lgamma", "special_digamma", "digamma", "special_psi", "digamma", "special_i0", "i0"),
	withScalars("special_zeta", "self_scalar", "other_scalar", "self", "other",
		Op{Schema: "special_zeta(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeSpecial(false), CPU: map2(floats(hurwitz))}),
	withScalars("special_xlog1py", "self_scalar", "other_scalar", "self", "other",
		Op{Schema: "special_xlog1py(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeSpecial(true), CPU: roundingLog(math.Log1p)}),
	withScalars("special_xlogy", "self_scalar", "other_scalar", "self", "other",
		Op{Schema: "special_xlogy(Tensor self, Tensor other) -> Tensor", Decomp: rename2("xlogy.Tensor")}),
	[]Op{
		{Schema: "special_entr(Tensor self) -> Tensor", Tags: Pointwise, Shape: shapeSpecial(true), CPU: func(k *Kernel) {
			r := k.rounder()
			k.Map1(real1(func(x float64) float64 {
				switch {
				case x > 0:
					return -x * r(math.Log(x))
				case x == 0:
					return 0
				case x < 0:
					return math.Inf(-1)
				}
				return x
			}), k.T(0))
		}},
		{Schema: "special_ndtr(Tensor self) -> Tensor", Tags: Pointwise, Shape: shapeSpecial(true), CPU: ndtrKernel},
		{Schema: "igamma(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeGammaInc, CPU: map2(floats(gammaP))},
		{Schema: "igammac(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeGammaInc, CPU: map2(floats(gammaQ))},
		{Schema: "special_gammainc(Tensor self, Tensor other) -> Tensor", Decomp: rename2("igamma")},
		{Schema: "special_gammaincc(Tensor self, Tensor other) -> Tensor", Decomp: rename2("igammac")},
		{Schema: "polygamma(int n, Tensor self) -> Tensor", Tags: Pointwise, Shape: shapePolygamma, CPU: polygammaKernel},
		{Schema: "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)", Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("copy_", a.Tensor(0), b.Call("polygamma", a.V[1], a.Tensor(0))))
		}},
		{Schema: "special_polygamma(int n, Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("polygamma", a.V...)) }},
		{Schema: "mvlgamma(Tensor self, int p) -> Tensor", Tags: Pointwise, Shape: func(a *Args) []Meta {
			Check(a.I64(1) >= 1, "p has to be greater than or equal to 1")
			return shapeSpecial(true)(a)
		}, CPU: mvlgammaKernel},
		{Schema: "special_multigammaln(Tensor self, int p) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("mvlgamma", a.V...)) }},
		{Schema: "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", Shape: func(a *Args) []Meta {
			Check(a.Tensor(0).DType.IsFloat(), "torch.frexp() only supports floating-point dtypes")
			m := shapeSame(a)[0]
			e := m
			e.DType = tensor.Int32
			return []Meta{m, e}
		}, CPU: frexpKernel},
	},
)

// shapeSpecial is shapeFloat for functions that complex numbers and, unless half is set, 16-bit floats are refused for.
func shapeSpecial(half bool) func(a *Args) []Meta {
	return func(a *Args) []Meta {
		m := shapeFloat(a)
		if dt := m[0].DType; !dt.IsFloat() || dt.IsFloat8() || dt.IsReduced() && !half {
			name := a.Op.schema.Base
			if len(name) > 8 && name[:8] == "special_" {
				name = name[8:]
			}
			FailAs("NotImplementedError", "\"%s_cpu\" not implemented for '%s'", name, dt.CPPName())
		}
		return m
	}
}

// specialUnary is an operator of one operand, computed in float64.
func specialUnary(name string, half bool, f func(float64) float64) []Op {
	return []Op{{Schema: specialSchema(name), Tags: Pointwise, Shape: shapeSpecial(half), CPU: map1(real1(f))}}
}

// specialSchema: the operators that PyTorch added last name their operand x.
func specialSchema(name string) string {
	switch name {
	case "special_airy_ai", "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1", "special_spherical_bessel_j0":
		return name + "(Tensor x) -> Tensor"
	}
	return name + "(Tensor self) -> Tensor"
}

// specialScaled is an operator that is exp(|x|) times f, the product in the operand's precision: so it overflows where
// PyTorch's does.
func specialScaled(name string, half bool, f func(float64) float64) []Op {
	fn := Fn1{
		F32: Each1(func(x float32) float32 { return float32(math.Exp(math.Abs(float64(x)))) * float32(f(float64(x))) }),
		F64: Each1(func(x float64) float64 { return math.Exp(math.Abs(x)) * f(x) }),
	}
	return []Op{{Schema: specialSchema(name), Tags: Pointwise, Shape: shapeSpecial(half), CPU: map1(fn)}}
}

// withScalars adds the overloads of a two-operand operator in which either operand is a number.
func withScalars(name, first, second, x, y string, op Op) []Op {
	return []Op{
		op,
		{Schema: name + "." + first + "(Scalar " + x + ", Tensor " + y + ") -> Tensor", Decomp: scalarFirst(name)},
		{Schema: name + "." + second + "(Tensor " + x + ", Scalar " + y + ") -> Tensor", Decomp: viaTensor(name)},
	}
}

// polynomial is an orthogonal polynomial in x of a degree that is the second operand, truncated to an integer.
func polynomial(name string, f32 func(x float32, n int64) float32, f64 func(x float64, n int64) float64) []Op {
	name = "special_" + name
	fn := Fn2{
		F32: Each2(func(x, n float32) float32 { return f32(x, toInt(n, false)) }),
		F64: Each2(func(x, n float64) float64 { return f64(x, toInt(n, false)) }),
	}
	return withScalars(name, "x_scalar", "n_scalar", "x", "n",
		Op{Schema: name + "(Tensor x, Tensor n) -> Tensor", Tags: Pointwise, Shape: shapeSpecial(false), CPU: map2(fn)})
}

func ndtrKernel(k *Kernel) {
	r := k.rounder()
	k.Map1(Fn1{
		F32: Each1(func(x float32) float32 {
			return float32(r(float64(1+float32(r(math.Erf(r(float64(x)*(math.Sqrt2/2))))))) * 0.5)
		}),
		F64: Each1(func(x float64) float64 { return (1 + math.Erf(x*(math.Sqrt2/2))) * 0.5 }),
	}, k.T(0))
}

func shapeGammaInc(a *Args) []Meta {
	m := shapeSame(a)
	if dt := m[0].DType; !dt.IsFloat() || dt.IsFloat8() {
		FailAs("NotImplementedError", "\"%s_cpu\" not implemented for '%s'", a.Op.schema.Base, dt.CPPName())
	}
	return m
}

func shapePolygamma(a *Args) []Meta {
	n := a.I64(0)
	Check(n >= 0, "polygamma(n, x) does not support negative n.")
	return shapeSpecial(n < 2)(a)
}

func polygammaKernel(k *Kernel) {
	n := k.I64(0)
	f := Fn1{F32: Each1(func(x float32) float32 { return polygamma(n, x) }), F64: Each1(func(x float64) float64 { return polygamma(n, x) })}
	switch n {
	case 0:
		f = real1(digamma)
	case 1:
		f = Fn1{F32: Each1(trigamma[float32]), F64: Each1(trigamma[float64])}
	}
	k.Map1(f, k.T(1))
}

func mvlgammaKernel(k *Kernel) {
	p := float64(k.I64(1))
	k.Map1(real1(func(x float64) float64 {
		s := p * (p - 1) / 4 * math.Log(math.Pi)
		for j := range int(p) {
			s += lgamma(x - float64(j)/2)
		}
		return s
	}), k.T(0))
}

func frexpKernel(k *Kernel) {
	kind := KindOf(k.T(0).DType())
	Loop(k.Pool, []Operand{{T: k.Out[0], Kind: kind}, {T: k.Out[1], Kind: KI64}}, []Operand{{T: k.T(0), Kind: kind}}, func(o, in []Block) {
		e := As[int64](o[1])
		if kind == KF64 {
			for i, x := range As[float64](in[0]) {
				m, n := math.Frexp(x)
				As[float64](o[0])[i], e[i] = m, int64(n)
			}
			return
		}
		for i, x := range As[float32](in[0]) {
			m, n := math.Frexp(float64(x))
			As[float32](o[0])[i], e[i] = float32(m), int64(n)
		}
	})
}
