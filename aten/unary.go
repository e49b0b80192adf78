package aten

import (
	"math"
	"math/cmplx"

	"github.com/pt2go/pt2/tensor"
)

// unaryOps compute each element from one operand.
var unaryOps = concat(
	floatUnary("exp", Core, math.Exp, cmplx.Exp),
	floatUnary("exp2", 0, math.Exp2, func(z complex128) complex128 { return cmplx.Exp(z * complex(math.Ln2, 0)) }),
	floatUnary("expm1", Core, math.Expm1, func(z complex128) complex128 { return cmplx.Exp(z) - 1 }),
	floatUnary("log", Core, math.Log, cmplx.Log),
	floatUnary("log10", Core, math.Log10, cmplx.Log10),
	floatUnary("log1p", Core, math.Log1p, func(z complex128) complex128 { return cmplx.Log(1 + z) }),
	floatUnary("log2", Core, math.Log2, func(z complex128) complex128 { return cmplx.Log(z) / complex(math.Ln2, 0) }),
	floatUnary("sqrt", Core, math.Sqrt, cmplx.Sqrt),
	floatUnary("rsqrt", Core, func(x float64) float64 { return 1 / math.Sqrt(x) }, func(z complex128) complex128 { return 1 / cmplx.Sqrt(z) }),
	floatUnary("sin", Core, math.Sin, cmplx.Sin),
	floatUnary("cos", Core, math.Cos, cmplx.Cos),
	floatUnary("tan", Core, math.Tan, cmplx.Tan),
	floatUnary("asin", Core, math.Asin, cmplx.Asin),
	floatUnary("acos", Core, math.Acos, cmplx.Acos),
	floatUnary("atan", Core, math.Atan, cmplx.Atan),
	floatUnary("sinh", Core, math.Sinh, cmplx.Sinh),
	floatUnary("cosh", Core, math.Cosh, cmplx.Cosh),
	floatUnary("tanh", Core, math.Tanh, cmplx.Tanh),
	floatUnary("asinh", Core, math.Asinh, cmplx.Asinh),
	floatUnary("acosh", Core, math.Acosh, cmplx.Acosh),
	floatUnary("atanh", Core, math.Atanh, cmplx.Atanh),
	floatUnary("erf", Core, math.Erf, nil),
	floatUnary("erfc", 0, math.Erfc, nil),
	floatUnary("erfinv", 0, math.Erfinv, nil),
	floatUnary("sigmoid", Core, sigmoid, func(z complex128) complex128 { return 1 / (1 + cmplx.Exp(-z)) }),
	floatUnary("reciprocal", Core, func(x float64) float64 { return 1 / x }, func(z complex128) complex128 { return 1 / z }),
	floatUnary("sinc", 0, func(x float64) float64 {
		if x == 0 {
			return 1
		}
		return math.Sin(math.Pi*x) / (math.Pi * x)
	}, func(z complex128) complex128 {
		if z == 0 {
			return 1
		}
		z *= math.Pi
		return cmplx.Sin(z) / z
	}),
	floatUnary("deg2rad", 0, func(x float64) float64 { return x * (math.Pi / 180) }, nil),
	floatUnary("rad2deg", 0, func(x float64) float64 { return x * (180 / math.Pi) }, nil),
	aliases1("arcsin", "asin", "arccos", "acos", "arctan", "atan", "arcsinh", "asinh", "arccosh", "acosh", "arctanh", "atanh",
		"special_expit", "sigmoid", "special_erf", "erf", "special_erfc", "erfc", "special_erfinv", "erfinv", "special_exp2", "exp2",
		"special_expm1", "expm1", "special_log1p", "log1p", "special_sinc", "sinc", "negative", "neg", "absolute", "abs", "fix", "trunc",
		"special_round", "round"),
	[]Op{
		{Schema: "neg(Tensor self) -> Tensor", Tags: Core | Pointwise, Shape: func(a *Args) []Meta {
			if a.Tensor(0).DType == tensor.Bool {
				FailAs("NotImplementedError", "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.")
			}
			return shapeSame(a)
		}, CPU: map1(Fn1{
			I64:  Each1(func(x int64) int64 { return -x }),
			U64:  Each1(func(x uint64) uint64 { return -x }),
			F32:  Each1(func(x float32) float32 { return -x }),
			F64:  Each1(func(x float64) float64 { return -x }),
			C64:  Each1(func(x complex64) complex64 { return -x }),
			C128: Each1(func(x complex128) complex128 { return -x }),
		})},
		{Schema: "abs(Tensor self) -> Tensor", Tags: Core | Pointwise, Shape: func(a *Args) []Meta {
			m := shapeSame(a)
			m[0].DType = m[0].DType.Real()
			return m
		}, CPU: absKernel},
		{Schema: "square(Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("pow.Tensor_Scalar", a.Tensor(0), 2)) }},
		{Schema: "positive(Tensor(a) self) -> Tensor(a)", Shape: func(a *Args) []Meta {
			if a.Tensor(0).DType == tensor.Bool {
				FailAs("NotImplementedError", "The `+` operator, on a bool tensor is not supported.")
			}
			return []Meta{a.Tensor(0).AliasMeta()}
		}},
		rounding("floor", Core, math.Floor),
		rounding("ceil", Core, math.Ceil),
		rounding("trunc", Core, math.Trunc),
		rounding("round", Core, math.RoundToEven),
		{Schema: "round.decimals(Tensor self, *, int decimals) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: roundDecimals},
		{Schema: "frac(Tensor self) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: map1(Fn1{
			F32: Each1(func(x float32) float32 { return x - float32(math.Trunc(float64(x))) }), F64: Each1(func(x float64) float64 { return x - math.Trunc(x) })})},
		{Schema: "sign(Tensor self) -> Tensor", Tags: Core | Pointwise, Shape: shapeSame, CPU: map1(signFn)},
		{Schema: "sgn(Tensor self) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: map1(Fn1{B: signFn.B, I64: signFn.I64, F32: signFn.F32, F64: signFn.F64,
			C64: Each1(func(z complex64) complex64 { return complex64(sgnC(complex128(z))) }), C128: Each1(sgnC)})},
		{Schema: "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: nanToNum},
		{Schema: "logit(Tensor self, float? eps=None) -> Tensor", Tags: Pointwise, Shape: shapeFloat, CPU: func(k *Kernel) {
			eps, ok := k.OptFloat(1)
			r := k.rounder()
			k.Map1(real1(func(x float64) float64 {
				switch { // PyTorch looks at the lower bound first, also where eps is above a half
				case ok && x < eps:
					x = eps
				case ok && x > 1-eps:
					x = 1 - eps
				}
				return math.Log(r(x / r(1-x)))
			}), k.T(0))
		}},
		{Schema: "special_logit(Tensor self, float? eps=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("logit", a.V...)) }},
	},
)

