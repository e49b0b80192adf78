package aten

import (
	"math"
	"math/cmplx"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// arithmeticOps are the operators +, -, *, / and their kin, with an alpha where PyTorch has one.
var arithmeticOps = []Op{
	{
		Schema: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
		Tags:   Core | Pointwise,
		Shape:  shapeAlpha,
		CPU:    func(k *Kernel) { addScaled(k, k.Scalar(2), k.T(0), k.T(1)) },
	},
	{
		Schema: "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
		Tags:   Core | Pointwise,
		Decomp: viaTensorAlpha("add.Tensor"),
	},
	{
		Schema: "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
		Tags:   Core | Pointwise,
		Shape:  shapeSub,
		CPU:    func(k *Kernel) { addScaled(k, negated(k.Scalar(2)), k.T(0), k.T(1)) },
	},
	{
		Schema: "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
		Tags:   Core | Pointwise,
		Decomp: viaTensorAlpha("sub.Tensor"),
	},
	{
		Schema: "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
		Tags:   Pointwise,
		Shape:  shapeSub,
		CPU:    func(k *Kernel) { addScaled(k, negated(k.Scalar(2)), k.T(1), k.T(0)) },
	},
	{
		Schema: "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
		Tags:   Pointwise,
		Decomp: viaTensorAlpha("rsub.Tensor"),
	},
	{Schema: "mul.Tensor(Tensor self, Tensor other) -> Tensor", Tags: Core | Pointwise, Shape: shapeSame, CPU: map2Wide(mulFn)},
	{Schema: "mul.Scalar(Tensor self, Scalar other) -> Tensor", Tags: Core | Pointwise, Decomp: viaTensor("mul.Tensor")},
	{Schema: "multiply.Tensor(Tensor self, Tensor other) -> Tensor", Decomp: rename2("mul.Tensor")},
	{Schema: "multiply.Scalar(Tensor self, Scalar other) -> Tensor", Decomp: viaTensor("mul.Tensor")},
	{Schema: "div.Tensor(Tensor self, Tensor other) -> Tensor", Tags: Core | Pointwise, Shape: shapeFloat, CPU: map2Wide(divFn)},
	{Schema: "div.Scalar(Tensor self, Scalar other) -> Tensor", Tags: Core | Pointwise, Decomp: viaTensor("div.Tensor")},
	{Schema: "divide.Tensor(Tensor self, Tensor other) -> Tensor", Decomp: rename2("div.Tensor")},
	{Schema: "divide.Scalar(Tensor self, Scalar other) -> Tensor", Decomp: viaTensor("div.Tensor")},
	{Schema: "divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", Decomp: divideMode},
	{Schema: "divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", Decomp: divideMode},
	{Schema: "true_divide.Tensor(Tensor self, Tensor other) -> Tensor", Decomp: rename2("div.Tensor")},
	{Schema: "true_divide.Scalar(Tensor self, Scalar other) -> Tensor", Decomp: viaTensor("div.Tensor")},
	{
		Schema: "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
		Tags:   Core | Pointwise,
		Shape: func(a *Args) []Meta {
			switch a.Str(2) {
			case "":
				return shapeFloat(a)
			case "trunc", "floor":
				return shapeSame(a)
			}
			Fail("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'", a.Str(2))
			return nil
		},
		CPU: func(k *Kernel) {
			switch k.Str(2) {
			case "":
				k.map2Wide(divFn, k.T(0), k.T(1))
			case "trunc":
				k.map2Wide(truncFnOf(k.Out[0].DType()), k.T(0), k.T(1))
			default:
				k.map2Wide(divFloorFn, k.T(0), k.T(1))
			}
		},
	},
	{
		Schema: "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
		Tags:   Core | Pointwise,
		Decomp: divideMode,
	},
	{Schema: "floor_divide(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: map2Wide(divFloorFn)},
	{Schema: "floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("floor_divide_", a.Tensor(0), a.Tensor(1)))
	}},
	{Schema: "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor", Tags: Pointwise, Decomp: viaTensor("floor_divide")},
	{Schema: "remainder.Tensor(Tensor self, Tensor other) -> Tensor", Tags: Core | Pointwise, Shape: shapeSame, CPU: map2(remainderFn)},
	{Schema: "remainder.Scalar(Tensor self, Scalar other) -> Tensor", Tags: Core | Pointwise, Decomp: viaTensor("remainder.Tensor")},
	{Schema: "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", Tags: Pointwise, Decomp: scalarFirst("remainder.Tensor")},
	{Schema: "fmod.Tensor(Tensor self, Tensor other) -> Tensor", Tags: Core | Pointwise, Shape: shapeSame, CPU: map2(fmodFn)},
	{Schema: "fmod.Scalar(Tensor self, Scalar other) -> Tensor", Tags: Core | Pointwise, Decomp: viaTensor("fmod.Tensor")},
	{Schema: "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", Tags: Core | Pointwise, Shape: shapeSame, CPU: map2(powFn)},
	{
		Schema: "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
		Tags:   Core | Pointwise,
		Shape: func(a *Args) []Meta {
			x, e := a.Tensor(0), a.Scalar(1)
			dt := ResultType(x, WrapScalar(e))
			if dt.IsIntegral() && e.Kind == IntScalar && e.Int64() < 0 {
				Fail("Integers to negative integer powers are not allowed.")
			}
			return []Meta{PointwiseMeta(dt, x)}
		},
		CPU: powScalar,
	},
	{Schema: "pow.Scalar(Scalar self, Tensor exponent) -> Tensor", Tags: Core | Pointwise, Decomp: scalarFirst("pow.Tensor_Tensor")},
	{
		Schema: "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("pow.Tensor_Tensor", wide(b, a.Tensor(0)), wide(b, a.Tensor(1))))
		},
	},
	{
		Schema: "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			e := a.Scalar(1)
			if e.Kind < FloatScalar {
				e = FloatS(e.Float64())
			}
			return One(b.Call("pow.Tensor_Scalar", wide(b, a.Tensor(0)), e))
		},
	},
	{
		Schema: "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("pow.Scalar", a.Scalar(0), wide(b, a.Tensor(1)))) },
	},
	{
		Schema: "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
		Tags:   Pointwise,
		Shape:  shapeSame,
		CPU: func(k *Kernel) {
			f, i, c := k.Scalar(3).Float64(), k.Scalar(3).Int64(), k.Scalar(3).Complex()
			k.Map3(Fn3{
				I64:  Each3(func(x, y, z int64) int64 { return x + i*y*z }),
				F32:  Each3(func(x, y, z float32) float32 { return x + float32(f)*y*z }),
				F64:  Each3(func(x, y, z float64) float64 { return x + f*y*z }),
				C64:  Each3(func(x, y, z complex64) complex64 { return x + complex64(c)*y*z }),
				C128: Each3(func(x, y, z complex128) complex128 { return x + c*y*z }),
			}, k.T(0), k.T(1), k.T(2))
		},
	},
	{
		Schema: "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
		Tags:   Pointwise,
		Shape: func(a *Args) []Meta {
			if a.Tensor(1).DType.IsIntegral() && a.Tensor(2).DType.IsIntegral() {
				Fail("Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes.")
			}
			return shapeSame(a)
		},
		CPU: func(k *Kernel) {
			f, c := k.Scalar(3).Float64(), k.Scalar(3).Complex()
			k.Map3(Fn3{
				F32:  Each3(func(x, y, z float32) float32 { return x + float32(f)*y/z }),
				F64:  Each3(func(x, y, z float64) float64 { return x + f*y/z }),
				C64:  Each3(func(x, y, z complex64) complex64 { return x + complex64(c)*y/z }),
				C128: Each3(func(x, y, z complex128) complex128 { return x + c*y/z }),
			}, k.T(0), k.T(1), k.T(2))
		},
	},
	{Schema: "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", Tags: Pointwise, Shape: shapeSame,
		CPU: func(k *Kernel) { k.Map3(lerpFn, k.T(0), k.T(1), k.T(2)) }},
	{Schema: "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", Tags: Pointwise,
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("lerp.Tensor", a.Tensor(0), a.Tensor(1), WrapScalar(a.Scalar(2))))
		}},
	{Schema: "maximum(Tensor self, Tensor other) -> Tensor", Tags: Core | Pointwise, Shape: shapeOrdered, CPU: map2(maximumFn)},
	{Schema: "minimum(Tensor self, Tensor other) -> Tensor", Tags: Core | Pointwise, Shape: shapeOrdered, CPU: map2(minimumFn)},
	{Schema: "max.other(Tensor self, Tensor other) -> Tensor", Decomp: rename2("maximum")},
	{Schema: "min.other(Tensor self, Tensor other) -> Tensor", Decomp: rename2("minimum")},
	{Schema: "fmax(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeOrdered, CPU: map2(ordered(
		func(x, y float64) float64 {
			if y != y || x >= y {
				return x
			}
			return y
		}))},
	{Schema: "fmin(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeOrdered, CPU: map2(fminFn)},
	{Schema: "atan2(Tensor self, Tensor other) -> Tensor", Tags: Core | Pointwise, Shape: shapeFloat, CPU: map2(floats(math.Atan2))},
	{Schema: "arctan2(Tensor self, Tensor other) -> Tensor", Decomp: rename2("atan2")},
	{Schema: "hypot(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: map2(floats(math.Hypot))},
	{Schema: "copysign.Tensor(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeFloat, CPU: map2(floats(math.Copysign))},
	{Schema: "copysign.Scalar(Tensor self, Scalar other) -> Tensor", Tags: Pointwise, Decomp: viaTensor("copysign.Tensor")},
	{Schema: "nextafter(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: nextafterKernel},
	{Schema: "ldexp.Tensor(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeLdexp, CPU: ldexpKernel},
	{Schema: "gcd(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: map2(Fn2{I64: Each2(gcd)})},
	{Schema: "lcm(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: map2(Fn2{I64: Each2(func(x, y int64) int64 {
		g := gcd(x, y)
		if g == 0 {
			return 0
		}
		return max(x/g*y, -(x / g * y))
	})})},
	{Schema: "heaviside(Tensor self, Tensor values) -> Tensor", Tags: Pointwise, Shape: shapeHeaviside, CPU: map2(Fn2{
		B: Each2(func(x, v uint8) uint8 { return pick(x == 0, v, 1) }), I64: Each2(heaviside[int64]), F32: Each2(heaviside[float32]), F64: Each2(heaviside[float64])})},
	{Schema: "logaddexp(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: map2(withComplex(floats(func(x, y float64) float64 {
		if math.IsInf(x, 0) && x == y {
			return x
		}
		m := math.Max(x, y)
		return m + math.Log1p(math.Exp(-math.Abs(x-y)))
	}), logAddExp))},
	{Schema: "logaddexp2(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeSame, CPU: map2(floats(func(x, y float64) float64 {
		if math.IsInf(x, 0) && x == y {
			return x
		}
		return math.Max(x, y) + math.Log1p(math.Exp2(-math.Abs(x-y)))/math.Ln2
	}))},
	{Schema: "xlogy.Tensor(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeFloat, CPU: roundingLog(math.Log)},
	{Schema: "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", Tags: Pointwise, Decomp: viaTensor("xlogy.Tensor")},
	{Schema: "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", Tags: Pointwise, Decomp: scalarFirst("xlogy.Tensor")},
	{
		Schema: "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
		Tags:   Core | Pointwise,
		Shape: func(a *Args) []Meta {
			vals := []*Value{a.Tensor(0)}
			for _, i := range []int{1, 2} {
				if s, ok := a.OptScalar(i); ok {
					vals = append(vals, WrapScalar(s))
				}
			}
			if len(vals) == 1 {
				Fail("torch.clamp: At least one of 'min' or 'max' must not be None")
			}
			return []Meta{PointwiseMeta(ResultType(vals...), a.Tensor(0))}
		},
		CPU: func(k *Kernel) {
			lo, okLo := k.OptScalar(1)
			hi, okHi := k.OptScalar(2)
			k.Map1(clampFn(lo, okLo, hi, okHi), k.T(0))
		},
	},
	{
		Schema: "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
		Tags:   Core | Pointwise,
		Decomp: func(b *Build, a *Args) []*Value {
			v := a.Tensor(0)
			if lo := a.OptTensor(1); lo != nil {
				v = b.Call("maximum", v, lo)
			}
			if hi := a.OptTensor(2); hi != nil {
				v = b.Call("minimum", v, hi)
			}
			return One(v)
		},
	},
	{Schema: "clamp_min(Tensor self, Scalar min) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("clamp", a.Tensor(0), a.Scalar(1))) }},
	{Schema: "clamp_max(Tensor self, Scalar max) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("clamp", a.Tensor(0), nil, a.Scalar(1))) }},
	{Schema: "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", Decomp: rename2("maximum")},
	{Schema: "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", Decomp: rename2("minimum")},
	{Schema: "clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("clamp", a.V...)) }},
	{Schema: "clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("clamp.Tensor", a.V...)) }},
	{Schema: "subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("sub.Tensor", a.Tensor(0), a.Tensor(1), Kw("alpha", a.Scalar(2))))
	}},
	{Schema: "_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("relu", b.Call("add.Tensor", a.Tensor(0), a.Tensor(1), Kw("alpha", a.Scalar(2)))))
	}},
	{Schema: "subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", Decomp: viaTensorAlpha("sub.Tensor")},
}

// shapeLdexp keeps the dtype of a mantissa that is not an integer beside integer exponents, 0-d or not.
func shapeLdexp(a *Args) []Meta {
	if x, e := a.Tensor(0), a.Tensor(1); scalesExactly(x.DType, e.DType) {
		return []Meta{PointwiseMeta(x.DType, x, e)}
	}
	return shapeFloat(a)
}

func scalesExactly(x, e tensor.DType) bool { return !x.IsIntegral() && e.IsInt() }

// ldexpKernel is x * 2**e; with integer exponents the power alone may overflow where the product does not.
func ldexpKernel(k *Kernel) {
	x, e := k.T(0), k.T(1)
	dt := k.Out[0].DType()
	if !scalesExactly(x.DType(), e.DType()) {
		k.map2Wide(Fn2{
			F32: Each2(func(x, e float32) float32 { return x * float32(math.Exp2(float64(e))) }), F64: Each2(func(x, e float64) float64 { return x * math.Exp2(e) }),
			C64:  Each2(func(x, e complex64) complex64 { return x * complex64(powC(2, complex128(e))) }),
			C128: Each2(func(x, e complex128) complex128 { return x * powC(2, e) }),
		}, x, e)
		return
	}
	kind := KindOf(dt)
	scale := func(v float64, e int64) float64 { return math.Ldexp(v, int(max(-5000, min(5000, e)))) }
	Loop(k.Pool, []Operand{{T: k.Out[0], Kind: kind}}, []Operand{{T: x, Kind: kind}, {T: e, Kind: KI64}}, func(outs, ins []Block) {
		n := As[int64](ins[1])
		switch kind {
		case KF32:
			for i, v := range As[float32](ins[0]) {
				As[float32](outs[0])[i] = float32(scale(float64(v), n[i]))
			}
		case KF64:
			for i, v := range As[float64](ins[0]) {
				As[float64](outs[0])[i] = scale(v, n[i])
			}
		case KC64:
			for i, v := range As[complex64](ins[0]) {
				As[complex64](outs[0])[i] = complex(float32(scale(float64(real(v)), n[i])), float32(scale(float64(imag(v)), n[i])))
			}
		default:
			for i, v := range As[complex128](ins[0]) {
				As[complex128](outs[0])[i] = complex(scale(real(v), n[i]), scale(imag(v), n[i]))
			}
		}
	})
}

var mulFn = Fn2{
	B:    Each2(func(x, y uint8) uint8 { return x & y }),
	I64:  Each2(func(x, y int64) int64 { return x * y }),
	U64:  Each2(func(x, y uint64) uint64 { return x * y }),
	F32:  cpu.MulF32,
	F64:  Each2(func(x, y float64) float64 { return x * y }),
	C64:  Each2(func(x, y complex64) complex64 { return x * y }),
	C128: Each2(func(x, y complex128) complex128 { return x * y }),
}

var divFn = Fn2{
	F32: cpu.DivF32,
	F64: Each2(func(x, y float64) float64 { return x / y }),
	C64: Each2(func(x, y complex64) complex64 {
		re, im := divComplex(real(x), imag(x), real(y), imag(y))
		return complex(re, im)
	}),
	C128: Each2(func(x, y complex128) complex128 {
		re, im := divComplex(real(x), imag(x), real(y), imag(y))
		return complex(re, im)
	}),
}

// divComplex is (a+bi)/(c+di) as PyTorch computes it, scaled by the larger part of the divisor. Other than Go's division it
// does not mend infinities, and a divisor of zero of either sign counts as +0.
func divComplex[T float32 | float64](a, b, c, d T) (re, im T) {
	absC, absD := max(c, -c), max(d, -d)
	if absC >= absD {
		if absC == 0 && absD == 0 {
			return a / absC, b / absD
		}
		rat := d / c
		scl := 1 / (c + d*rat)
		return (a + b*rat) * scl, (b - a*rat) * scl
	}
	rat := c / d
	scl := 1 / (c*rat + d)
	return (a*rat + b) * scl, (b*rat - a) * scl
}

// truncFnOf divides towards zero; the 16-bit floats round the quotient before they cut it, as PyTorch does.
func truncFnOf(dt tensor.DType) Fn2 {
	f := divTruncFn
	if dt == tensor.Float16 || dt == tensor.BFloat16 {
		round := rounder[float32](dt)
		f.F32 = Each2(func(x, y float32) float32 { return float32(math.Trunc(float64(round(x / y)))) })
	}
	return f
}

var divTruncFn = Fn2{
	I64: Each2(func(x, y int64) int64 { return quo(x, y) }),
	U64: Each2(func(x, y uint64) uint64 { nonzero(y); return x / y }),
	F32: Each2(func(x, y float32) float32 { return float32(math.Trunc(float64(x / y))) }),
	F64: Each2(func(x, y float64) float64 { return math.Trunc(x / y) }),
}

var divFloorFn = Fn2{
	I64: Each2(func(x, y int64) int64 {
		q := quo(x, y)
		if y != -1 && x%y != 0 && (x < 0) != (y < 0) {
			q--
		}
		return q
	}),
	U64: Each2(func(x, y uint64) uint64 { nonzero(y); return x / y }),
	F32: Each2(func(x, y float32) float32 { return floorDiv(x, y) }),
	F64: Each2(func(x, y float64) float64 { return floorDiv(x, y) }),
}

func nonzero[T int64 | uint64](y T) {
	if y == 0 {
		FailAs("RuntimeError", "ZeroDivisionError")
	}
}

func quo(x, y int64) int64 {
	nonzero(y)
	if y == -1 {
		return -x
	}
	return x / y
}

// floorDiv is PyTorch's div_floor_floating: by fmod with correction.
func floorDiv[T float32 | float64](a, b T) T {
	if b == 0 {
		return a / b
	}
	m := T(math.Mod(float64(a), float64(b)))
	d := (a - m) / b
	if m != 0 && (b < 0) != (m < 0) {
		d--
	}
	if d == 0 {
		return T(math.Copysign(0, float64(a/b)))
	}
	f := T(math.Floor(float64(d)))
	if d-f > 0.5 {
		f++
	}
	return f
}

var remainderFn = Fn2{
	I64: Each2(func(x, y int64) int64 {
		nonzero(y)
		if y == -1 {
			return 0
		}
		m := x % y
		if m != 0 && (m < 0) != (y < 0) {
			m += y
		}
		return m
	}),
	U64: Each2(func(x, y uint64) uint64 { nonzero(y); return x % y }),
	F32: Each2(func(x, y float32) float32 { return remainder(x, y) }),
	F64: Each2(func(x, y float64) float64 { return remainder(x, y) }),
}

func remainder[T float32 | float64](x, y T) T {
	m := T(math.Mod(float64(x), float64(y)))
	if m != 0 && (y < 0) != (m < 0) {
		m += y
	}
	return m
}

var fmodFn = Fn2{
	I64: Each2(func(x, y int64) int64 {
		nonzero(y)
		if y == -1 {
			return 0
		}
		return x % y
	}),
	U64: Each2(func(x, y uint64) uint64 { nonzero(y); return x % y }),
	F32: Each2(func(x, y float32) float32 { return float32(math.Mod(float64(x), float64(y))) }),
	F64: Each2(math.Mod),
}

var powFn = Fn2{
	I64:  Each2(powInt),
	U64:  Each2(func(x, y uint64) uint64 { return uint64(powInt(int64(x), int64(y))) }),
	F32:  Each2(func(x, y float32) float32 { return float32(math.Pow(float64(x), float64(y))) }),
	F64:  Each2(math.Pow),
	C64:  Each2(func(x, y complex64) complex64 { return complex64(powC(complex128(x), complex128(y))) }),
	C128: Each2(powC),
}

// powC is exp(y*log(x)), with what this formula gives for a base of 0: not a number unless the exponent's real part says
// which end the logarithm goes to.
func powC(x, y complex128) complex128 {
	switch {
	case x == 0 && real(y) > 0:
		return 0
	case x == 0 && real(y) < 0:
		return complex(math.Inf(1), math.NaN())
	case x == 0:
		return cmplx.NaN()
	case y == 0 && !cmplx.IsInf(x) && !cmplx.IsNaN(x):
		return 1
	}
	return cmplx.Pow(x, y)
}

// powInt wraps on overflow; negative exponents give 0 except for bases 1 and -1.
func powInt(x, y int64) int64 {
	if y < 0 {
		switch x {
		case 1:
			return 1
		case -1:
			if y%2 == 0 {
				return 1
			}
			return -1
		}
		return 0
	}
	r := int64(1)
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			r *= x
		}
		x *= x
	}
	return r
}

