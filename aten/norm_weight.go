package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// weightNormOps are weight normalisation (Salimans and Kingma, 2016) as PyTorch's fused operators have it, with its gradients,
// and the forms of RMS normalisation and of p-norms that stand beside the public ones.
var weightNormOps = []Op{
	{Schema: "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(normExceptDim(b, a.Tensor(0), a.I64(1), a.I64(2)))
	}},
	{Schema: "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		v, g := a.Tensor(0), a.Tensor(1)
		checkWeightNorm(v, a.I64(2))
		wide := wideFloat(b, v)
		n := normExceptDim(b, wide, 2, a.I64(2))
		w := b.Call("mul.Tensor", wide, b.Call("div.Tensor", wideFloat(b, g), n))
		return []*Value{b.Call("to.dtype", w, v.DType), n}
	}},
	{Schema: "_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> (Tensor, Tensor)", Decomp: weightNormBackward},
	{Schema: "_weight_norm_differentiable_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> (Tensor, Tensor)", Decomp: weightNormBackward},
	{Schema: "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		x, shape := a.Tensor(0), a.Ints(1)
		n := layerDims(x, shape)
		dims := make([]int, n)
		for i := range dims {
			dims[i] = x.Dim() - n + i
		}
		wide := wideFloat(b, x)
		eps, ok := a.OptFloat(3)
		if !ok {
			eps = pick(wide.DType == tensor.Float64, 0x1p-52, 0x1p-23)
		}
		square := b.Call("mean.dim", b.Call("pow.Tensor_Scalar", wide, 2), dims, true)
		inverse := b.Call("rsqrt", b.Call("add.Scalar", square, eps))
		return []*Value{b.Call("rms_norm", x, shape, a.V[2], a.V[3]), inverse}
	}},
	{Schema: "linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		if a.Has(4) {
			x = b.Call("to.dtype", x, a.V[4])
		}
		p := b.Call("pow.Tensor_Scalar", b.Call("abs", wideFloat(b, x)), a.V[1])
		return One(b.Call("to.dtype", b.Call("sum.dim_IntList", p, a.V[2], a.V[3]), x.DType.Real()))
	}},
}

func checkWeightNorm(v *Value, dim int64) {
	mustFloat("weight_norm_kernel", v.DType)
	Check(dim == 0 || dim == int64(v.Dim()-1), "fused kernels can only be applied for first or last dim")
}

// normExceptDim is the p-norm over all dimensions but dim, which stays together with dimensions of size 1; over all of them, for
// dim -1, as a scalar.
func normExceptDim(b *Build, v *Value, p, dim int64) *Value {
	if dim == -1 {
		return b.Call("norm.Scalar", v, IntS(p))
	}
	var dims []int
	for i := range v.Dim() {
		if i != WrapDim(dim, v.Dim()) {
			dims = append(dims, i)
		}
	}
	if len(dims) == 0 {
		return b.Call("norm.ScalarOpt_dim", b.Call("unsqueeze", v, 1), IntS(p), []int{1})
	}
	return b.Call("norm.ScalarOpt_dim", v, IntS(p), dims, true)
}

// weightNormBackward: with w = v*g/|v|, the gradient of g is the sum of grad*v over |v|, and that of v is
// (g/|v|)*(grad - v*sum(grad*v)/|v|^2).
func weightNormBackward(b *Build, a *Args) []*Value {
	v, g := a.Tensor(1), a.Tensor(2)
	checkWeightNorm(v, a.I64(4))
	grad, wide, n := wideFloat(b, a.Tensor(0)), wideFloat(b, v), wideFloat(b, a.Tensor(3))
	var dims []int
	for i := range v.Dim() {
		if int64(i) != a.I64(4) {
			dims = append(dims, i)
		}
	}
	dot := b.Call("mul.Tensor", grad, wide)
	if len(dims) > 0 {
		dot = b.Call("sum.dim_IntList", dot, dims, true)
	}
	ratio := b.Call("div.Tensor", wideFloat(b, g), n)
	lean := b.Call("mul.Tensor", wide, b.Call("div.Tensor", dot, b.Call("mul.Tensor", n, n)))
	dv := b.Call("mul.Tensor", ratio, b.Call("sub.Tensor", grad, lean))
	return []*Value{b.Call("to.dtype", dv, v.DType), b.Call("to.dtype", b.Call("div.Tensor", dot, n), g.DType)}
}

