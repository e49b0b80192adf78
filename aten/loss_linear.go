package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// linearLossOps are the operators behind torch.nn.functional.linear_cross_entropy. PyTorch computes them in chunks of the
// batch to save memory; the numbers are those of a linear layer and a cross entropy in the accumulation dtype.
var linearLossOps = []Op{
	{Schema: "torch_nn::_linear_cross_entropy_batch_chunked(Tensor input, Tensor linear_weight, Tensor target, Tensor? linear_bias, Tensor? weight, str reduction, SymInt ignore_index, float label_smoothing, SymInt batch_chunk_size, str acc_policy, ScalarType acc_dtype, bool allow_retain_graph, bool compute_input_grad, bool compute_linear_weight_grad, bool compute_linear_bias_grad) -> (Tensor, Tensor, Tensor, Tensor)",
		Decomp: linearCrossEntropy},
	{Schema: "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction(Tensor input, Tensor linear_weight, Tensor target, Tensor? linear_bias, Tensor? weight, SymInt ignore_index, SymInt batch_chunk_size, str acc_policy, ScalarType acc_dtype) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			l := newLinearLoss(b, a, a.DType(8, tensor.Float32))
			loss := b.Call("cross_entropy_loss", l.logits, l.target, l.weight, 0, a.Int(5))
			return One(b.Call("to.dtype", loss, a.Tensor(0).DType))
		}},
}

// linearLoss holds the operands in the accumulation dtype: logits [N, C], target [N] or [N, C], weight [C] or nil.
type linearLoss struct {
	b                             *Build
	input, matrix, logits, target *Value
	weight                        any
}

func newLinearLoss(b *Build, a *Args, acc tensor.DType) *linearLoss {
	wide := func(v *Value) *Value { return b.Call("to.dtype", v, acc) }
	l := &linearLoss{b: b, input: wide(a.Tensor(0)), matrix: wide(a.Tensor(1)), target: a.Tensor(2)}
	if l.target.DType.IsFloat() {
		l.target = wide(l.target)
	}
	if w := a.OptTensor(4); w != nil {
		l.weight = wide(w)
	}
	var bias any
	if v := a.OptTensor(3); v != nil {
		bias = wide(v)
	}
	l.logits = b.Call("linear", l.input, l.matrix, bias)
	return l
}

func linearCrossEntropy(b *Build, a *Args) []*Value {
	reduction := map[string]int{"mean": 1, "sum": 2}[a.Str(5)]
	if reduction == 0 {
		FailAs("NotImplementedError", "linear_cross_entropy does not support reduction='%s'", a.Str(5))
	}
	Check(a.Float(7) == 0, "linear_cross_entropy does not support label_smoothing > 0 in chunks")
	dt := a.Tensor(0).DType
	l := newLinearLoss(b, a, a.DType(10, tensor.Float32))
	loss := b.Call("cross_entropy_loss", l.logits, l.target, l.weight, reduction, a.Int(6))
	none := func(dims int) *Value {
		sizes := make([]symbolic.Int, dims)
		for i := range sizes {
			sizes[i] = symbolic.N(0)
		}
		return b.Call("empty.memory_format", sizes, Kw("dtype", dt))
	}
	out := []*Value{b.Call("to.dtype", loss, dt), none(2), none(2), none(1)}
	if !a.Bool(12) && !a.Bool(13) && !a.Bool(14) {
		return out
	}
	g := l.gradient(reduction, a.Int(6))
	if a.Bool(12) {
		out[1] = b.Call("to.dtype", b.Call("mm", g, l.matrix), dt)
	}
	if a.Bool(13) {
		out[2] = b.Call("to.dtype", b.Call("mm", b.Call("t", g), l.input), dt)
	}
	if a.Bool(14) {
		out[3] = b.Call("to.dtype", b.Call("sum.dim_IntList", g, []int{0}), dt)
	}
	return out
}

// gradient is that of the loss with respect to the logits.
func (l *linearLoss) gradient(reduction int, ignore symbolic.Int) *Value {
	b, p := l.b, l.b.Call("softmax.int", l.logits, 1)
	if l.target.DType.IsFloat() {
		t := l.target
		if l.weight != nil {
			t = b.Call("mul.Tensor", t, l.weight)
		}
		g := b.Call("sub.Tensor", b.Call("mul.Tensor", p, b.Call("sum.dim_IntList", t, []int{1}, true)), t)
		if reduction == 1 {
			g = b.Call("div.Scalar", g, l.target.Sizes[0])
		}
		return g
	}
	mask := b.Call("eq.Scalar", l.target, ignore)
	target := b.Call("masked_fill.Scalar", l.target, mask, 0)
	var row *Value
	if l.weight != nil {
		row = b.Call("index_select", l.weight, 0, target)
	} else {
		row = b.Call("ones_like", b.Call("to.dtype", target, p.DType))
	}
	row = b.Call("masked_fill.Scalar", row, mask, 0)
	if reduction == 1 {
		row = b.Call("div.Tensor", row, b.Call("sum", row))
	}
	hot := b.Call("to.dtype", b.Call("one_hot", target, p.Sizes[1]), p.DType)
	return b.Call("mul.Tensor", b.Call("sub.Tensor", p, hot), b.Call("unsqueeze", row, 1))
}