func powScalar(k *Kernel) {
	e := k.Scalar(1)
	if e.Complex() == 1 {
		Copy(k.Pool, k.Out[0], k.T(0))
		return
	}
	if e.Complex() == 0 {
		fillAll(k.Pool, k.Out[0], IntS(1))
		return
	}
	if e.Kind != ComplexScalar {
		var f Fn1
		switch ex := e.Float64(); ex {
		case 2:
			f = squareFn
		case 3:
			f = Fn1{F32: Each1(func(x float32) float32 { return x * x * x }), F64: Each1(func(x float64) float64 { return x * x * x })}
		case 0.5:
			f = Fn1{F32: Each1(func(x float32) float32 { return float32(math.Sqrt(float64(x))) }), F64: Each1(math.Sqrt)}
		case -0.5:
			f = Fn1{F32: Each1(func(x float32) float32 { return float32(1 / math.Sqrt(float64(x))) }), F64: Each1(func(x float64) float64 { return 1 / math.Sqrt(x) })}
		case -1:
			f = Fn1{F32: Each1(func(x float32) float32 { return 1 / x }), F64: Each1(func(x float64) float64 { return 1 / x })}
		}
		if f.body(KindOf(k.Out[0].DType())) != nil {
			k.Map1(f, k.T(0))
			return
		}
	}
	k.Map2(powFn, k.T(0), WrapScalar(e).T)
}

