package passes

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
)

// indexFormulas gather and scatter.
var indexFormulas = map[string]Decomp{
	"aten.index_copy.default": atIndex(func(b *aten.Build, a *aten.Args, place []*aten.Value) *aten.Value {
		return b.Call("index_put", a.V[0], place, a.V[3])
	}),
	"aten.index_add.default": atIndex(func(b *aten.Build, a *aten.Args, place []*aten.Value) *aten.Value {
		return b.Call("index_put", a.V[0], place, scaled(b, a.Tensor(3), a.Scalar(4)), true)
	}),
	"aten.index_fill.int_Scalar": atIndex(func(b *aten.Build, a *aten.Args, place []*aten.Value) *aten.Value {
		x, index := a.Tensor(0), a.Tensor(2)
		shape := append([]symbolic.Int(nil), x.Sizes...)
		shape[len(place)-1] = index.Numel()
		fill := b.Call("scalar_tensor", a.Scalar(3), aten.Kw("dtype", x.DType))
		return b.Call("index_put", x, place, b.Call("expand", fill, shape))
	}),
}

// atIndex is a formula over index_put for an operator (self, dim, index, ...), whose values have the index along dim. It serves
// dimension 0 and those behind it, with values in place.
func atIndex(f func(b *aten.Build, a *aten.Args, place []*aten.Value) *aten.Value) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		if x.Dim() == 0 {
			v := append([]any(nil), a.V...)
			v[0] = b.Call("unsqueeze", x, 0)
			y := f(b, &aten.Args{Op: a.Op, V: v}, []*aten.Value{a.Tensor(2)})
			return one(b.Call("squeeze.dims", y, []int64{0}))
		}
		place := make([]*aten.Value, aten.WrapDim(a.I64(1), x.Dim())+1)
		place[len(place)-1] = a.Tensor(2)
		return one(f(b, a, place))
	}
}
