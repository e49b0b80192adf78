package aten

import (
	"math"

	"github.com/pt2go/pt2/tensor"
)

// compareOps answer in Bool, and choose by it.
var compareOps = concat(
	comparison("eq", "__eq__", func(c int, nan bool) bool { return c == 0 && !nan }, Core),
	comparison("ne", "__ne__", func(c int, nan bool) bool { return c != 0 || nan }, Core),
	comparison("lt", "", func(c int, nan bool) bool { return c < 0 && !nan }, Core),
	comparison("le", "", func(c int, nan bool) bool { return c <= 0 && !nan }, Core),
	comparison("gt", "", func(c int, nan bool) bool { return c > 0 && !nan }, Core),
	comparison("ge", "", func(c int, nan bool) bool { return c >= 0 && !nan }, Core),
	[]Op{
		{Schema: "isnan(Tensor self) -> Tensor", Tags: Core | Pointwise, Shape: shapeBool, CPU: predicate(func(x float64) bool { return x != x })},
		{Schema: "isinf(Tensor self) -> Tensor", Tags: Core | Pointwise, Shape: shapeBool, CPU: predicate(func(x float64) bool { return math.IsInf(x, 0) })},
		{Schema: "isposinf(Tensor self) -> Tensor", Tags: Pointwise, Shape: shapeBool, CPU: predicate(func(x float64) bool { return math.IsInf(x, 1) })},
		{Schema: "isneginf(Tensor self) -> Tensor", Tags: Pointwise, Shape: shapeBool, CPU: predicate(func(x float64) bool { return math.IsInf(x, -1) })},
		{Schema: "isfinite(Tensor self) -> Tensor", Tags: Pointwise, Shape: shapeBool, CPU: func(k *Kernel) {
			if k.T(0).DType().IsComplex() {
				kind := KindOf(k.T(0).DType())
				Loop(k.Pool, []Operand{{T: k.Out[0], Kind: KBool}}, []Operand{{T: k.T(0), Kind: kind}}, func(o, in []Block) {
					finiteComplex(kind, As[uint8](o[0]), in[0])
				})
				return
			}
			predicate(func(x float64) bool { return !math.IsInf(x, 0) && x == x })(k)
		}},
		{Schema: "isreal(Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
			x := a.Tensor(0)
			if !x.DType.IsComplex() {
				return One(b.Call("ones_like", x, Kw("dtype", tensor.Bool)))
			}
			return One(b.Call("eq.Scalar", b.Call("imag", x), 0))
		}},
		{Schema: "signbit(Tensor self) -> Tensor", Tags: Pointwise, Shape: shapeBool, CPU: predicate(math.Signbit)},
		{Schema: "logical_not(Tensor self) -> Tensor", Tags: Core | Pointwise, Shape: shapeBool, CPU: func(k *Kernel) {
			Loop(k.Pool, []Operand{{T: k.Out[0], Kind: KBool}}, []Operand{{T: k.T(0), Kind: KBool}}, func(o, in []Block) {
				x := As[uint8](in[0])
				for i := range As[uint8](o[0]) {
					As[uint8](o[0])[i] = 1 - x[i]
				}
			})
		}},
		{Schema: "logical_and(Tensor self, Tensor other) -> Tensor", Tags: Core | Pointwise, Shape: shapeBool, CPU: logical(func(x, y uint8) uint8 { return x & y })},
		{Schema: "logical_or(Tensor self, Tensor other) -> Tensor", Tags: Core | Pointwise, Shape: shapeBool, CPU: logical(func(x, y uint8) uint8 { return x | y })},
		{Schema: "logical_xor(Tensor self, Tensor other) -> Tensor", Tags: Core | Pointwise, Shape: shapeBool, CPU: logical(func(x, y uint8) uint8 { return x ^ y })},
		{
			Schema: "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
			Tags:   Core | Pointwise,
			Shape: func(a *Args) []Meta {
				c, x, y := a.Tensor(0), a.Tensor(1), a.Tensor(2)
				if c.DType != tensor.Bool && c.DType != tensor.Uint8 {
					Fail("where expected condition to be a boolean tensor, but got a tensor with dtype %s", c.DType.CPPName())
				}
				return []Meta{PointwiseMeta(ResultType(x, y), c, x, y)}
			},
			CPU: whereKernel,
		},
		{Schema: "where(Tensor condition) -> Tensor[]", Decomp: func(b *Build, a *Args) []*Value {
			return b.CallN("unbind.int", b.Call("nonzero", a.Tensor(0)), 1)
		}},
		{Schema: "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("where.self", a.Tensor(0), a.Tensor(1), WrapScalar(a.Scalar(2))))
		}},
		{Schema: "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("where.self", a.Tensor(0), WrapScalar(a.Scalar(1)), a.Tensor(2)))
		}},
		{Schema: "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("where.self", a.Tensor(0), WrapScalar(a.Scalar(1)), WrapScalar(a.Scalar(2))))
		}},
		{
			Schema: "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value {
				x, y := a.Tensor(0), a.Tensor(1)
				Check(x.DType == y.DType, "%s did not match %s", x.DType.CPPName(), y.DType.CPPName())
				Check(a.Float(2) >= 0, "rtol must be greater than or equal to zero, but got %v", a.Float(2))
				Check(a.Float(3) >= 0, "atol must be greater than or equal to zero, but got %v", a.Float(3))
				c := b.Call("eq.Tensor", x, y)
				if a.Bool(4) && !x.DType.IsIntegral() {
					c = b.Call("logical_or", c, b.Call("logical_and", b.Call("isnan", x), b.Call("isnan", y)))
				}
				if x.DType == tensor.Bool {
					x = b.Call("_to_copy", x, Kw("dtype", tensor.Float32))
				}
				if y.DType.IsIntegral() {
					y = b.Call("_to_copy", y, Kw("dtype", tensor.Float32))
				}
				allowed := b.Call("add.Tensor", b.Call("mul.Tensor", b.Call("abs", y), a.Float(2)), a.Float(3))
				diff := b.Call("abs", b.Call("sub.Tensor", x, y))
				near := b.Call("logical_and", b.Call("isfinite", diff), b.Call("le.Tensor", diff, allowed))
				return One(b.Call("logical_or", c, near))
			},
		},
		{Schema: "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool", Tags: DataDependent, Result: func(a *Args) any {
			b := NewBuildWith(&Eager{})
			v := b.Call("all", b.Call("isclose", a.V...))
			return itemOf(v.T).Bool()
		}},
	},
)

