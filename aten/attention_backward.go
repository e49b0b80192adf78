package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// attentionBackwardOps are attention by its formula with the weights as second result, the gradients of the fused operator, and
// softmax with a mask of what to leave out.
var attentionBackwardOps = []Op{
	{Schema: "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)", Tags: Random, Decomp: attentionMath},
	{Schema: "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)", Decomp: flashBackward},
	{Schema: "_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor", Decomp: maskedSoftmax},
	{Schema: "_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		g, y, mask := a.Tensor(0), a.Tensor(1), a.Tensor(2)
		Check(SameSizes(g.Sizes, mask.Sizes), "Mask shape should match grad shape")
		dim := int64(y.Dim() - 1)
		if d, ok := a.OptInt(3); ok {
			dim = d.Int64()
		}
		r := b.Call("_softmax_backward_data", b.Call("masked_fill.Scalar", g, mask, 0), y, dim, y.DType)
		return One(b.Call("masked_fill.Scalar", r, mask, 0))
	}},
}

func attentionMath(b *Build, a *Args) []*Value {
	q, k, v, mask := a.Tensor(0), a.Tensor(1), a.Tensor(2), a.OptTensor(3)
	checkAttentionTypes(q, k, v)
	dt := q.DType
	if mask != nil && mask.DType == tensor.Bool { // PyTorch makes 0 and -inf of a bool mask before it comes here, and adds what does come as a number
		mask = b.Call("to.dtype", mask, dt)
	}
	k, v = repeatHeads(b, q, k, v, a.Bool(8))
	if dt.IsReduced() {
		q, k, v = toF32(b, q), toF32(b, k), toF32(b, v)
		if mask != nil && mask.DType != tensor.Bool {
			mask = toF32(b, mask)
		}
	}
	w := b.Call("_safe_softmax", scores(b, q, k, mask, a.Bool(5), a.V[7]), -1)
	kept := w
	if p := a.Float(4); p > 0 {
		if drop := a.OptTensor(6); drop != nil {
			kept = b.Call("masked_fill.Scalar", w, b.Call("logical_not", drop), 0.0)
			v = b.Call("mul.Scalar", v, 1/(1-p))
		} else {
			kept = b.Call("dropout", w, p, true)
		}
	}
	out := b.Call("matmul", kept, v)
	return []*Value{b.Call("to.dtype", out, dt), b.Call("to.dtype", kept, dt)}
}

// flashBackward: with weights P = exp(S - logsumexp), the gradients are dV = P'dO, and for the scores dS = P*(dO V' - sum(dO*O)),
// which goes to K and Q through their product.
func flashBackward(b *Build, a *Args) []*Value {
	q, k, v := a.Tensor(1), a.Tensor(2), a.Tensor(3)
	Check(a.Float(6) == 0, "scaled_dot_product_attention_flash_attention_backward: Currently do not support dropout > 0")
	mul := func(x, y *Value) *Value { return b.Call("mul.Tensor", x, y) }
	mm := func(x, y *Value) *Value { return b.Call("matmul", x, y) }
	turn := func(x *Value) *Value { return b.Call("transpose.int", x, -2, -1) }
	g, qw, kw, vw := wideFloat(b, a.Tensor(0)), wideFloat(b, q), wideFloat(b, k), wideFloat(b, v)
	scale := 1 / math.Sqrt(float64(q.Size(-1).Int64()))
	if s, ok := a.V[9].(float64); ok {
		scale = s
	}
	mask := a.OptTensor(8)
	if mask != nil && mask.DType != tensor.Bool {
		mask = wideFloat(b, mask)
	}
	s := scores(b, qw, kw, mask, a.Bool(7), scale)
	p := b.Call("exp", b.Call("sub.Tensor", s, b.Call("unsqueeze", a.Tensor(5), -1)))
	inner := b.Call("sum.dim_IntList", mul(g, wideFloat(b, a.Tensor(4))), []int{-1}, true)
	ds := b.Call("mul.Scalar", mul(p, b.Call("sub.Tensor", mm(g, turn(vw)), inner)), scale)
	// PyTorch's results lie as [batch, length, heads, size].
	lay := func(x, like *Value) *Value {
		t := b.Call("clone", b.Call("transpose.int", b.Call("to.dtype", x, like.DType), 1, 2), Kw("memory_format", ContiguousFormat))
		return b.Call("transpose.int", t, 1, 2)
	}
	return []*Value{lay(mm(ds, kw), q), lay(mm(turn(ds), qw), k), lay(mm(turn(p), g), v)}
}

// maskedSoftmax leaves out what the mask marks. By its type the mask is that of a sequence against itself [L, L] (0), that of padding
// [B, L] (1), or as large as the input (2).
func maskedSoftmax(b *Build, a *Args) []*Value {
	x, mask := a.Tensor(0), a.Tensor(1)
	Check(mask.DType == tensor.Bool, "Mask should be a boolean tensor")
	dim := int64(x.Dim() - 1)
	if d, ok := a.OptInt(2); ok {
		dim = d.Int64()
	}
	kind, given := a.OptInt(3)
	Check(given || SameSizes(mask.Sizes, x.Sizes), "Mask shape should match input. mask: %s input: %s", sizesText(mask.Sizes), sizesText(x.Sizes))
	if given && kind.Int64() == 1 {
		Check(x.Dim() == 4 && mask.Dim() == 2 && mask.Sizes[0].Eq(x.Sizes[0]) && mask.Sizes[1].Eq(x.Sizes[3]), "For mask_type == 1 mask shape should be (B, L)")
		one := symbolic.N(1)
		mask = b.Call("view", mask, []symbolic.Int{mask.Sizes[0], one, one, mask.Sizes[1]})
	}
	return One(b.Call("_softmax", b.Call("masked_fill.Scalar", x, mask, math.Inf(-1)), dim, false))
}
