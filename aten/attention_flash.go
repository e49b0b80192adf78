package aten

import (
	"math"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// fusable reports that the fused operator computes this attention: one batch and, without gqa, one number of heads for all three, and
// a mask that broadcasts to the scores.
func fusable(q, k, v, mask *Value, gqa bool) bool {
	n := q.Dim()
	if n != 3 && n != 4 || k.Dim() != n || v.Dim() != n || q.DType != tensor.Float32 && !q.DType.IsReduced() {
		return false
	}
	if n == 4 && (!k.Sizes[0].Eq(q.Sizes[0]) || !v.Sizes[0].Eq(q.Sizes[0])) {
		return false
	}
	hq, hk := q.Sizes[n-3], k.Sizes[n-3]
	if !v.Sizes[n-3].Eq(hk) || !k.Sizes[n-2].Eq(v.Sizes[n-2]) || !k.Sizes[n-1].Eq(q.Sizes[n-1]) {
		return false
	}
	if gqa && hk.Gt(symbolic.N(0)) {
		if !hk.Mul(hq.FloorDiv(hk)).Eq(hq) {
			return false
		}
	} else if !hk.Eq(hq) {
		return false
	}
	return mask == nil || mask.Dim() <= n && (mask.DType == tensor.Bool || mask.DType == tensor.Float32 || mask.DType == q.DType) && fitsScores(mask, q, k)
}

// fitsScores reports that mask broadcasts to the scores.
func fitsScores(mask, q, k *Value) bool {
	n := q.Dim()
	scores := append(append([]symbolic.Int{}, q.Sizes[:n-1]...), k.Sizes[n-2])
	for i, s := range mask.Sizes {
		if want := scores[n-mask.Dim()+i]; !s.Eq(want) && !s.Eq(symbolic.N(1)) {
			return false
		}
	}
	return true
}

func shapeFlashAttention(a *Args) []Meta {
	q, k, v, mask := a.Tensor(0), a.Tensor(1), a.Tensor(2), a.OptTensor(5)
	Check(q.DType.IsFloat(), "scaled_dot_product_attention_flash_attention: Expected data type in FP32, FP64, BF16, FP16, but got %s instead.", q.DType.CPPName())
	checkAttentionTypes(q, k, v)
	Check(q.Dim() == 4 && k.Dim() == 4 && v.Dim() == 4, "scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of {B, H, T, K}")
	Check(a.Float(3) == 0, "scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
	Check(k.Sizes[3].Eq(q.Sizes[3]), "scaled_dot_product_attention_flash_attention: Q/K/V should have the same head size")
	if mask != nil {
		if a.Bool(4) {
			Fail("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
		}
		Check(mask.DType == tensor.Bool || mask.DType == tensor.Float32 || mask.DType == q.DType, "scaled_dot_product_attention_flash_attention: Attention mask is the same data type as query or float")
		Check(mask.Dim() <= 4 && fitsScores(mask, q, k), "scaled_dot_product_attention_flash_attention: attn_mask of sizes %v does not broadcast to the scores", mask.Sizes)
	}
	sizes := append(append([]symbolic.Int{}, q.Sizes[:3]...), v.Sizes[3])
	out := Contig(q.DType, sizes...)
	if v.Sizes[3].Eq(q.Sizes[3]) {
		out = LikeMeta(q, q.DType, PreserveFormat)
	}
	lse := tensor.Float32
	if q.DType == tensor.Float64 {
		lse = tensor.Float64
	}
	h, l := q.Sizes[1], q.Sizes[2]
	return []Meta{out, Strided(lse, []symbolic.Int{q.Sizes[0], h, l}, []symbolic.Int{h.Mul(l), symbolic.N(1), h})}
}

// flashAttention reads keys and values where they lie. In float64 it follows the formula.
func flashAttention(k *Kernel) {
	q := k.T(0)
	if q.DType() == tensor.Float64 {
		for i, v := range flashDecomp(NewBuildWith(&Eager{Pool: k.Pool}), k.Args) {
			Copy(k.Pool, k.Out[i], v.T)
		}
		return
	}
	key, value, out := k.T(1), k.T(2), k.Out[0]
	a := cpu.Attention{Batch: int(q.Sizes()[0]), Heads: int(q.Sizes()[1]), KVHeads: int(key.Sizes()[1]), L: int(q.Sizes()[2]), S: int(key.Sizes()[2]),
		D: int(q.Sizes()[3]), Ev: int(value.Sizes()[3]), Scale: float32(1 / math.Sqrt(float64(q.Sizes()[3]))), Causal: k.Bool(4)}
	if s, ok := k.V[6].(float64); ok {
		a.Scale = float32(s)
	}
	if m := k.OptT(5); m != nil {
		a.Mask = attentionMask(m, q.DType())
	}
	if len(k.Out) > 1 && k.Out[1] != nil {
		a.LogSumExp = tensor.Data[float32](k.Out[1])
	}
	to := out
	if out.Strides()[3] != 1 {
		to = tensor.New(out.DType(), out.Sizes()...)
	}
	a.Forward(k.Pool, heads(k, q), heads(k, key), heads(k, value), heads(k, to))
	if to != out {
		Copy(k.Pool, out, to)
	}
}

// heads is the view of a [B, H, L, D] tensor, copied if its rows are not contiguous.
func heads(k *Kernel, t *tensor.Tensor) cpu.Heads {
	if t.Strides()[3] != 1 && t.Sizes()[3] != 1 {
		t = k.contiguous(t)
	}
	st := t.Strides()
	h := cpu.Heads{Batch: int(st[0]), Head: int(st[1]), Row: int(st[2])}
	if t.DType() == tensor.Float32 {
		h.Data = tensor.Data[float32](t)
	} else {
		h.Half, h.Format = tensor.Data[uint16](t), halfFormat(t.DType())
	}
	return h
}

// attentionMask is the view of a mask that broadcasts to the scores.
func attentionMask(t *tensor.Tensor, dt tensor.DType) *cpu.Mask {
	m := &cpu.Mask{}
	strides := [4]*int{&m.Batch, &m.Head, &m.Row, &m.Col}
	for i, s := range t.Strides() {
		if t.Sizes()[i] != 1 {
			*strides[4-t.Dim()+i] = int(s)
		}
	}
	switch t.DType() {
	case tensor.Bool:
		m.Bool = tensor.Data[uint8](t)
	case tensor.Float32:
		m.Add = tensor.Data[float32](t)
	default:
		m.Half, m.Format = tensor.Data[uint16](t), halfFormat(dt)
	}
	return m
}
