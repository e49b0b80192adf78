package nn

import (
	"fmt"
	"math"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tracer"
)

// MultiheadAttention lets queries attend to keys with values, in several heads. Inputs are query, key and value, [time, batch, features]
// ([batch, time, features] with [BatchFirst], no batch with two dimensions), then key_padding_mask [batch, keys] and attn_mask
// [queries, keys] or [batch*heads, queries, keys], both of booleans (true hides) or added to the scores; nil leaves one out. The result is
// the output, and the mean of the heads' weights [batch, queries, keys] if NeedWeights.
type MultiheadAttention struct {
	layer
	InProjWeight *tracer.Parameter `pt2:"in_proj_weight"`
	QProjWeight  *tracer.Parameter `pt2:"q_proj_weight"`
	KProjWeight  *tracer.Parameter `pt2:"k_proj_weight"`
	VProjWeight  *tracer.Parameter `pt2:"v_proj_weight"`
	InProjBias   *tracer.Parameter `pt2:"in_proj_bias"`
	BiasK        *tracer.Parameter `pt2:"bias_k"`
	BiasV        *tracer.Parameter `pt2:"bias_v"`
	OutProj      *Linear           `pt2:"out_proj"`

	NeedWeights bool
	Training    bool

	embed, heads int64
	dropout      float64
	batchFirst   bool
	zeroAttn     bool
}

// NewMultiheadAttention makes a layer. Options: [DropoutP], [NoBias], [AddBiasKV], [AddZeroAttn], [KeyValueDims], [BatchFirst].
func NewMultiheadAttention(g *aten.Generator, embed, heads int64, opts ...Option) *MultiheadAttention {
	m := &MultiheadAttention{layer: layer{class: "activation.MultiheadAttention"}, embed: embed, heads: heads}
	o := m.collect(options{kdim: embed, vdim: embed}, opts, "DropoutP", "NoBias", "AddBiasKV", "AddZeroAttn", "KeyValueDims", "BatchFirst")
	m.dropout, m.batchFirst, m.zeroAttn = o.dropout, o.batchFirst, o.zeroAttn
	if embed <= 0 || heads <= 0 || embed%heads != 0 {
		m.refuse("embed_dim must be divisible by num_heads")
		return m
	}
	// The output's projection is drawn before the others are.
	m.OutProj = NewLinear(g, embed, embed, biasOption(o)...)
	m.OutProj.class = "linear.NonDynamicallyQuantizableLinear"
	if o.kdim == embed && o.vdim == embed {
		m.InProjWeight = xavier(g, 3*embed, embed, 3*embed, embed)
	} else {
		m.QProjWeight, m.KProjWeight, m.VProjWeight = xavier(g, embed, embed, embed, embed), xavier(g, embed, o.kdim, embed, o.kdim), xavier(g, embed, o.vdim, embed, o.vdim)
	}
	if !o.noBias {
		m.InProjBias = weight(0, 3*embed)
		m.OutProj.Bias = weight(0, embed)
	}
	if o.biasKV {
		std := math.Sqrt(2.0 / float64(2*embed)) // xavier_normal_ of [1, 1, embed]
		m.BiasK, m.BiasV = normal(g, std, 1, 1, embed), normal(g, std, 1, 1, embed)
	}
	return m
}

func (m *MultiheadAttention) train(on bool) { m.Training = on }

// Forward implements [tracer.Module].
func (m *MultiheadAttention) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	m.check()
	if len(x) < 3 {
		panic(&tracer.UserError{Kind: tracer.InvalidInput, Msg: fmt.Sprintf("MultiheadAttention: query, key and value are needed, not %d inputs", len(x))})
	}
	a := &attending{m: m, q: x[0], k: x[1], v: x[2], single: x[0].Dim() == 2}
	if len(x) > 3 {
		a.padding = x[3]
	}
	if len(x) > 4 {
		a.mask = x[4]
	}
	return a.run(x)
}

// attending is one call.
type attending struct {
	m             *MultiheadAttention
	q, k, v       *tracer.Tensor
	padding, mask *tracer.Tensor
	single        bool
}