// real1 makes the real forms of a function from its float64 form.
func real1(f func(float64) float64) Fn1 {
	return Fn1{F32: Each1(func(x float32) float32 { return float32(f(float64(x))) }), F64: Each1(f)}
}

// floatUnary is an operator that answers integers in float32. A nil complex form refuses complex operands.
func floatUnary(name string, tags Tag, f func(float64) float64, c func(complex128) complex128) []Op {
	fn := real1(f)
	if fast := fastF32(name); fast != nil {
		fn.F32 = fast
	}
	if c != nil {
		fn.C128 = Each1(c)
		fn.C64 = Each1(func(z complex64) complex64 { return complex64(c(complex128(z))) })
	}
	return []Op{{Schema: name + "(Tensor self) -> Tensor", Tags: tags | Pointwise, Shape: shapeFloat, CPU: map1(fn)}}
}

// aliases1 makes operators that are another name of an operator of one tensor: pairs of new and old names.
func aliases1(pairs ...string) []Op {
	var out []Op
	for i := 0; i < len(pairs); i += 2 {
		schema := "(Tensor self) -> Tensor"
		old := pairs[i+1]
		if pairs[i] == "special_round" {
			out = append(out, Op{Schema: "special_round(Tensor self, *, int decimals=0) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
				return One(b.Call("round.decimals", a.Tensor(0), Kw("decimals", a.Int(1))))
			}})
			continue
		}
		out = append(out, Op{Schema: pairs[i] + schema, Decomp: rename1(old)})
	}
	return out
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func absKernel(k *Kernel) {
	x := k.T(0)
	if dt := x.DType(); dt.IsComplex() {
		in, out := KindOf(dt), KindOf(k.Out[0].DType())
		Loop(k.Pool, []Operand{{T: k.Out[0], Kind: out}}, []Operand{{T: x, Kind: in}}, func(o, i []Block) {
			if in == KC128 {
				for j, z := range As[complex128](i[0]) {
					As[float64](o[0])[j] = cmplx.Abs(z)
				}
				return
			}
			for j, z := range As[complex64](i[0]) {
				As[float32](o[0])[j] = float32(cmplx.Abs(complex128(z)))
			}
		})
		return
	}
	k.Map1(Fn1{
		I64: Each1(func(x int64) int64 { return max(x, -x) }),
		U64: Each1(func(x uint64) uint64 { return x }),
		F32: Each1(func(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }),
		F64: Each1(math.Abs),
	}, x)
}

