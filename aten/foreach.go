package aten

import (
	"slices"
	"strings"

	"github.com/pt2go/pt2/tensor"
)

// foreachOps apply an operator to each tensor of a list. They derive from the operator that is named without the prefix.
var foreachOps = concat(
	foreachUnary("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma", "log", "log10",
		"log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
	foreachAlpha("add"), foreachAlpha("sub"),
	foreachBinary("mul", "other", "scalar", "scalars", "mul.Tensor"), foreachBinary("div", "other", "scalar", "scalars", "div.Tensor"),
	foreachBinary("maximum", "other", "scalar", "scalars", "maximum"), foreachBinary("minimum", "other", "scalar", "scalars", "minimum"),
	foreachBinary("clamp_min", "other", "scalar", "scalars", "maximum"), foreachBinary("clamp_max", "other", "scalar", "scalars", "minimum"),
	foreachBinary("pow", "exponent", "exponent", "exponent", "pow.Tensor_Tensor"),
	foreachOp("add.Tensor(Tensor[] self, Tensor other, *, Scalar alpha=1)", func(b *Build, a *Args, i int) *Value {
		return b.Call("add.Tensor", a.Tensors(0)[i], a.Tensor(1), Kw("alpha", a.V[2]))
	}),
	foreachOp("mul.Tensor(Tensor[] self, Tensor other)", func(b *Build, a *Args, i int) *Value { return b.Call("mul.Tensor", a.Tensors(0)[i], a.Tensor(1)) }),
	foreachOp("div.Tensor(Tensor[] self, Tensor other)", func(b *Build, a *Args, i int) *Value { return b.Call("div.Tensor", a.Tensors(0)[i], a.Tensor(1)) }),
	foreachAddc("addcmul"), foreachAddc("addcdiv"),
	foreachOp("lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights)", func(b *Build, a *Args, i int) *Value {
		return b.Call("lerp.Tensor", a.Tensors(0)[i], a.Tensors(1)[i], a.Tensors(2)[i])
	}),
	foreachOp("lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight)", func(b *Build, a *Args, i int) *Value {
		return b.Call("lerp.Scalar", a.Tensors(0)[i], a.Tensors(1)[i], a.V[2])
	}),
	foreachOp("lerp.ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight)", func(b *Build, a *Args, i int) *Value {
		return b.Call("lerp.Scalar", a.Tensors(0)[i], a.Tensors(1)[i], foreachScalar(a, 2, i))
	}),
	foreachOp("copy(Tensor[] self, Tensor[] src, bool non_blocking=False)", func(b *Build, a *Args, i int) *Value {
		return b.Call("copy", a.Tensors(0)[i], a.Tensors(1)[i])
	}),
	foreachOp("zero(Tensor[] self)", func(b *Build, a *Args, i int) *Value { return b.Call("zeros_like", a.Tensors(0)[i]) }),
	foreachOnly("clone(Tensor[] self, *, MemoryFormat? memory_format=None)", func(b *Build, a *Args, i int) *Value {
		return b.Call("clone", a.Tensors(0)[i], Kw("memory_format", a.V[1]))
	}),
	foreachOnly("max(Tensor[] self)", func(b *Build, a *Args, i int) *Value { return b.Call("max", a.Tensors(0)[i]) }),
	foreachOnly("mm(Tensor[] self, Tensor[] mat2)", func(b *Build, a *Args, i int) *Value { return b.Call("mm", a.Tensors(0)[i], a.Tensors(1)[i]) }),
	foreachOnly("norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None)", func(b *Build, a *Args, i int) *Value {
		return b.Call("linalg_vector_norm", a.Tensors(0)[i], a.V[1], nil, false, Kw("dtype", a.V[2]))
	}),
	foreachOnly("powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None)", func(b *Build, a *Args, i int) *Value {
		x := b.Call("abs", a.Tensors(0)[i])
		return b.Call("sum", b.Call("pow.Tensor_Scalar", x, a.V[1]), Kw("dtype", a.V[2]))
	}),
	[]Op{{Schema: "_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]", Decomp: func(b *Build, a *Args) []*Value {
		out := make([]*Value, len(a.Tensors(1)))
		for i, e := range a.Tensors(1) {
			out[i] = b.Call("pow.Scalar", a.V[0], e)
		}
		return out
	}}},
)

// foreachFn computes the result for the list's tensor i.
type foreachFn func(b *Build, a *Args, i int) *Value

// foreachOnly is the entry of one _foreach operator that has no in-place form.
func foreachOnly(head string, f foreachFn) []Op {
	returns := " -> Tensor[]"
	if strings.HasPrefix(head, "copy(") || strings.HasPrefix(head, "zero(") {
		returns += " self_out"
	}
	return []Op{{Schema: "_foreach_" + head + returns, Decomp: func(b *Build, a *Args) []*Value { return foreachAll(b, a, f) }}}
}

// foreachOp is a _foreach operator, with its in-place form.
func foreachOp(head string, f foreachFn) []Op {
	end := strings.IndexAny(head, ".(")
	inplace := "_foreach_" + head[:end] + "_" + strings.Replace(head[end:], "(Tensor[] self", "(Tensor(a!)[] self", 1) + " -> ()"
	return append(foreachOnly(head, f), Op{Schema: inplace, Decomp: func(b *Build, a *Args) []*Value {
		for i, v := range foreachAll(b, a, f) {
			self := a.Tensors(0)[i]
			checkInPlace(self, &v.Meta)
			b.CallN("copy_", self, v)
		}
		return nil
	}})
}

// foreachAll checks the lengths of the lists and computes each result.
func foreachAll(b *Build, a *Args, f foreachFn) []*Value {
	self := a.Tensors(0)
	Check(len(self) > 0, "Tensor list must have at least one tensor.")
	for _, x := range a.V[1:] {
		switch x := x.(type) {
		case []*Value:
			Check(len(x) == len(self), "Tensor lists must have the same number of tensors, got %d and %d", len(self), len(x))
		case []Scalar:
			Check(len(x) == len(self), "Tensor list must have same number of elements as scalar list, got %d and %d", len(self), len(x))
		}
	}
	out := make([]*Value, len(self))
	for i := range self {
		out[i] = f(b, a, i)
	}
	return out
}

// foreachScalar is number i of a Scalar[] argument.
func foreachScalar(a *Args, arg, i int) Scalar { return a.V[arg].([]Scalar)[i] }

func foreachUnary(names ...string) []Op {
	var out []Op
	for _, n := range names {
		out = append(out, foreachOp(n+"(Tensor[] self)", func(b *Build, a *Args, i int) *Value { return b.Call(n, a.Tensors(0)[i]) })...)
	}
	return out
}

// foreachBinary makes the List, Scalar and ScalarList overloads of an operator over a second operand.
func foreachBinary(name, list, scalar, scalars, op string) []Op {
	return slices.Concat(
		foreachOp(name+".List(Tensor[] self, Tensor[] "+list+")", func(b *Build, a *Args, i int) *Value { return b.Call(op, a.Tensors(0)[i], a.Tensors(1)[i]) }),
		foreachScalars(name, scalar, scalars, op),
	)
}

func foreachScalars(name, scalar, scalars, op string) []Op {
	return slices.Concat(
		foreachOp(name+".Scalar(Tensor[] self, Scalar "+scalar+")", func(b *Build, a *Args, i int) *Value { return b.Call(op, a.Tensors(0)[i], WrapScalar(a.Scalar(1))) }),
		foreachOp(name+".ScalarList(Tensor[] self, Scalar[] "+scalars+")", func(b *Build, a *Args, i int) *Value {
			return b.Call(op, a.Tensors(0)[i], WrapScalar(foreachScalar(a, 1, i)))
		}),
	)
}

// foreachAlpha is foreachBinary for an operator whose list overload takes an alpha.
func foreachAlpha(name string) []Op {
	op := name + ".Tensor"
	return slices.Concat(
		foreachOp(name+".List(Tensor[] self, Tensor[] other, *, Scalar alpha=1)", func(b *Build, a *Args, i int) *Value {
			return b.Call(op, a.Tensors(0)[i], a.Tensors(1)[i], Kw("alpha", a.V[2]))
		}),
		foreachScalars(name, "scalar", "scalars", op),
	)
}

func foreachAddc(name string) []Op {
	call := func(b *Build, a *Args, i int, s Scalar) *Value {
		return b.Call(name, a.Tensors(0)[i], a.Tensors(1)[i], a.Tensors(2)[i], Kw("value", s))
	}
	head := "(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, "
	return slices.Concat(
		foreachOp(name+".Scalar"+head+"Scalar value=1)", func(b *Build, a *Args, i int) *Value { return call(b, a, i, a.Scalar(3)) }),
		foreachOp(name+".ScalarList"+head+"Scalar[] scalars)", func(b *Build, a *Args, i int) *Value { return call(b, a, i, foreachScalar(a, 3, i)) }),
		foreachOp(name+".Tensor"+head+"Tensor scalars)", func(b *Build, a *Args, i int) *Value {
			n := a.Tensor(3)
			Check(n.Dim() == 1 && n.Sizes[0].Int64() == int64(len(a.Tensors(0))), "Expected scalars to be a 1-D tensor with as many numbers as there are tensors, got sizes %s", sizesText(n.Sizes))
			f := b.Call("select.int", n, 0, i)
			unit := call(b, &Args{V: []any{zerosFor(b, a.Tensors(0)), a.V[1], a.V[2]}}, i, IntS(1))
			return b.Call("add.Tensor", a.Tensors(0)[i], b.Call("mul.Tensor", unit, b.Call("_to_copy", f, Kw("dtype", foreachNumberType(unit.DType)))))
		}),
	)
}

func zerosFor(b *Build, vs []*Value) []*Value {
	out := make([]*Value, len(vs))
	for i, v := range vs {
		out[i] = b.Call("zeros_like", v)
	}
	return out
}

// foreachNumberType is the dtype in which a number takes part beside a tensor of dtype dt.
func foreachNumberType(dt tensor.DType) tensor.DType {
	if dt.IsReduced() {
		return tensor.Float32
	}
	return dt
}
