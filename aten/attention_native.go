package aten

import "math"

// nativeAttentionOps are the fused layers that nn.MultiheadAttention and nn.TransformerEncoderLayer take in inference mode.
var nativeAttentionOps = []Op{
	{
		Schema: "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
		Decomp: func(b *Build, a *Args) []*Value {
			m := nativeMHA{heads: a.Int(4).Int64(), qkvW: a.Tensor(5), qkvB: a.Tensor(6), projW: a.Tensor(7), projB: a.Tensor(8), mask: a.OptTensor(9), maskType: a.V[12]}
			y, attn := m.run(b, a.Tensor(0), a.Tensor(1), a.Tensor(2))
			if !a.Bool(10) {
				return []*Value{y, nil}
			}
			if a.Bool(11) {
				attn = b.Call("mean.dim", attn, []int{1})
			}
			return []*Value{y, attn}
		},
		Note: "with need_weights off the second result is undefined",
	},
	{
		Schema: "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
		Decomp: encoderLayer,
	},
}

// nativeMHA are the parts of a fused attention layer.
type nativeMHA struct {
	heads                    int64
	qkvW, qkvB, projW, projB *Value
	mask                     *Value
	maskType                 any
}

// run gives the layer's output [B, T, D] and the attention of each head [B, H, T, S].
func (m *nativeMHA) run(b *Build, q, k, v *Value) (y, attn *Value) {
	if q.Dim() != 3 {
		Fail("expected 3-D `query`, got %d-D tensor", q.Dim())
	}
	if !sameInts(q.Sizes, k.Sizes) || !sameInts(k.Sizes, v.Sizes) {
		Fail("expected `query`/`key`/`value` shapes to match")
	}
	if m.heads < 1 || q.Sizes[2].Int64()%m.heads != 0 {
		Fail("`embed_dim` must divide evenly by `num_heads`")
	}
	ws := b.CallN("chunk", m.qkvW, 3, 0)
	bs := b.CallN("chunk", m.qkvB, 3, 0)
	dim := q.Sizes[2].Int64() / m.heads
	in := make([]*Value, 3)
	for i, x := range []*Value{q, k, v} {
		p := b.Call("linear", x, ws[i], bs[i])
		p = b.Call("reshape", p, []any{x.Sizes[0], x.Sizes[1], m.heads, dim})
		in[i] = b.Call("transpose.int", p, 1, 2) // [B, H, T, D/H]
	}
	scores := b.Call("matmul", b.Call("mul.Scalar", in[0], 1/math.Sqrt(float64(dim))), b.Call("transpose.int", in[1], 2, 3))
	if m.mask != nil {
		scores = b.Call("masked_fill.Scalar", scores, m.spread(b, scores), math.Inf(-1))
	}
	attn = b.Call("_safe_softmax", scores, -1) // a row that is masked everywhere gives zeros
	y = b.Call("transpose.int", b.Call("matmul", attn, in[2]), 1, 2)
	y = b.Call("linear", b.Call("reshape", y, []any{q.Sizes[0], q.Sizes[1], q.Sizes[2]}), m.projW, m.projB)
	return y, attn
}

// spread gives the mask the shape of the scores: type 0 is [T, S], 1 is [B, S], 2 is [B, H, T, S].
func (m *nativeMHA) spread(b *Build, scores *Value) *Value {
	mask := m.mask
	if mask.DType.IsFloat() {
		mask = b.Call("ne.Scalar", mask, 0)
	}
	kind, _ := m.maskType.(int64)
	if s, ok := m.maskType.(interface{ Int64() int64 }); ok {
		kind = s.Int64()
	}
	if kind == 1 {
		mask = b.Call("reshape", mask, []any{scores.Sizes[0], 1, 1, scores.Sizes[3]})
	}
	return b.Call("expand", mask, scores.Sizes)
}

func encoderLayer(b *Build, a *Args) []*Value {
	x, eps := a.Tensor(0), a.V[9]
	m := nativeMHA{heads: a.Int(2).Int64(), qkvW: a.Tensor(3), qkvB: a.Tensor(4), projW: a.Tensor(5), projB: a.Tensor(6), mask: a.OptTensor(18), maskType: a.V[19]}
	norm := func(x *Value, i int) *Value {
		return b.Call("layer_norm", x, []any{a.Int(1)}, a.Tensor(i), a.Tensor(i+1), eps)
	}
	attend := func(x *Value) *Value { y, _ := m.run(b, x, x, x); return y }
	feed := func(x *Value) *Value {
		h := b.Call("linear", x, a.Tensor(14), a.Tensor(15))
		if a.Bool(7) {
			h = b.Call("gelu", h)
		} else {
			h = b.Call("relu", h)
		}
		return b.Call("linear", h, a.Tensor(16), a.Tensor(17))
	}
	if a.Bool(8) {
		x = b.Call("add.Tensor", x, attend(norm(x, 10)))
		return One(b.Call("add.Tensor", x, feed(norm(x, 12))))
	}
	x = norm(b.Call("add.Tensor", x, attend(x)), 10)
	return One(norm(b.Call("add.Tensor", x, feed(x)), 12))
}
