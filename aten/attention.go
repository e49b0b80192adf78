package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// attentionOps are forms of scaled dot product attention: softmax(q k^T * scale + mask) v, where a row that is wholly masked
// gives zeros.
var attentionOps = []Op{
	{Schema: "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor", Tags: Random, Decomp: func(b *Build, a *Args) []*Value {
		if p := a.Float(4); p > 0 {
			return One(droppedAttention(b, a.Tensor(0), a.Tensor(1), a.Tensor(2), a.OptTensor(3), a.Bool(5), a.V[6], a.Bool(7), p))
		}
		return One(attend(b, a.Tensor(0), a.Tensor(1), a.Tensor(2), a.OptTensor(3), a.Bool(5), a.V[6], a.Bool(7)))
	}},
	{
		Schema: "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
		Shape:  shapeFlashAttention,
		CPU:    flashAttention,
		Decomp: flashDecomp,
		Note:   "key and value may have fewer heads than query, each shared by a group of its heads",
	},
	{Schema: "_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)", Decomp: func(b *Build, a *Args) []*Value {
		q := a.Tensor(0)
		if a.Float(3) > 0 {
			Fail("_scaled_dot_product_flash_attention with dropout draws random numbers of a GPU, which is not supported")
		}
		out := attend(b, q, a.Tensor(1), a.Tensor(2), nil, a.Bool(4), a.V[6], false)
		lse := b.Call("logsumexp", scores(b, q, a.Tensor(1), nil, a.Bool(4), a.V[6]), []int{-1})
		empty := b.Call("new_empty", q, []int{0})
		return []*Value{out, lse, empty, empty, empty, empty, empty, empty, empty}
	}},
}

