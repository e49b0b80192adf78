package aten

import "github.com/pt2go/pt2/symbolic"

// viewOps share their argument's storage.
var viewOps = []Op{
	{
		Schema: "alias(Tensor(a) self) -> Tensor(a)",
		Tags:   Core | LazyBits,
		Shape:  func(a *Args) []Meta { return []Meta{a.Tensor(0).AliasMeta()} },
	},
	{
		Schema: "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
		Tags:   Core | LazyBits,
		Shape: func(a *Args) []Meta {
			x, dims := a.Tensor(0), a.I64s(1)
			if len(dims) != x.Dim() {
				Fail("permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = %d is not equal to len(dims) = %d", x.Dim(), len(dims))
			}
			sizes, strides := make([]symbolic.Int, len(dims)), make([]symbolic.Int, len(dims))
			for i, d := range WrapDims(dims, x.Dim()) {
				sizes[i], strides[i] = x.Sizes[d], x.Strides[d]
			}
			return []Meta{x.ViewMeta(sizes, strides, x.Offset)}
		},
	},
}