var squareFn = Fn1{
	I64:  Each1(func(x int64) int64 { return x * x }),
	U64:  Each1(func(x uint64) uint64 { return x * x }),
	F32:  Each1(func(x float32) float32 { return x * x }),
	F64:  Each1(func(x float64) float64 { return x * x }),
	C64:  Each1(func(x complex64) complex64 { return x * x }),
	C128: Each1(func(x complex128) complex128 { return x * x }),
}

var lerpFn = Fn3{
	F32:  Each3(lerp[float32]),
	F64:  Each3(lerp[float64]),
	C64:  Each3(func(x, y, w complex64) complex64 { return x + w*(y-x) }),
	C128: Each3(func(x, y, w complex128) complex128 { return x + w*(y-x) }),
}

func lerp[T float32 | float64](x, y, w T) T {
	if w < 0.5 && w > -0.5 {
		return x + w*(y-x)
	}
	return y - (y-x)*(1-w)
}

// shapeOrdered is shapeSame for operators that need an order, which complex numbers have not.
func shapeOrdered(a *Args) []Meta {
	m := shapeSame(a)
	if m[0].DType.IsComplex() {
		Fail("%s not implemented for complex tensors.", a.Op.schema.Base)
	}
	return m
}

// ordered makes the forms of a comparison-based operator from its float64 form; integers and Bool are exact in it up to 2^53,
// beyond that they are compared as integers by minimum and maximum themselves.
func ordered(f func(x, y float64) float64) Fn2 {
	return Fn2{
		B:   Each2(func(x, y uint8) uint8 { return uint8(f(float64(x), float64(y))) }),
		I64: Each2(func(x, y int64) int64 { return pick(f(1, 2) == 2, max(x, y), min(x, y)) }),
		U64: Each2(func(x, y uint64) uint64 { return pick(f(1, 2) == 2, max(x, y), min(x, y)) }),
		F32: Each2(func(x, y float32) float32 { return float32(f(float64(x), float64(y))) }),
		F64: Each2(f),
	}
}

