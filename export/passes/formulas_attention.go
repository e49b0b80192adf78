package passes

import (
	"math"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// attentionFormulas take scaled dot product attention apart as PyTorch's math kernel does.
var attentionFormulas = map[string]Decomp{
	"aten.scaled_dot_product_attention.default": attention,
	"aten._safe_softmax.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		p := b.Call("softmax.int", x, a.V[1], a.V[2])
		masked := b.Call("eq.Scalar", x, math.Inf(-1))
		masked = b.Call("all.dim", masked, a.V[1], true)
		return one(b.Call("where.self", masked, b.Call("zeros_like", p), p))
	},
}

// attention: query [..., L, E], key [..., S, E], value [..., S, Ev], attn_mask, dropout_p, is_causal, scale, enable_gqa. Where PyTorch
// would call its fused kernel for CPUs, the result has that kernel's memory layout.
func attention(b *aten.Build, a *aten.Args) []*aten.Value {
	q, k, v, mask := a.Tensor(0), a.Tensor(1), a.Tensor(2), a.OptTensor(3)
	if a.Float(4) > 0 {
		return a.Op.Decomp(b, a)
	}
	if mask != nil && mask.DType == tensor.Bool {
		mask = additive(b, mask, q.DType)
	}
	fused := fusedAttention(q, k, v, mask)
	scale := 1 / math.Sqrt(float64(constant(q.Sizes[q.Dim()-1])))
	if s, ok := a.V[6].(float64); ok {
		scale = s
	}
	half := q.DType.IsReduced()
	out := q.DType
	if half {
		q, k, v = cast(b, q, tensor.Float32), cast(b, k, tensor.Float32), cast(b, v, tensor.Float32)
	}
	factor := math.Sqrt(math.Abs(scale))
	q = b.Call("mul.Scalar", q, math.Copysign(factor, scale))
	if a.Bool(5) {
		shape := sizes(q.Sizes[q.Dim()-2], k.Sizes[k.Dim()-2])
		ahead := b.Call("tril", b.Call("full", shape, true, aten.Kw("dtype", tensor.Bool)))
		mask = additive(b, ahead, q.DType)
	}
	k, v = shared(b, q, k, a.Bool(7)), shared(b, q, v, a.Bool(7))
	k = b.Call("mul.Scalar", b.Call("transpose.int", k, -2, -1), factor)
	w := b.Call("matmul", q, k)
	if mask != nil {
		w = b.Call("add.Tensor", w, mask)
	}
	y := cast(b, b.Call("matmul", b.Call("_safe_softmax", w, -1), v), out)
	if fused {
		y = b.Call("permute", y, []int64{2, 0, 1, 3})
		y = b.Call("permute", b.Call("contiguous", y), []int64{1, 2, 0, 3})
	}
	return one(y)
}

// constant is a size that the formula needs as a number.
func constant(n symbolic.Int) int64 {
	c, ok := n.Const()
	if !ok {
		panic(&unrecordable{"a symbolic size as a number"})
	}
	return c
}

// additive is a bool mask as 0 and -inf.
func additive(b *aten.Build, mask *aten.Value, dt tensor.DType) *aten.Value {
	kw := []any{math.Inf(-1), aten.Kw("dtype", dt)}
	if p, ok := mask.Ref.(*ref); ok {
		kw = append(kw, aten.Kw("device", p.dev))
	}
	low := b.Call("scalar_tensor", kw...)
	return b.Call("where.self", mask, filledAs(b, 0.0, dt), low)
}

// fusedAttention is PyTorch's choice of the flash kernel for CPUs.
func fusedAttention(q, k, v, mask *aten.Value) bool {
	for _, x := range []*aten.Value{q, k, v} {
		p, ok := x.Ref.(*ref)
		if !ok || p.dev.Type != "cpu" || x.Dim() != 4 || !x.DType.IsFloat() || !x.Sizes[0].Eq(q.Sizes[0]) || !x.Sizes[1].Eq(q.Sizes[1]) || !x.Sizes[3].Eq(q.Sizes[3]) {
			return false
		}
		if !x.Strides[3].Eq(symbolic.N(1)) || x.Sizes[2].Eq(symbolic.N(0)) {
			return false
		}
	}
	return mask == nil || mask.Dim() == 2 || mask.Dim() == 4
}

// shared repeats heads that groups of the query's share.
func shared(b *aten.Build, q, x *aten.Value, grouped bool) *aten.Value {
	if !grouped || x.Dim() < 3 {
		return x
	}
	return b.Call("repeat_interleave.self_int", x, q.Sizes[q.Dim()-3].FloorDiv(x.Sizes[x.Dim()-3]), -3)
}