// batchNormBackwardOps are the gradients of batch normalisation, and the statistics alone.
var batchNormBackwardOps = []Op{
	{Schema: "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", Decomp: batchNormBackward},
	{Schema: "batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)", Decomp: batchNormBackward},
	{Writes: []int{1, 2}, Schema: "batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float momentum) -> (Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		r := b.CallN("var_mean.correction", wideFloat(b, x), batchDims(x), Kw("correction", 0))
		n := x.Numel().FloorDiv(x.Sizes[1])
		biased, mean := r[0], r[1]
		unbiased := b.Call("mul.Scalar", biased, float64(n.Int64())/float64(n.Int64()-1))
		for i, v := range []*Value{mean, unbiased} {
			if run := a.OptTensor(1 + i); run != nil {
				m := b.Call("add.Tensor", b.Call("mul.Scalar", run, 1-a.Float(3)), b.Call("mul.Scalar", v, a.Float(3)))
				b.CallN("copy_", run, m)
			}
		}
		dt := statDType(x, a.V[1:3])
		return []*Value{b.Call("to.dtype", mean, dt), b.Call("to.dtype", biased, dt)}
	}},
}

// batchDims are all dimensions but that of the channels.
func batchDims(x *Value) []int {
	var dims []int
	for d := range x.Dim() {
		if d != 1 {
			dims = append(dims, d)
		}
	}
	return dims
}

// batchNormBackward gives the gradients of the input, the weight and the bias, of a batch's own statistics or, not training, of
// running ones.
func batchNormBackward(b *Build, a *Args) []*Value {
	x, train, mask := a.Tensor(1), a.Bool(7), a.Bools(9)
	batchMeta(x)
	per := make([]symbolic.Int, x.Dim())
	for d := range per {
		per[d] = symbolic.N(1)
	}
	per[1] = x.Sizes[1]
	channel := func(v *Value) *Value { return b.Call("reshape", wideFloat(b, v), per) }
	mul := func(x, y *Value) *Value { return b.Call("mul.Tensor", x, y) }
	dims := batchDims(x)
	sum := func(v *Value) *Value { return b.Call("sum.dim_IntList", v, dims, true) }
	grad, wide := wideFloat(b, a.Tensor(0)), wideFloat(b, x)
	var mean, inverse *Value
	if train {
		mean, inverse = channel(a.Tensor(5)), channel(a.Tensor(6))
	} else {
		mean, inverse = channel(a.Tensor(3)), b.Call("rsqrt", b.Call("add.Scalar", channel(a.Tensor(4)), a.Float(8)))
	}
	total := sum(grad)
	centered := b.Call("sub.Tensor", wide, mean)
	dot := sum(mul(grad, centered))
	out := make([]*Value, 3)
	if mask[0] {
		scale, dx := inverse, grad
		if w := a.OptTensor(2); w != nil {
			scale = mul(scale, channel(w))
		}
		if train {
			n := x.Numel().FloorDiv(x.Sizes[1])
			lean := mul(centered, mul(b.Call("div.Scalar", dot, n), mul(inverse, inverse)))
			dx = b.Call("sub.Tensor", b.Call("sub.Tensor", dx, lean), b.Call("div.Scalar", total, n))
		}
		out[0] = b.Call("to.dtype", mul(dx, scale), x.DType)
	}
	dt := statDType(x, a.V[2:7])
	if mask[1] {
		out[1] = b.Call("to.dtype", b.Call("reshape", mul(dot, inverse), x.Sizes[1:2]), dt)
	}
	if mask[2] {
		out[2] = b.Call("to.dtype", b.Call("reshape", total, x.Sizes[1:2]), dt)
	}
	return out
}