var fminFn = ordered(func(x, y float64) float64 {
	if y != y || x <= y {
		return x
	}
	return y
})

func pick[T any](c bool, a, b T) T {
	if c {
		return a
	}
	return b
}

// nanMax is the larger of two floats; NaN wins.
func nanMax[T float32 | float64](x, y T) T {
	if x > y || x != x {
		return x
	}
	return y
}

func nanMin[T float32 | float64](x, y T) T {
	if x < y || x != x {
		return x
	}
	return y
}

var maximumFn = Fn2{
	B:   Each2(func(x, y uint8) uint8 { return x | y }),
	I64: Each2(func(x, y int64) int64 { return max(x, y) }),
	U64: Each2(func(x, y uint64) uint64 { return max(x, y) }),
	F32: Each2(nanMax[float32]),
	F64: Each2(nanMax[float64]),
}

var minimumFn = Fn2{
	B:   Each2(func(x, y uint8) uint8 { return x & y }),
	I64: Each2(func(x, y int64) int64 { return min(x, y) }),
	U64: Each2(func(x, y uint64) uint64 { return min(x, y) }),
	F32: Each2(nanMin[float32]),
	F64: Each2(nanMin[float64]),
}

// floats makes a two-operand operator on floats from its float64 form.
func floats(f func(x, y float64) float64) Fn2 {
	return Fn2{F32: Each2(func(x, y float32) float32 { return float32(f(float64(x), float64(y))) }), F64: Each2(f)}
}