// scores is q k^T * scale + mask.
func scores(b *Build, q, k, mask *Value, causal bool, scale any) *Value {
	s := 1 / math.Sqrt(float64(q.Sizes[q.Dim()-1].Int64()))
	if f, ok := scale.(float64); ok {
		s = f
	}
	w := b.Call("mul.Scalar", b.Call("matmul", q, b.Call("transpose.int", k, -2, -1)), FloatS(s))
	if causal {
		if mask != nil {
			Fail("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
		}
		l, n := q.Sizes[q.Dim()-2], k.Sizes[k.Dim()-2]
		mask = b.Call("tril", b.Call("ones", []symbolic.Int{l, n}, Kw("dtype", tensor.Bool)))
	}
	if mask == nil {
		return w
	}
	if causal { // what lies ahead is never computed
		return b.Call("where.self", mask, w, b.Call("scalar_tensor", math.Inf(-1), Kw("dtype", w.DType)))
	}
	if mask.DType == tensor.Bool { // a bool mask is added as 0 and -inf: NaN stays NaN
		mask = b.Call("where.self", mask, b.Call("zeros", []int64{}, Kw("dtype", w.DType)), b.Call("scalar_tensor", math.Inf(-1), Kw("dtype", w.DType)))
	}
	return b.Call("add.Tensor", w, mask)
}

// flashDecomp is the formula of the fused operator, which its kernel does not follow.
func flashDecomp(b *Build, a *Args) []*Value {
	q, k, v := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	group := q.Sizes[1].FloorDiv(k.Sizes[1])
	if !group.Eq(symbolic.N(1)) {
		k, v = b.Call("repeat_interleave.self_int", k, group, 1), b.Call("repeat_interleave.self_int", v, group, 1)
	}
	out := composedAttention(b, q, k, v, a.OptTensor(5), a.Bool(4), a.V[6])
	w := scores(b, q, k, a.OptTensor(5), a.Bool(4), a.V[6])
	if w.DType.IsReduced() {
		w = toF32(b, w)
	}
	return []*Value{out, b.Call("logsumexp", w, []int{-1})}
}

// attend computes attention by the fused operator where its layout of 4 dimensions fits.
func attend(b *Build, q, k, v, mask *Value, causal bool, scale any, gqa bool) *Value {
	checkAttentionTypes(q, k, v)
	if causal && mask != nil {
		Fail("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
	}
	if fits := fusable(q, k, v, mask, gqa); !fits || gqa && !b.computes() {
		k, v = repeatHeads(b, q, k, v, gqa)
		if !fits {
			return composedAttention(b, q, k, v, mask, causal, scale)
		}
	}
	if q.Dim() == 3 { // PyTorch does not fuse it, so the result is row-major
		x := [3]*Value{b.Call("contiguous", q), k, v}
		for i := range x {
			x[i] = b.Call("unsqueeze", x[i], 0)
		}
		if mask != nil && mask.Dim() == 3 {
			mask = b.Call("unsqueeze", mask, 0)
		}
		return b.Call("squeeze.dim", fused(b, x[0], x[1], x[2], mask, causal, scale), 0)
	}
	return fused(b, q, k, v, mask, causal, scale)
}

// repeatHeads gives key and value a head for each head of the query.
func repeatHeads(b *Build, q, k, v *Value, gqa bool) (*Value, *Value) {
	if !gqa || q.Dim() < 3 {
		return k, v
	}
	hq := q.Sizes[q.Dim()-3]
	return b.Call("repeat_interleave.self_int", k, hq.FloorDiv(k.Sizes[k.Dim()-3]), -3),
		b.Call("repeat_interleave.self_int", v, hq.FloorDiv(v.Sizes[v.Dim()-3]), -3)
}

// droppedAttention computes attention of which dropout takes some weights, as PyTorch does without a fused kernel.
func droppedAttention(b *Build, q, k, v, mask *Value, causal bool, scale any, gqa bool, p float64) *Value {
	checkAttentionTypes(q, k, v)
	dt := q.DType
	k, v = repeatHeads(b, q, k, v, gqa)
	if dt.IsReduced() {
		q, k, v = toF32(b, q), toF32(b, k), toF32(b, v)
		if mask != nil && mask.DType != tensor.Bool {
			mask = toF32(b, mask)
		}
	}
	w := b.Call("_safe_softmax", scores(b, q, k, mask, causal, scale), -1)
	out := b.Call("matmul", b.Call("dropout", w, p, true), v)
	if dt.IsReduced() {
		out = b.Call("_to_copy", out, Kw("dtype", dt))
	}
	return out
}

func fused(b *Build, q, k, v, mask *Value, causal bool, scale any) *Value {
	return b.CallN("_scaled_dot_product_flash_attention_for_cpu", q, k, v, 0.0, causal, mask, scale)[0]
}

func checkAttentionTypes(q, k, v *Value) {
	if k.DType != q.DType || v.DType != q.DType {
		Fail("Expected query, key, and value to have the same dtype, but got query.dtype: %s key.dtype: %s and value.dtype: %s instead.", q.DType, k.DType, v.DType)
	}
}

// composedAttention computes attention by other operators.
func composedAttention(b *Build, q, k, v, mask *Value, causal bool, scale any) *Value {
	dt := q.DType
	origin := q
	if dt.IsReduced() {
		q, k, v = toF32(b, q), toF32(b, k), toF32(b, v)
		if mask != nil && mask.DType != tensor.Bool {
			mask = toF32(b, mask)
		}
	}
	w := scores(b, q, k, mask, causal, scale)
	p := b.Call("_softmax", w, -1, false)
	if mask != nil || causal {
		dead := b.Call("eq.Scalar", b.Call("amax", w, []int{-1}, true), FloatS(math.Inf(-1)))
		p = b.Call("where.self", dead, b.Call("scalar_tensor", 0.0, Kw("dtype", p.DType)), p)
	}
	out := b.Call("matmul", p, v)
	if dt.IsReduced() {
		out = b.Call("_to_copy", out, Kw("dtype", dt))
	}
	return likeQuery(b, origin, out)
}

func toF32(b *Build, v *Value) *Value { return b.Call("_to_copy", v, Kw("dtype", tensor.Float32)) }

// likeQuery gives a 4-d result the layout that PyTorch's fused kernel gives it: heads innermost but one when the query came
// transposed.
func likeQuery(b *Build, q, out *Value) *Value {
	if q.Dim() != 4 || out.Dim() != 4 || q.IsContiguous() || !q.Strides[2].Gt(q.Strides[1]) {
		return out
	}
	t := b.Call("clone", b.Call("transpose.int", out, 1, 2), Kw("memory_format", ContiguousFormat))
	return b.Call("transpose.int", t, 1, 2)
}
