package aten

import (
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// Body is a pointwise operator on blocks of float32, with its numbers bound: what a planner runs block by block in the cache.
type Body struct {
	// Kind names the function: "add" of two operands, "add_c" of one and the number C, "erf" and so on.
	Kind string
	C    float32
	// Ins are the operands that Run reads, in order; numbers are none. Those that hold conditions are of dtype Bool: blocks of 0 and 1.
	Ins []*Value
	// Run computes dst from blocks of the operands, each as long as dst. dst may be one of them.
	Run func(dst []float32, in [][]float32)
	// Act is the same function as an activation; ActNone if it is none.
	Act cpu.Activation
}

// Body gives the operator's computation on float32 blocks for these arguments; nil if it has none. The caller sees to the dtypes:
// what Run computes is right if operands and result are float32, or are converted from and to 16-bit floats.
func (op *Op) Body(a *Args) *Body {
	if op.body == nil {
		return nil
	}
	return op.body(a)
}

// bodies has the built-in operators that can be fused. User-defined operators of the same names have none.
var bodies = map[string]func(a *Args) *Body{
	"aten.add.Tensor":            func(a *Args) *Body { return addBody(a.Tensor(0), a.Tensor(1), a.Scalar(2), 1) },
	"aten.sub.Tensor":            func(a *Args) *Body { return addBody(a.Tensor(0), a.Tensor(1), a.Scalar(2), -1) },
	"aten.rsub.Tensor":           func(a *Args) *Body { return addBody(a.Tensor(1), a.Tensor(0), a.Scalar(2), -1) },
	"aten.mul.Tensor":            func(a *Args) *Body { return mulBody(a.Tensor(0), a.Tensor(1)) },
	"aten.div.Tensor":            func(a *Args) *Body { return divBody(a.Tensor(0), a.Tensor(1)) },
	"aten.maximum.default":       func(a *Args) *Body { return body2("maximum", a, cpu.MaximumF32) },
	"aten.minimum.default":       func(a *Args) *Body { return body2("minimum", a, cpu.MinimumF32) },
	"aten.pow.Tensor_Scalar":     powBody,
	"aten.clamp.default":         clampBody,
	"aten.hardtanh.default":      clampBody,
	"aten.leaky_relu.default":    leakyBody,
	"aten.elu.default":           eluBody,
	"aten.gelu.default":          func(a *Args) *Body { return geluBody(a.Tensor(0), GELUFormOf(a)) },
	"aten.softplus.default":      softplusBody,
	"aten._prelu_kernel.default": func(a *Args) *Body { return body2("prelu", a, cpu.PReLUF32) },
	"aten.where.self":            whereBody,
	"aten.masked_fill.Scalar":    maskedFillBody,
	"aten.expm1.default":         actBody("expm1", cpu.ActNone, cpu.Expm1F32),
	"aten.log1p.default":         actBody("log1p", cpu.ActNone, cpu.Log1pF32),
	"aten.clone.default":         copyBody,
	"aten._to_copy.default":      copyBody,
	"aten.relu.default":          actBody("relu", cpu.ActReLU, cpu.ReLUF32),
	"aten.silu.default":          actBody("silu", cpu.ActSiLU, cpu.SiLUF32),
	"aten.mish.default":          actBody("mish", cpu.ActMish, cpu.MishF32),
	"aten.hardswish.default":     actBody("hardswish", cpu.ActHardSwish, cpu.HardSwishF32),
	"aten.hardsigmoid.default":   actBody("hardsigmoid", cpu.ActHardSigmoid, cpu.HardSigmoidF32),
	"aten.sigmoid.default":       actBody("sigmoid", cpu.ActSigmoid, cpu.SigmoidF32),
	"aten.tanh.default":          actBody("tanh", cpu.ActTanh, cpu.TanhF32),
	"aten.erf.default":           actBody("erf", cpu.ActNone, cpu.ErfF32),
	"aten.exp.default":           actBody("exp", cpu.ActNone, cpu.ExpF32),
	"aten.log.default":           actBody("log", cpu.ActNone, cpu.LogF32),
	"aten.sqrt.default":          actBody("sqrt", cpu.ActNone, cpu.SqrtF32),
	"aten.rsqrt.default":         actBody("rsqrt", cpu.ActNone, cpu.RsqrtF32),
	"aten.reciprocal.default":    actBody("reciprocal", cpu.ActNone, cpu.ReciprocalF32),
	"aten.neg.default":           actBody("neg", cpu.ActNone, cpu.NegF32),
	"aten.abs.default":           actBody("abs", cpu.ActNone, cpu.AbsF32),
	"aten.sin.default":           actBody("sin", cpu.ActNone, cpu.SinF32),
	"aten.cos.default":           actBody("cos", cpu.ActNone, cpu.CosF32),
	"aten.floor.default":         actBody("floor", cpu.ActNone, cpu.FloorF32),
	"aten.ceil.default":          actBody("ceil", cpu.ActNone, cpu.CeilF32),
	"aten.round.default":         actBody("round", cpu.ActNone, cpu.RoundF32),
	"aten.trunc.default":         actBody("trunc", cpu.ActNone, cpu.TruncF32),
}

func body1(kind string, x *Value, f func(d, x []float32)) *Body {
	return &Body{Kind: kind, Ins: One(x), Run: func(d []float32, in [][]float32) { f(d, in[0]) }}
}

func actBody(kind string, act cpu.ActKind, f func(d, x []float32)) func(a *Args) *Body {
	return func(a *Args) *Body {
		b := body1(kind, a.Tensor(0), f)
		b.Act.Kind = act
		return b
	}
}

func body2(kind string, a *Args, f func(d, x, y []float32)) *Body {
	return &Body{Kind: kind, Ins: []*Value{a.Tensor(0), a.Tensor(1)}, Run: func(d []float32, in [][]float32) { f(d, in[0], in[1]) }}
}

// constantOf is the number that v holds, if it is known and v is no more than a number beside x. Beside 16-bit floats it is rounded to
// their type, unless wide says that the operator keeps it in float32.
func constantOf(v, x *Value, wide bool) (c float32, ok bool) {
	if v.T == nil || v.Dim() != 0 || v.DType.IsComplex() || (x.Dim() == 0 && !v.Wrapped) {
		return 0, false
	}
	c = float32(v.T.Float(0))
	switch {
	case wide && x.Dim() > 0:
	case x.DType == tensor.BFloat16:
		c = tensor.BF16ToF32(tensor.F32ToBF16(c))
	case x.DType == tensor.Float16:
		c = tensor.F16ToF32(tensor.F32ToF16(c))
	}
	return c, true
}

func bodyC(kind string, x *Value, c float32, f func(d, x []float32, c float32)) *Body {
	b := body1(kind, x, func(d, x []float32) { f(d, x, c) })
	b.C = c
	return b
}

// addBody is x + sign*alpha*y.
func addBody(x, y *Value, alpha Scalar, sign float32) *Body {
	s := sign * float32(alpha.Float64())
	if c, ok := constantOf(y, x, false); ok {
		return bodyC("add_c", x, s*c, cpu.AddScalarF32)
	}
	if c, ok := constantOf(x, y, false); ok {
		switch s {
		case 1:
			return bodyC("add_c", y, c, cpu.AddScalarF32)
		case -1:
			return bodyC("rsub_c", y, c, cpu.RSubScalarF32)
		}
	}
	two := []*Value{x, y}
	switch s {
	case 1:
		return &Body{Kind: "add", Ins: two, Run: func(d []float32, in [][]float32) { cpu.AddF32(d, in[0], in[1]) }}
	case -1:
		return &Body{Kind: "sub", Ins: two, Run: func(d []float32, in [][]float32) { cpu.SubF32(d, in[0], in[1]) }}
	}
	return &Body{Kind: "add_scaled", C: s, Ins: two, Run: func(d []float32, in [][]float32) { cpu.AddScaledF32(d, in[0], in[1], s) }}
}

func mulBody(x, y *Value) *Body {
	if c, ok := constantOf(y, x, true); ok {
		return bodyC("mul_c", x, c, cpu.MulScalarF32)
	}
	if c, ok := constantOf(x, y, false); ok {
		return bodyC("mul_c", y, c, cpu.MulScalarF32)
	}
	return &Body{Kind: "mul", Ins: []*Value{x, y}, Run: func(d []float32, in [][]float32) { cpu.MulF32(d, in[0], in[1]) }}
}

func divBody(x, y *Value) *Body {
	if c, ok := constantOf(y, x, true); ok {
		return bodyC("div_c", x, c, cpu.DivScalarF32)
	}
	if c, ok := constantOf(x, y, false); ok {
		return bodyC("rdiv_c", y, c, cpu.RDivScalarF32)
	}
	return &Body{Kind: "div", Ins: []*Value{x, y}, Run: func(d []float32, in [][]float32) { cpu.DivF32(d, in[0], in[1]) }}
}

func powBody(a *Args) *Body {
	x := a.Tensor(0)
	switch a.Scalar(1).Float64() {
	case 2:
		return body1("square", x, cpu.SquareF32)
	case 3:
		return body1("cube", x, cpu.CubeF32)
	case 0.5:
		return body1("sqrt", x, cpu.SqrtF32)
	case -0.5:
		return body1("rsqrt", x, cpu.RsqrtF32)
	case -1:
		return body1("reciprocal", x, cpu.ReciprocalF32)
	}
	return nil
}

// clampBody serves clamp and hardtanh: argument 1 is the lower bound, 2 the upper one.
func clampBody(a *Args) *Body {
	lo, hasLo := a.OptScalar(1)
	hi, hasHi := a.OptScalar(2)
	x := a.Tensor(0)
	switch {
	case hasLo && hasHi:
		l, h := float32(lo.Float64()), float32(hi.Float64())
		b := body1("clamp", x, func(d, x []float32) { cpu.ClampF32(d, x, l, h) })
		b.Act = cpu.Activation{Kind: cpu.ActClamp, Lo: l, Hi: h}
		return b
	case hasLo:
		return bodyC("maximum_c", x, float32(lo.Float64()), cpu.MaximumScalarF32)
	case hasHi:
		return bodyC("minimum_c", x, float32(hi.Float64()), cpu.MinimumScalarF32)
	}
	return nil
}

func leakyBody(a *Args) *Body {
	b := bodyC("leaky_relu", a.Tensor(0), float32(a.Scalar(1).Float64()), cpu.LeakyReLUF32)
	b.Act = cpu.Activation{Kind: cpu.ActLeakyReLU, Lo: b.C}
	return b
}

func eluBody(a *Args) *Body {
	alpha, scale, in := float32(a.Scalar(1).Float64()), float32(a.Scalar(2).Float64()), float32(a.Scalar(3).Float64())
	b := body1("elu", a.Tensor(0), func(d, x []float32) { cpu.ELUF32(d, x, alpha, scale, in) })
	if scale == 1 && in == 1 {
		b.Act = cpu.Activation{Kind: cpu.ActELU, Lo: alpha}
	}
	return b
}

func softplusBody(a *Args) *Body {
	beta, threshold := float32(a.Scalar(1).Float64()), float32(a.Scalar(2).Float64())
	return body1("softplus", a.Tensor(0), func(d, x []float32) { cpu.SoftplusF32(d, x, beta, threshold) })
}

func whereBody(a *Args) *Body {
	c := a.Tensor(0)
	if c.DType != tensor.Bool {
		return nil
	}
	return &Body{Kind: "where", Ins: []*Value{c, inFloat32(a.Tensor(1)), inFloat32(a.Tensor(2))},
		Run: func(d []float32, in [][]float32) { cpu.WhereF32(d, in[0], in[1], in[2]) }}
}

// inFloat32 is a known number of another type as a float32 one; other values pass.
func inFloat32(v *Value) *Value {
	if v.T == nil || v.Dim() != 0 || v.DType == tensor.Float32 || v.DType.IsReduced() || v.DType.IsComplex() {
		return v
	}
	t := tensor.New(tensor.Float32)
	tensor.Data[float32](t)[0] = float32(v.T.Float(0))
	return FromTensor(t)
}

func maskedFillBody(a *Args) *Body {
	x, mask := a.Tensor(0), a.Tensor(1)
	if mask.DType != tensor.Bool || x.DType != tensor.Float32 {
		return nil
	}
	t := tensor.New(tensor.Float32)
	tensor.Data[float32](t)[0] = float32(a.Scalar(2).Float64())
	return &Body{Kind: "where", Ins: []*Value{mask, FromTensor(t), x}, Run: func(d []float32, in [][]float32) { cpu.WhereF32(d, in[0], in[1], in[2]) }}
}

// copyBody serves copies that change at most strides and the float type.
func copyBody(a *Args) *Body {
	if dt := a.Tensor(0).DType; dt != tensor.Float32 && !dt.IsReduced() {
		return nil
	}
	return body1("copy", a.Tensor(0), func(d, x []float32) {
		if len(d) > 0 && &d[0] != &x[0] {
			copy(d, x)
		}
	})
}