// roundingLog is the kernel of x*log(y), 0 where x is 0; 16-bit floats round the logarithm.
func roundingLog(log func(float64) float64) func(k *Kernel) {
	return func(k *Kernel) {
		round := k.rounder()
		k.Map2(floats(func(x, y float64) float64 {
			switch {
			case y != y:
				return y
			case x == 0:
				return 0
			}
			return x * round(log(y))
		}), k.T(0), k.T(1))
	}
}

// rounder rounds to the output's dtype if that is a 16-bit float: for operators that PyTorch computes step by step in it.
func (k *Kernel) rounder() func(float64) float64 {
	switch k.Out[0].DType() {
	case tensor.Float16:
		return func(v float64) float64 { return float64(tensor.F16ToF32(tensor.F32ToF16(float32(v)))) }
	case tensor.BFloat16:
		return func(v float64) float64 { return float64(tensor.BF16ToF32(tensor.F32ToBF16(float32(v)))) }
	}
	return func(v float64) float64 { return v }
}

func gcd(x, y int64) int64 {
	x, y = max(x, -x), max(y, -y)
	for y != 0 {
		x, y = y, x%y
	}
	return x
}

func shapeHeaviside(a *Args) []Meta {
	x, v := a.Tensor(0), a.Tensor(1)
	if x.DType.IsComplex() || v.DType.IsComplex() {
		Fail("heaviside is not yet implemented for complex tensors.")
	}
	Check(x.DType == v.DType, "heaviside is not yet implemented for tensors with different dtypes.")
	return shapeSame(a)
}