// concat joins operator tables.
func concat(tables ...[]Op) []Op {
	var out []Op
	for _, t := range tables {
		out = append(out, t...)
	}
	return out
}

// comparison makes the Tensor and Scalar overloads of one relation, and its long name where PyTorch has one.
func comparison(name, _ string, f func(c int, nan bool) bool, tags Tag) []Op {
	long := map[string]string{"eq": "", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}[name]
	ops := []Op{
		{Schema: name + ".Tensor(Tensor self, Tensor other) -> Tensor", Tags: tags | Pointwise, Shape: shapeCompare(name), CPU: func(k *Kernel) { compareKernel(k, f) }},
		{Schema: name + ".Scalar(Tensor self, Scalar other) -> Tensor", Tags: tags | Pointwise, Decomp: viaTensor(name + ".Tensor")},
	}
	if long != "" {
		ops = append(ops, Op{Schema: long + ".Tensor(Tensor self, Tensor other) -> Tensor", Decomp: rename2(name + ".Tensor")},
			Op{Schema: long + ".Scalar(Tensor self, Scalar other) -> Tensor", Decomp: viaTensor(name + ".Tensor")})
	}
	return ops
}

func shapeCompare(name string) func(a *Args) []Meta {
	return func(a *Args) []Meta {
		x, y := a.Tensor(0), a.Tensor(1)
		if dt := ResultType(x, y); dt.IsComplex() && name != "eq" && name != "ne" {
			FailAs("NotImplementedError", "\"%s\" not implemented for '%s'", name, dt.CPPName())
		}
		return shapeBool(a)
	}
}