func (a *attending) run(x []*tracer.Tensor) []*tracer.Tensor {
	m := a.m
	switch {
	case a.single:
		a.q, a.k, a.v = a.q.Op("unsqueeze", 1), a.k.Op("unsqueeze", 1), a.v.Op("unsqueeze", 1)
		if a.padding != nil {
			a.padding = a.padding.Op("unsqueeze", 0)
		}
	case m.batchFirst:
		a.q, a.k, a.v = a.q.Op("transpose.int", 1, 0), a.k.Op("transpose.int", 1, 0), a.v.Op("transpose.int", 1, 0)
	}
	length, batch := a.q.Size(0), a.q.Size(1)
	q, k, v := a.project(x)
	a.padding, a.mask = a.additive(a.padding, q), a.additive(a.mask, q)
	if m.BiasK != nil {
		grown := []any{1, batch, 1}
		k = tracer.Cat(0, k, k.On("repeat", m.BiasK, grown))
		v = tracer.Cat(0, v, v.On("repeat", m.BiasV, grown))
		a.grow()
	}
	dim := m.embed / m.heads
	split := func(t *tracer.Tensor, n any) *tracer.Tensor {
		return t.Op("view", []any{n, batch.MulN(m.heads), dim}).Op("transpose.int", 0, 1)
	}
	q, k, v = split(q, length), split(k, k.Size(0)), split(v, v.Size(0))
	if m.zeroAttn {
		zeros := func(t *tracer.Tensor) *tracer.Tensor {
			return t.On("zeros", []any{batch.MulN(m.heads), 1, dim}, aten.Kw("dtype", t.DType()), aten.Kw("device", "cpu"))
		}
		k, v = tracer.Cat(1, k, zeros(k)), tracer.Cat(1, v, zeros(v))
		a.grow()
	}
	keys := k.Size(1)
	if a.mask != nil && a.mask.Dim() == 2 {
		a.mask = a.mask.Op("unsqueeze", 0)
	}
	if a.padding != nil {
		p := a.padding.Op("view", []any{batch, 1, 1, keys}).Op("expand", []any{-1, m.heads, -1, -1}).Op("reshape", []any{batch.MulN(m.heads), 1, keys})
		if a.mask == nil {
			a.mask = p
		} else {
			a.mask = a.mask.Op("add.Tensor", p)
		}
	}
	p := 0.0
	if m.Training {
		p = m.dropout
	}
	var out, weights *tracer.Tensor
	if m.NeedWeights {
		q = q.Op("mul.Tensor", math.Sqrt(1/float64(dim)))
		kt := k.Op("transpose.int", -2, -1)
		scores := q.Op("bmm", kt)
		if a.mask != nil {
			scores = a.mask.Op("add.Tensor", scores)
		}
		weights = scores.Op("softmax.int", -1)
		dropped := weights
		if p > 0 {
			dropped = weights.Op("dropout", p, true)
		}
		out = dropped.Op("bmm", v).Op("transpose.int", 0, 1)
	} else {
		four := func(t *tracer.Tensor, n any) *tracer.Tensor { return t.Op("view", []any{batch, m.heads, n, dim}) }
		mask := a.mask
		if mask != nil {
			if _, fixed := mask.Size(0).Const(); fixed && mask.Size(0).Int64() == 1 {
				mask = mask.Op("unsqueeze", 0)
			} else {
				mask = mask.Op("view", []any{batch, m.heads, -1, keys})
			}
		}
		out = four(q, length).Op("scaled_dot_product_attention", four(k, keys), four(v, keys), mask, p).Op("permute", []int64{2, 0, 1, 3})
	}
	out = out.Op("reshape", []any{length.Mul(batch), m.embed})
	out = tracer.Call1(m.OutProj, out).Op("view", []any{length, batch, m.embed})
	switch {
	case a.single:
		out = out.Op("squeeze.dim", 1)
	case m.batchFirst:
		out = out.Op("transpose.int", 1, 0)
	}
	if weights == nil {
		return one(out)
	}
	weights = weights.Op("view", []any{batch, m.heads, length, keys}).Op("mean.dim", []int64{1})
	if a.single {
		weights = weights.Op("squeeze.dim", 0)
	}
	return []*tracer.Tensor{out, weights}
}

// project multiplies query, key and value with their weights.
func (a *attending) project(x []*tracer.Tensor) (q, k, v *tracer.Tensor) {
	m := a.m
	part := func(p *tracer.Parameter, i int64) any {
		if p == nil {
			return nil
		}
		return a.q.On("slice.Tensor", p, 0, i*m.embed, (i+1)*m.embed)
	}
	if m.InProjWeight == nil {
		return a.q.Op("linear", m.QProjWeight, part(m.InProjBias, 0)), a.k.Op("linear", m.KProjWeight, part(m.InProjBias, 1)), a.v.Op("linear", m.VProjWeight, part(m.InProjBias, 2))
	}
	if x[0] == x[1] && x[1] == x[2] { // one product for all three
		all := a.q.Op("linear", m.InProjWeight, m.InProjBias)
		cut := func(i int64) *tracer.Tensor {
			return all.Op("slice.Tensor", -1, i*m.embed, (i+1)*m.embed).Op("contiguous")
		}
		return cut(0), cut(1), cut(2)
	}
	return a.q.Op("linear", part(m.InProjWeight, 0), part(m.InProjBias, 0)), a.k.Op("linear", part(m.InProjWeight, 1), part(m.InProjBias, 1)), a.v.Op("linear", part(m.InProjWeight, 2), part(m.InProjBias, 2))
}

// additive makes of a mask of booleans one that is added.
func (a *attending) additive(mask, like *tracer.Tensor) *tracer.Tensor {
	if mask == nil || mask.DType().IsFloat() {
		return mask
	}
	zeros := mask.Op("zeros_like", aten.Kw("dtype", like.DType()))
	return zeros.Op("masked_fill.Scalar", mask, math.Inf(-1))
}

// grow extends the masks by a key that is never hidden.
func (a *attending) grow() {
	if a.mask != nil {
		a.mask = a.mask.Op("pad", []int64{0, 1})
	}
	if a.padding != nil {
		a.padding = a.padding.Op("pad", []int64{0, 1})
	}
}