// rounding is an operator that leaves integers as they are.
func rounding(name string, tags Tag, f func(float64) float64) Op {
	fn := real1(f)
	fn.I64, fn.U64 = Each1(func(x int64) int64 { return x }), Each1(func(x uint64) uint64 { return x })
	return Op{Schema: name + "(Tensor self) -> Tensor", Tags: tags | Pointwise, Shape: shapeSame, CPU: map1(fn)}
}

func roundDecimals(k *Kernel) {
	d := k.I64(1)
	p64 := math.Pow(10, math.Abs(float64(d)))
	p32 := float32(p64)
	k.Map1(Fn1{
		F32: Each1(func(x float32) float32 {
			if d < 0 {
				return float32(math.RoundToEven(float64(x/p32))) * p32
			}
			return float32(math.RoundToEven(float64(x*p32))) / p32
		}),
		F64: Each1(func(x float64) float64 {
			if d < 0 {
				return math.RoundToEven(x/p64) * p64
			}
			return math.RoundToEven(x*p64) / p64
		}),
		I64: Each1(func(x int64) int64 { return x }),
	}, k.T(0))
}

var signFn = Fn1{
	B:   Each1(func(x uint8) uint8 { return x }),
	I64: Each1(func(x int64) int64 { return pick(x > 0, 1, pick[int64](x < 0, -1, 0)) }),
	U64: Each1(func(x uint64) uint64 { return min(x, 1) }),
	F32: Each1(func(x float32) float32 { return pick(x > 0, 1, pick[float32](x < 0, -1, 0)) }),
	F64: Each1(func(x float64) float64 { return pick(x > 0, 1, pick[float64](x < 0, -1, 0)) }),
}

func sgnC(z complex128) complex128 {
	if z == 0 {
		return 0
	}
	return z / complex(cmplx.Abs(z), 0)
}

func nanToNum(k *Kernel) {
	dt := k.Out[0].DType()
	hi := map[tensor.DType]float64{tensor.Float16: 65504, tensor.BFloat16: 3.3895313892515355e38, tensor.Float32: math.MaxFloat32, tensor.Float64: math.MaxFloat64}[dt.Real()]
	nan, posinf, neginf := 0.0, hi, -hi
	if v, ok := k.OptFloat(1); ok {
		nan = v
	}
	if v, ok := k.OptFloat(2); ok {
		posinf = v
	}
	if v, ok := k.OptFloat(3); ok {
		neginf = v
	}
	fix := func(x float64) float64 {
		switch {
		case x != x:
			return nan
		case math.IsInf(x, 1):
			return posinf
		case math.IsInf(x, -1):
			return neginf
		}
		return x
	}
	f := real1(fix)
	f.B, f.I64 = Each1(func(x uint8) uint8 { return x }), Each1(func(x int64) int64 { return x })
	f.C128 = Each1(func(z complex128) complex128 { return complex(fix(real(z)), fix(imag(z))) })
	f.C64 = Each1(func(z complex64) complex64 {
		return complex(float32(fix(float64(real(z)))), float32(fix(float64(imag(z)))))
	})
	k.Map1(f, k.T(0))
}
