package passes

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
)

// pointwiseFormulas compute element by element.
var pointwiseFormulas = map[string]Decomp{
	"aten.silu.default": wide(func(b *aten.Build, a *aten.Args) *aten.Value {
		x := a.Tensor(0)
		return b.Call("mul.Tensor", x, b.Call("sigmoid", x))
	}),
	"aten.square.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("pow.Tensor_Scalar", a.Tensor(0), 2))
	},
	"aten.dropout.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		p := a.Float(1)
		if !a.Bool(2) || p == 0 {
			return one(a.Tensor(0))
		}
		return one(b.CallN("native_dropout", a.Tensor(0), p, true)[0])
	},
	"aten.floor_divide.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("div.Tensor_mode", a.V[0], a.V[1], aten.Kw("rounding_mode", "floor")))
	},
	"aten.true_divide.Tensor": as("div.Tensor"),
	"aten.clamp_min.default":  func(b *aten.Build, a *aten.Args) []*aten.Value { return one(b.Call("clamp", a.V[0], a.V[1])) },
	"aten.clamp_max.default":  func(b *aten.Build, a *aten.Args) []*aten.Value { return one(b.Call("clamp", a.V[0], nil, a.V[1])) },
	"aten.clamp_min.Tensor":   func(b *aten.Build, a *aten.Args) []*aten.Value { return one(b.Call("clamp.Tensor", a.V[0], a.V[1])) },
	"aten.clamp_max.Tensor": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("clamp.Tensor", a.V[0], nil, a.V[1]))
	},
	"aten.max.other":      as("maximum"),
	"aten.min.other":      as("minimum"),
	"aten.__and__.Tensor": as("bitwise_and.Tensor"),
	"aten.__and__.Scalar": as("bitwise_and.Scalar"),
	"aten.__or__.Tensor":  as("bitwise_or.Tensor"),
	"aten.__or__.Scalar":  as("bitwise_or.Scalar"),
	"aten.__xor__.Tensor": as("bitwise_xor.Tensor"),
	"aten.__xor__.Scalar": as("bitwise_xor.Scalar"),
	"aten.rsub.Tensor": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("sub.Tensor", a.V[1], a.V[0], aten.Kw("alpha", a.V[2])))
	},
	"aten.mse_loss.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		d := b.Call("sub.Tensor", a.V[0], a.V[1])
		return one(reduced(b, b.Call("pow.Tensor_Scalar", d, 2), a.I64(2)))
	},
	"aten.l1_loss.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(reduced(b, b.Call("abs", b.Call("sub.Tensor", a.V[0], a.V[1])), a.I64(2)))
	},
	"aten.addcmul.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		p := b.Call("mul.Tensor", scaled(b, a.Tensor(1), a.Scalar(3)), a.V[2])
		return one(b.Call("add.Tensor", a.V[0], p))
	},
	"aten.glu.default": wide(func(b *aten.Build, a *aten.Args) *aten.Value {
		x := a.Tensor(0)
		d := aten.WrapDim(a.I64(1), x.Dim())
		half := x.Sizes[d].DivN(2)
		l, r := b.Call("slice.Tensor", x, d, 0, half), b.Call("slice.Tensor", x, d, half, x.Sizes[d])
		return b.Call("mul.Tensor", l, b.Call("sigmoid", r))
	}),
	"aten.masked_fill.Scalar": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		fill := b.Call("scalar_tensor", a.Scalar(2), aten.Kw("dtype", x.DType))
		return one(b.Call("where.self", a.V[1], fill, x))
	},
	"aten.masked_fill.Tensor": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		return one(b.Call("where.self", a.V[1], cast(b, a.Tensor(2), x.DType), x))
	},
}

// reduced applies a loss's reduction: 0 none, 1 mean, 2 sum.
func reduced(b *aten.Build, x *aten.Value, reduction int64) *aten.Value {
	switch reduction {
	case 1:
		return b.Call("mean", x)
	case 2:
		return b.Call("sum.dim_IntList", x, []int64{})
	}
	return x
}

// scaled is x times a factor, x itself for 1.
func scaled(b *aten.Build, x *aten.Value, s aten.Scalar) *aten.Value {
	if s.Kind <= aten.FloatScalar && s.Float64() == 1 && (s.Kind != aten.FloatScalar || x.DType.IsFloat() || x.DType.IsComplex()) {
		return x
	}
	if x.DType == tensor.Invalid {
		return x
	}
	return b.Call("mul.Tensor", x, s)
}