func heaviside[T int64 | float32 | float64](x, v T) T {
	switch {
	case x == 0:
		return v
	case x > 0:
		return 1
	}
	return 0
}

// nextafterKernel steps in the output's own dtype.
func nextafterKernel(k *Kernel) {
	dt := k.Out[0].DType()
	f := Fn2{
		F32: Each2(func(x, y float32) float32 { return math.Nextafter32(x, y) }),
		F64: Each2(math.Nextafter),
	}
	if dt.IsReduced() {
		f.F32 = Each2(func(x, y float32) float32 { return nextHalf(x, y, dt) })
	}
	k.Map2(f, k.T(0), k.T(1))
}

func nextHalf(x, y float32, dt tensor.DType) float32 {
	to, from := tensor.F32ToF16, tensor.F16ToF32
	if dt == tensor.BFloat16 {
		to, from = tensor.F32ToBF16, tensor.BF16ToF32
	}
	switch {
	case x != x || y != y:
		return float32(math.NaN())
	case x == y:
		return y
	case x == 0:
		return float32(math.Copysign(float64(from(1)), float64(y)))
	}
	b := to(x)
	if (x < y) == (x > 0) {
		return from(b + 1)
	}
	return from(b - 1)
}

// clampFn: NaN stays; a lower bound above the upper one gives the upper one.
func clampFn(lo Scalar, okLo bool, hi Scalar, okHi bool) Fn1 {
	li, ui := int64(math.MinInt64), int64(math.MaxInt64)
	lf, uf := math.Inf(-1), math.Inf(1)
	if okLo {
		li, lf = lo.Int64(), lo.Float64()
	}
	if okHi {
		ui, uf = hi.Int64(), hi.Float64()
	}
	return Fn1{
		B:   Each1(func(x uint8) uint8 { return uint8(min(max(int64(x), li), ui)) }),
		I64: Each1(func(x int64) int64 { return min(max(x, li), ui) }),
		U64: Each1(func(x uint64) uint64 { return uint64(min(max(int64(x), max(li, 0)), ui)) }),
		F32: clampF32(float32(lf), float32(uf)),
		F64: Each1(func(x float64) float64 { return clampFloat(x, lf, uf) }),
	}
}

