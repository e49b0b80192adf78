package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// viewBackwardOps put gradients back to where views, paddings and picks took elements from, and are otherwise the small
// change of the tensor families.
var viewBackwardOps = []Op{
	{
		Schema: "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("select_scatter", b.Call("new_zeros", a.V[0], a.V[1]), a.V[0], a.V[2], a.V[3]))
		},
	},
	{
		Schema: "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("slice_scatter", b.Call("new_zeros", a.V[0], a.V[1]), a.V[0], a.V[2], a.V[3], a.V[4], a.V[5]))
		},
	},
	{
		Schema: "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			sizes := a.Ints(1)
			d := WrapDim(a.I64(2), len(sizes))
			zeros := b.Call("new_zeros", a.V[0], sizes)
			at := b.Call("flatten.using_ints", b.Call("unfold", b.Call("arange", sizes[d]), 0, a.V[3], a.V[4]))
			grad := b.Call("movedim.int", a.Tensor(0), -1, d+1)
			return One(b.Call("index_add", zeros, d, at, b.Call("flatten.using_ints", grad, d, d+1)))
		},
	},
	{
		Schema: "masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			sizes := broadcast2(a.Tensor(1).Sizes, a.Tensor(2).Sizes)
			return One(b.Call("masked_scatter", b.Call("new_zeros", a.V[0], sizes), a.V[2], a.V[0]))
		},
	},
	{
		Schema: "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			picked := b.Call("masked_select", a.V[0], a.V[1])
			n := symbolic.Prod(a.Ints(2)...)
			if rest := n.Sub(picked.Numel()); rest.Gt(symbolic.N(0)) {
				picked = b.Call("cat", []*Value{picked, b.Call("new_zeros", a.V[0], []symbolic.Int{rest})})
			}
			return One(b.Call("view", picked, a.V[2]))
		},
	},
	{
		Schema: "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, bool keepdim) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			grad, at := a.Tensor(0), a.Tensor(2)
			if !a.Bool(4) && len(a.Ints(3)) > 0 {
				grad, at = b.Call("unsqueeze", grad, a.V[1]), b.Call("unsqueeze", at, a.V[1])
			}
			return One(b.Call("scatter.src", b.Call("new_zeros", grad, a.V[3]), a.V[1], at, grad))
		},
	},
	borderBackward("reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor", true),
	borderBackward("reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor", true),
	borderBackward("reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor", true),
	borderBackward("replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor", false),
	borderBackward("replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor", false),
	borderBackward("replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor", false),
	{
		Schema: "requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)",
		Tags:   LazyBits,
		Decomp: func(_ *Build, a *Args) []*Value { return One(a.Tensor(0)) },
	},
	{
		Schema: "set_data(Tensor(a!) self, Tensor new_data) -> ()",
		Tags:   LazyBits,
		Decomp: func(b *Build, a *Args) []*Value {
			rebind(a.Tensor(0), b.Call("alias", a.V[1]))
			return nil
		},
	},
	{
		Schema: "set_(Tensor(a!) self) -> Tensor(a!)",
		Decomp: func(b *Build, a *Args) []*Value {
			rebind(a.Tensor(0), b.Call("new_empty", a.V[0], []int{0}))
			return One(a.Tensor(0))
		},
	},
	{
		Schema: "_reshape_from_tensor(Tensor self, Tensor shape) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			s := a.Tensor(1)
			Check(s.Dim() == 1, "shape should be a 1D tensor")
			dims := make([]any, s.Sizes[0].Int64())
			for i := range dims {
				dims[i] = b.CallResult("item", b.Call("select.int", s, 0, i))
			}
			return One(b.Call("reshape", a.V[0], dims))
		},
	},
	{
		Schema: "flatten_dense_tensors(Tensor[] tensors) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			flat := make([]*Value, len(a.Tensors(0)))
			for i, x := range a.Tensors(0) {
				flat[i] = b.Call("reshape", x, Ints(-1))
			}
			return One(b.Call("cat", flat))
		},
	},
	{
		Schema: "_fused_dropout(Tensor self, float p, Generator? generator=None) -> (Tensor, Tensor)",
		Tags:   Random,
		Decomp: func(b *Build, a *Args) []*Value {
			x, p := a.Tensor(0), a.Float(1)
			mask := b.Call("bernoulli.p", b.Call("empty_like", x, Kw("dtype", tensor.Uint8)), p)
			return []*Value{b.Call("mul.Tensor", b.Call("mul.Tensor", x, mask), 1/p), mask}
		},
	},
	numberOp("get_device(Tensor self) -> int", 0, func(*Args) any { return IntS(-1) }),
}

// borderBackward adds the gradient of each padded place to that of the place it was copied from.
func borderBackward(schema string, reflect bool) Op {
	return Op{Schema: schema, Decomp: func(b *Build, a *Args) []*Value {
		grad, x, pad := a.Tensor(0), a.Tensor(1), a.I64s(2)
		for i := range len(pad) / 2 {
			d := x.Dim() - 1 - i
			size := x.Sizes[d].Int64()
			n := size + pad[2*i] + pad[2*i+1]
			Check(grad.Dim() == x.Dim() && grad.Sizes[d].Eq(symbolic.N(n)), "grad_output has unexpected size %s for an input of size %s", sizesText(grad.Sizes), sizesText(x.Sizes))
			at := make([]int64, n)
			for j := range at {
				at[j] = borderSource(int64(j)-pad[2*i], size, reflect)
			}
			index, _ := tensor.FromSlice(at, n)
			sizes := cloneInts(grad.Sizes)
			sizes[d] = x.Sizes[d]
			grad = b.Call("index_add", b.Call("new_zeros", grad, sizes), d, FromTensor(index), grad)
		}
		return One(grad)
	}}
}
