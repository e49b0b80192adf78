package aten

import "github.com/pt2go/pt2/tensor"

// bitwiseOps work on integers and Bool.
var bitwiseOps = concat(
	bitwise("and", "__and__", func(x, y int64) int64 { return x & y }),
	bitwise("or", "__or__", func(x, y int64) int64 { return x | y }),
	bitwise("xor", "__xor__", func(x, y int64) int64 { return x ^ y }),
	shifts("left", "__lshift__", func(x, y int64, bits int64) int64 {
		if y < 0 || y >= bits {
			return 0
		}
		return x << y
	}),
	shifts("right", "__rshift__", func(x, y int64, bits int64) int64 {
		if y < 0 || y >= bits {
			return x >> 63
		}
		return x >> y
	}),
	[]Op{{Schema: "bitwise_not(Tensor self) -> Tensor", Tags: Core | Pointwise, Shape: shapeIntegral, CPU: map1(Fn1{
		B:   Each1(func(x uint8) uint8 { return 1 - x }),
		I64: Each1(func(x int64) int64 { return ^x }),
		U64: Each1(func(x uint64) uint64 { return ^x }),
	})}},
)

func shapeIntegral(a *Args) []Meta {
	m := shapeSame(a)
	if !m[0].DType.IsIntegral() {
		if n := a.Op.schema.Base; kernelNames[n] == "" {
			FailAs("NotImplementedError", "\"%s_cpu\" not implemented for '%s'", n, m[0].DType.CPPName())
		}
		failDType(a.Op, m[0].DType)
	}
	return m
}

func bitwise(name, dunder string, f func(x, y int64) int64) []Op {
	fn := Fn2{
		B:   Each2(func(x, y uint8) uint8 { return uint8(f(int64(x), int64(y))) }),
		I64: Each2(f),
		U64: Each2(func(x, y uint64) uint64 { return uint64(f(int64(x), int64(y))) }),
	}
	t := "bitwise_" + name + ".Tensor"
	return []Op{
		{Schema: t + "(Tensor self, Tensor other) -> Tensor", Tags: Core | Pointwise, Shape: shapeIntegral, CPU: map2(fn)},
		{Schema: "bitwise_" + name + ".Scalar(Tensor self, Scalar other) -> Tensor", Tags: Core | Pointwise, Decomp: viaTensor(t)},
		{Schema: "bitwise_" + name + ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor", Tags: Pointwise, Decomp: scalarFirst(t)},
		{Schema: dunder + ".Tensor(Tensor self, Tensor other) -> Tensor", Decomp: rename2(t)},
		{Schema: dunder + ".Scalar(Tensor self, Scalar other) -> Tensor", Decomp: viaTensor(t)},
	}
}

func shifts(name, dunder string, f func(x, y, bits int64) int64) []Op {
	cpu := func(k *Kernel) {
		bits := int64(k.Out[0].DType().Size()) * 8
		if k.Out[0].DType() == tensor.Uint8 {
			bits = 8
		}
		k.Map2(Fn2{I64: Each2(func(x, y int64) int64 { return f(x, y, bits) })}, k.T(0), k.T(1))
	}
	t := "bitwise_" + name + "_shift.Tensor"
	return []Op{
		{Schema: t + "(Tensor self, Tensor other) -> Tensor", Tags: Pointwise, Shape: shapeIntegral, CPU: cpu},
		{Schema: "bitwise_" + name + "_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", Tags: Pointwise, Decomp: viaTensor(t)},
		{Schema: "bitwise_" + name + "_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", Tags: Pointwise, Decomp: scalarFirst(t)},
		{Schema: dunder + ".Tensor(Tensor self, Tensor other) -> Tensor", Decomp: rename2(t)},
		{Schema: dunder + ".Scalar(Tensor self, Scalar other) -> Tensor", Decomp: viaTensor(t)},
	}
}