func clampF32(lo, hi float32) func(d, x []float32) {
	return func(d, x []float32) { cpu.ClampF32(d, x, lo, hi) }
}

// clampFloat passes NaN; a NaN bound gives NaN.
func clampFloat(x, lo, hi float64) float64 {
	if lo != lo || hi != hi {
		return math.NaN()
	}
	if x < lo {
		x = lo
	}
	if x > hi {
		x = hi
	}
	return x
}

// divideMode forwards to div.Tensor_mode, whether the divisor is a tensor or a number.
func divideMode(b *Build, a *Args) []*Value {
	return One(b.Call("div.Tensor_mode", a.Tensor(0), a.V[1], Kw("rounding_mode", a.V[2])))
}

// viaTensor is the decomposition of a "Scalar" overload into the "Tensor" overload, with the number as a wrapped tensor.
func viaTensor(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value { return One(b.Call(name, a.Tensor(0), WrapScalar(a.Scalar(1)))) }
}

func viaTensorAlpha(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		return One(b.Call(name, a.Tensor(0), WrapScalar(a.Scalar(1)), Kw("alpha", a.Scalar(2))))
	}
}

// scalarFirst is the decomposition of an overload whose first operand is a number.
func scalarFirst(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value { return One(b.Call(name, WrapScalar(a.Scalar(0)), a.Tensor(1))) }
}

