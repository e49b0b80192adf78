package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// normBackwardOps are the gradients of layer and group normalisation, computed at least in float32.
var normBackwardOps = []Op{
	{Schema: "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", Tags: Core, Decomp: layerNormBackward},
	{Schema: "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", Tags: Core, Decomp: groupNormBackward},
}

// normGradient is the gradient of (x-mean)*rstd with respect to x, given that of the output, where the statistics run over
// dims of n elements. It gives the normalized x too.
func normGradient(b *Build, grad, x, mean, rstd *Value, dims []int, n symbolic.Int) (dx, normal *Value) {
	mul := func(x, y *Value) *Value { return b.Call("mul.Tensor", x, y) }
	normal = mul(b.Call("sub.Tensor", x, mean), rstd)
	shift := b.Call("sum.dim_IntList", grad, dims, true)
	lean := mul(normal, b.Call("sum.dim_IntList", mul(grad, normal), dims, true))
	inner := b.Call("sub.Tensor", b.Call("sub.Tensor", b.Call("mul.Scalar", grad, n), shift), lean)
	return mul(b.Call("div.Scalar", rstd, n), inner), normal
}

// wideFloat gives a tensor in the dtype that its gradients are computed in.
func wideFloat(b *Build, v *Value) *Value {
	if v.DType.IsReduced() {
		return b.Call("to.dtype", v, tensor.Float32)
	}
	return v
}

func layerNormBackward(b *Build, a *Args) []*Value {
	x, shape, mask := a.Tensor(1), a.Ints(2), a.Bools(7)
	layerDims(x, shape)
	lead := x.Dim() - len(shape)
	var outer, inner []int
	for d := range x.Dim() {
		if d < lead {
			outer = append(outer, d)
		} else {
			inner = append(inner, d)
		}
	}
	grad, g := wideFloat(b, a.Tensor(0)), wideFloat(b, a.Tensor(0))
	w := a.OptTensor(5)
	if w != nil {
		g = b.Call("mul.Tensor", g, wideFloat(b, w))
	}
	dx, normal := normGradient(b, g, wideFloat(b, x), wideFloat(b, a.Tensor(3)), wideFloat(b, a.Tensor(4)), inner, symbolic.Prod(shape...))
	param := func(v *Value, dt tensor.DType) *Value {
		if len(outer) > 0 {
			v = b.Call("sum.dim_IntList", v, outer)
		}
		return b.Call("to.dtype", v, dt)
	}
	out := make([]*Value, 3)
	if mask[0] {
		out[0] = b.Call("to.dtype", dx, x.DType)
	}
	if mask[1] && w != nil {
		out[1] = param(b.Call("mul.Tensor", grad, normal), w.DType)
	}
	if bias := a.OptTensor(6); mask[2] && bias != nil {
		out[2] = param(grad, bias.DType)
	}
	return out
}

func groupNormBackward(b *Build, a *Args) []*Value {
	x, mask := a.Tensor(1), a.Bools(9)
	n, c, hw, groups := a.Int(5), a.Int(6), a.Int(7), a.Int(8)
	Check(c.Mod(groups).Eq(symbolic.N(0)), "Expect number of channels %v to be evenly-divisible by number of groups %v", c, groups)
	per := symbolic.N(c.Int64() / groups.Int64())
	flat := func(v *Value) *Value {
		return b.Call("reshape", wideFloat(b, v), []symbolic.Int{n, groups, per, hw})
	}
	stat := func(v *Value) *Value {
		return b.Call("reshape", wideFloat(b, v), []symbolic.Int{n, groups, symbolic.N(1), symbolic.N(1)})
	}
	grad := flat(a.Tensor(0))
	g := grad
	w := a.OptTensor(4)
	dt := x.DType
	if w != nil {
		dt = w.DType
		g = b.Call("mul.Tensor", g, b.Call("reshape", wideFloat(b, w), []symbolic.Int{symbolic.N(1), groups, per, symbolic.N(1)}))
	}
	dx, normal := normGradient(b, g, flat(x), stat(a.Tensor(2)), stat(a.Tensor(3)), []int{2, 3}, per.Mul(hw))
	param := func(v *Value) *Value {
		v = b.Call("reshape", b.Call("sum.dim_IntList", v, []int{0, 3}), []symbolic.Int{c})
		return b.Call("to.dtype", v, dt)
	}
	out := make([]*Value, 3)
	if mask[0] {
		out[0] = b.Call("to.dtype", b.Call("reshape", dx, x.Sizes), x.DType)
	}
	if mask[1] {
		out[1] = param(b.Call("mul.Tensor", grad, normal))
	}
	if mask[2] {
		out[2] = param(grad)
	}
	return out
}
