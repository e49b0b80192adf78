package aten

import (
	"github.com/pt2go/pt2/tensor"
)

// arithmeticOps are the operators +, -, *, / and their kin, with an alpha where PyTorch has one.
var arithmeticOps = []Op{
	{
		Schema: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
		Tags:   Core | Pointwise,
		Shape:  shapeAlpha,
		CPU:    func(k *Kernel) { addScaled(k, k.Scalar(2)) },
	},
	{
		Schema: "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
		Tags:   Core | Pointwise,
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("add.Tensor", a.Tensor(0), a.Scalar(1), Kw("alpha", a.Scalar(2))))
		},
	},
	{
		Schema: "mul.Tensor(Tensor self, Tensor other) -> Tensor",
		Tags:   Core | Pointwise,
		Shape:  shapeSame,
		CPU: map2(Fn2{
			B:    Each2(func(x, y uint8) uint8 { return x & y }),
			I64:  Each2(func(x, y int64) int64 { return x * y }),
			U64:  Each2(func(x, y uint64) uint64 { return x * y }),
			F32:  Each2(func(x, y float32) float32 { return x * y }),
			F64:  Each2(func(x, y float64) float64 { return x * y }),
			C64:  Each2(func(x, y complex64) complex64 { return x * y }),
			C128: Each2(func(x, y complex128) complex128 { return x * y }),
		}),
	},
	{
		Schema: "mul.Scalar(Tensor self, Scalar other) -> Tensor",
		Tags:   Core | Pointwise,
		Decomp: viaTensor("mul.Tensor"),
	},
}

// viaTensor is the decomposition of a "Scalar" overload into the "Tensor" overload, with the number as a wrapped tensor.
func viaTensor(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value { return One(b.Call(name, a.Tensor(0), a.Scalar(1))) }
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

// addScaled is Out = arg0 + alpha*arg1.
func addScaled(k *Kernel, alpha Scalar) {
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
	if af == 1 && alpha.Kind != ComplexScalar {
		f.F32 = Each2(func(x, y float32) float32 { return x + y })
		f.F64 = Each2(func(x, y float64) float64 { return x + y })
	}
	k.Map2(f, k.T(0), k.T(1))
}