// rename2 forwards two tensors to another operator.
func rename2(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value { return One(b.Call(name, a.Tensor(0), a.Tensor(1))) }
}

// rename1 forwards one tensor to another operator.
func rename1(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value { return One(b.Call(name, a.Tensor(0))) }
}

// wide casts to float64 or complex128.
func wide(b *Build, v *Value) *Value {
	if v.DType.IsComplex() {
		return b.Call("_to_copy", v, Kw("dtype", tensor.Complex128))
	}
	return b.Call("_to_copy", v, Kw("dtype", tensor.Float64))
}

func negated(s Scalar) Scalar {
	switch s.Kind {
	case FloatScalar:
		return FloatS(-s.F)
	case ComplexScalar:
		return ComplexS(-s.C)
	}
	return Scalar{Kind: IntScalar, I: symbolic.N(-s.I.Int64())}
}

func shapeSub(a *Args) []Meta {
	m := shapeAlpha(a)
	if m[0].DType == tensor.Bool {
		FailAs("NotImplementedError", "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.")
	}
	if a.Tensor(0).DType == tensor.Bool || a.Tensor(1).DType == tensor.Bool {
		FailAs("NotImplementedError", "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.")
	}
	return m
}

// shapeAlpha checks alpha (argument 2) against the dtype of the result.
func shapeAlpha(a *Args) []Meta {
	m := shapeSame(a)
	alpha := a.Scalar(2)
	if alpha.Kind == FloatScalar && m[0].DType.IsIntegral() {
		Fail("For integral input tensors, argument alpha must not be a floating point number.")
	}
	if alpha.Kind == ComplexScalar && !m[0].DType.IsComplex() {
		Fail("For non-complex input tensors, argument alpha must not be a complex number.")
	}
	if alpha.Kind == BoolScalar && m[0].DType != tensor.Bool {
		Fail("Boolean alpha only supported for Boolean results.")
	}
	return m
}

// addScaled is Out = x + alpha*y.
func addScaled(k *Kernel, alpha Scalar, x, y *tensor.Tensor) {
	ai, af, ac := alpha.Int64(), alpha.Float64(), alpha.Complex()
	f := Fn2{
		B:    Each2(func(x, y uint8) uint8 { return x | y&b2u(alpha.Bool()) }),
		I64:  Each2(func(x, y int64) int64 { return x + ai*y }),
		U64:  Each2(func(x, y uint64) uint64 { return x + uint64(ai)*y }),
		F32:  Each2(func(x, y float32) float32 { return x + float32(af)*y }),
		F64:  Each2(func(x, y float64) float64 { return x + af*y }),
		C64:  Each2(func(x, y complex64) complex64 { return x + complex64(ac)*y }),
		C128: Each2(func(x, y complex128) complex128 { return x + ac*y }),
	}
	switch {
	case af == 1 && alpha.Kind != ComplexScalar:
		f.F32, f.F64 = cpu.AddF32, Each2(func(x, y float64) float64 { return x + y })
	case af == -1 && alpha.Kind != ComplexScalar:
		f.F32, f.F64 = cpu.SubF32, Each2(func(x, y float64) float64 { return x - y })
	}
	k.Map2(f, x, y)
}
