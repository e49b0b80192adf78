package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// batchNormOps are the forms of batch normalisation that differ only in what they do with the running statistics.
var batchNormOps = []Op{
	{Schema: "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)", Tags: Core, Decomp: func(b *Build, a *Args) []*Value {
		return b.CallN("native_batch_norm", a.V...)
	}},
	{Schema: "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		r := b.CallN("native_batch_norm", a.V[0], a.V[1], a.V[2], a.V[3], a.V[4], true, a.V[5], a.V[6])
		return append(r, batchReserve(b))
	}},
	{Schema: "_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)", Decomp: func(b *Build, a *Args) []*Value {
		r := b.CallN("_native_batch_norm_legit_functional", a.V[0], a.V[1], a.V[2], a.V[3], a.V[4], true, a.V[5], a.V[6])
		return []*Value{r[0], r[1], r[2], batchReserve(b), r[3], r[4]}
	}},
	{Schema: "_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		r := b.CallN("native_batch_norm", a.V[0], a.V[1], a.V[2], a.V[3], a.V[4], false, a.V[5], a.V[6])
		return append(r, batchReserve(b))
	}},
}

// batchReserve is the workspace of the backward pass, which is empty on the CPU.
func batchReserve(b *Build) *Value {
	return b.Call("empty.memory_format", []symbolic.Int{symbolic.N(0)}, Kw("dtype", tensor.Uint8))
}