func compareKernel(k *Kernel, f func(c int, nan bool) bool) {
	x, y := k.Tensor(0), k.Tensor(1)
	dt := ResultType(x, y)
	kind := KindOf(dt)
	op := func(v *Value) Operand { return Operand{T: v.T, Kind: kind, Via: dt} }
	lt, eq, gt, nan := f(-1, false), f(0, false), f(1, false), f(1, true)
	Loop(k.Pool, []Operand{{T: k.Out[0], Kind: KBool}}, []Operand{op(x), op(y)}, func(o, in []Block) {
		d := As[uint8](o[0])
		switch kind {
		case KBool:
			cmpBlock(d, As[uint8](in[0]), As[uint8](in[1]), lt, eq, gt, nan)
		case KI64:
			cmpBlock(d, As[int64](in[0]), As[int64](in[1]), lt, eq, gt, nan)
		case KU64:
			cmpBlock(d, As[uint64](in[0]), As[uint64](in[1]), lt, eq, gt, nan)
		case KF32:
			cmpBlock(d, As[float32](in[0]), As[float32](in[1]), lt, eq, gt, nan)
		case KF64:
			cmpBlock(d, As[float64](in[0]), As[float64](in[1]), lt, eq, gt, nan)
		case KC64:
			a, b := As[complex64](in[0]), As[complex64](in[1])
			for i := range d {
				d[i] = b2u((a[i] == b[i]) == eq)
			}
		default:
			a, b := As[complex128](in[0]), As[complex128](in[1])
			for i := range d {
				d[i] = b2u((a[i] == b[i]) == eq)
			}
		}
	})
}

func cmpBlock[T uint8 | int64 | uint64 | float32 | float64](d []uint8, a, b []T, lt, eq, gt, nan bool) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		switch x, y := a[i], b[i]; {
		case x < y:
			d[i] = b2u(lt)
		case x > y:
			d[i] = b2u(gt)
		case x == y:
			d[i] = b2u(eq)
		default:
			d[i] = b2u(nan)
		}
	}
}

// predicate is the kernel of a test on one number; a complex passes if either part does.
func predicate(f func(x float64) bool) func(k *Kernel) {
	return func(k *Kernel) {
		x := k.T(0)
		kind := KF64
		if x.DType().IsComplex() {
			kind = KC128
		}
		Loop(k.Pool, []Operand{{T: k.Out[0], Kind: KBool}}, []Operand{{T: x, Kind: kind}}, func(o, in []Block) {
			d := As[uint8](o[0])
			if kind == KC128 {
				for i, z := range As[complex128](in[0]) {
					d[i] = b2u(f(real(z)) || f(imag(z)))
				}
				return
			}
			for i, v := range As[float64](in[0]) {
				d[i] = b2u(f(v))
			}
		})
	}
}

func finiteComplex(kind Kind, d []uint8, in Block) {
	ok := func(f float64) bool { return f-f == 0 }
	if kind == KC64 {
		for i, z := range As[complex64](in) {
			d[i] = b2u(ok(float64(real(z))) && ok(float64(imag(z))))
		}
		return
	}
	for i, z := range As[complex128](in) {
		d[i] = b2u(ok(real(z)) && ok(imag(z)))
	}
}

func logical(f func(x, y uint8) uint8) func(k *Kernel) {
	return func(k *Kernel) {
		Loop(k.Pool, []Operand{{T: k.Out[0], Kind: KBool}}, []Operand{{T: k.T(0), Kind: KBool}, {T: k.T(1), Kind: KBool}}, func(o, in []Block) {
			Each2(f)(As[uint8](o[0]), As[uint8](in[0]), As[uint8](in[1]))
		})
	}
}

func whereKernel(k *Kernel) {
	dt := k.Out[0].DType()
	kind := KindOf(dt)
	ins := []Operand{{T: k.T(0), Kind: KBool}, {T: k.T(1), Kind: kind, Via: dt}, {T: k.T(2), Kind: kind, Via: dt}}
	Loop(k.Pool, []Operand{{T: k.Out[0], Kind: kind}}, ins, func(o, in []Block) {
		c := As[uint8](in[0])
		switch kind {
		case KBool:
			choose(As[uint8](o[0]), c, As[uint8](in[1]), As[uint8](in[2]))
		case KI64:
			choose(As[int64](o[0]), c, As[int64](in[1]), As[int64](in[2]))
		case KU64:
			choose(As[uint64](o[0]), c, As[uint64](in[1]), As[uint64](in[2]))
		case KF32:
			choose(As[float32](o[0]), c, As[float32](in[1]), As[float32](in[2]))
		case KF64:
			choose(As[float64](o[0]), c, As[float64](in[1]), As[float64](in[2]))
		case KC64:
			choose(As[complex64](o[0]), c, As[complex64](in[1]), As[complex64](in[2]))
		default:
			choose(As[complex128](o[0]), c, As[complex128](in[1]), As[complex128](in[2]))
		}
	})
}

func choose[T any](d []T, c []uint8, x, y []T) {
	c, x, y = c[:len(d)], x[:len(d)], y[:len(d)]
	for i := range d {
		if c[i] != 0 {
			d[i] = x[i]
		} else {
			d[i] = y[i]
		}
	}
}
