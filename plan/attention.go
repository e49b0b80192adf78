package plan

import (
	"math"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// shareHeads is the pass that lets attention read keys and values with fewer heads than queries where they lie, instead of a copy with
// each head repeated.
func (g *graph) shareHeads() {
	for j, in := range g.instrs {
		if in == nil || in.Op.Name() != attentionName {
			continue
		}
		k, v := g.unrepeated(in.Args.Tensor(1), j), g.unrepeated(in.Args.Tensor(2), j)
		if k == nil || v == nil || !k.Sizes[1].Eq(v.Sizes[1]) {
			continue
		}
		a := &aten.Args{Op: in.Op, V: append([]any(nil), in.Args.V...)}
		a.V[1], a.V[2] = k, v
		g.set(j, &Instr{Op: in.Op, Args: a, Outs: in.Outs, zero: in.zero})
	}
}

// unrepeated is the [N, KVHeads, S, D] of which x [N, Heads, S, D] is a copy with each head repeated, as it is before instruction j;
// nil if x is something else.
func (g *graph) unrepeated(x *aten.Value, j int) *aten.Value {
	i, out := g.producer(x)
	if i < 0 || !aligned(x, out) || x.Dim() != 4 {
		return nil
	}
	src, ok := rowMajorCopy(g.instrs[i])
	if !ok || src.T != nil || src.Dim() != 5 || src.Strides[2].Int64() != 0 || !src.Sizes[1].Mul(src.Sizes[2]).Eq(x.Sizes[1]) || src.Conj || src.Neg ||
		!src.Sizes[0].Eq(x.Sizes[0]) || !src.Sizes[3].Eq(x.Sizes[2]) || !src.Sizes[4].Eq(x.Sizes[3]) || !g.stable(src, i, j) {
		return nil
	}
	c := *src
	c.Sizes, c.Strides = nil, nil
	for _, d := range []int{0, 1, 3, 4} {
		c.Sizes, c.Strides = append(c.Sizes, src.Sizes[d]), append(c.Strides, src.Strides[d])
	}
	return &c
}

// recognizeAttention is the pass that finds softmax(Q K^T * scale + mask) V written out with batched products.
func (g *graph) recognizeAttention() {
	op := aten.Builtin().Lookup(attentionName)
	for s, in := range g.instrs {
		if in == nil || in.Op.Name() != "aten._softmax.default" {
			continue
		}
		p := in.Outs[0]
		x := in.Args.Tensor(0)
		if x.Dim() != 4 || aten.WrapDim(in.Args.I64(1), 4) != 3 || p.DType != tensor.Float32 || x.DType != p.DType || !p.IsContiguous() || !aligned(x, p) || !covers(p) {
			continue
		}
		j := g.onlyUse(p)
		if j < 0 || g.instrs[j].Op.Name() != "aten.bmm.default" {
			continue
		}
		c, ok := g.scoresOf(x)
		if !ok {
			continue
		}
		weights, v := g.instrs[j].Args.Tensor(0), g.instrs[j].Args.Tensor(1)
		q, kt, out := c.product.Args.Tensor(0), c.product.Args.Tensor(1), g.instrs[j].Outs[0]
		if v.T == nil && bufferOf(v) == bufferOf(p) || weights.T != nil || bufferOf(weights) != bufferOf(p) || !covers(weights) || !weights.IsContiguous() || !covers(out) {
			continue
		}
		stable := c.mask == nil || g.stable(c.mask, s, j)
		for _, y := range []*aten.Value{q, kt} {
			stable = stable && g.stable(y, c.at, j)
		}
		b, h := x.Sizes[0], x.Sizes[1]
		q4, k4, v4, o4 := byHead(q, b, h), byHead(swapped(kt), b, h), byHead(v, b, h), byHead(out, b, h)
		if !stable || q4 == nil || k4 == nil || v4 == nil || o4 == nil {
			continue
		}
		var mask any
		if c.mask != nil {
			mask = c.mask
		}
		g.set(j, &Instr{Op: op, Args: &aten.Args{Op: op, V: []any{q4, k4, v4, 0.0, false, mask, c.scale}}, Outs: []*aten.Value{o4, nil}})
		g.remove(s)
	}
}

// scores is a product of queries and keys, scaled and masked.
type scores struct {
	product *Instr
	at      int
	scale   float64
	mask    *aten.Value
}

// scoresOf follows x [B, H, L, S] back to the product; every step must have no other user.
func (g *graph) scoresOf(x *aten.Value) (s scores, ok bool) {
	s.scale = 1
	sizes := x.Sizes
	for range 6 {
		i, out := g.producer(x)
		if i < 0 || g.onlyUse(out) < 0 || !x.IsContiguous() || !out.IsContiguous() {
			return s, false
		}
		if g.instrs[i].Op.Name() == "aten.bmm.default" {
			s.product, s.at = g.instrs[i], i
			return s, true
		}
		if a := g.instrs[i].Args; g.instrs[i].Op.Name() == "aten.baddbmm.default" { // beta*mask + alpha*product
			m := a.Tensor(0)
			if s.scale != 1 || a.Scalar(3).Float64() != 1 || !g.isMask(m, out) || !s.addMask(m, out, sizes) {
				return s, false
			}
			s.scale = a.Scalar(4).Float64()
			s.product, s.at = &Instr{Op: g.instrs[i].Op, Args: &aten.Args{Op: a.Op, V: []any{a.V[1], a.V[2]}}}, i
			return s, true
		}
		if in := g.instrs[i]; in.Op.Name() == "aten.reshape.default" && in.Args.Tensor(0).IsContiguous() {
			x = in.Args.Tensor(0)
			continue
		}
		b := g.instrs[i].Op.Body(g.instrs[i].Args)
		switch {
		case b == nil:
			return s, false
		case b.Kind == "mul_c":
			s.scale *= float64(b.C)
			x = b.Ins[0]
		case b.Kind == "div_c":
			s.scale /= float64(b.C)
			x = b.Ins[0]
		case b.Kind == "add" && s.scale == 1:
			// The summand that has all the scores' elements is the product's; the other one is the mask.
			k := 0
			if !aligned(b.Ins[0], out) || g.isMask(b.Ins[0], out) && aligned(b.Ins[1], out) {
				k = 1
			}
			if !aligned(b.Ins[k], out) || !g.isMask(b.Ins[1-k], out) || !s.addMask(b.Ins[1-k], out, sizes) {
				return s, false
			}
			x = b.Ins[k]
		default:
			return s, false
		}
	}
	return s, false
}

// maxMask bounds the elements of a constant mask that is made of others.
const maxMask = 1 << 20

// addMask takes m, which was added to scores that looked like out, for scores of the given sizes [B, H, L, S]; false if that cannot be.
func (s *scores) addMask(m, out *aten.Value, sizes []symbolic.Int) bool {
	for m.Dim() > len(sizes) && out.Dim() == m.Dim() && out.Sizes[0].Int64() == 1 {
		c := *m // out has a leading dimension more
		c.Sizes, c.Strides = m.Sizes[1:], m.Strides[1:]
		m = viewOf(&c)
		o := *out
		o.Sizes, o.Strides = out.Sizes[1:], out.Strides[1:]
		out = &o
	}
	same := aten.SameSizes(out.Sizes, sizes)
	if s.mask == nil && same {
		s.mask = m
		return true
	}
	if m.T == nil || s.mask != nil && s.mask.T == nil || out.Numel().Int64() > maxMask {
		return false
	}
	// Constants: written out and added.
	sum := tensor.New(tensor.Float32, aten.Int64s(out.Sizes)...)
	aten.Copy(nil, sum, m.T)
	sum = sum.WithView(aten.Int64s(sizes), aten.Int64s(aten.ContiguousStrides(sizes)), 0)
	if s.mask != nil {
		other := tensor.New(tensor.Float32, sum.Sizes()...)
		aten.Copy(nil, other, s.mask.T)
		d := tensor.Data[float32](sum)
		cpu.AddF32(d, d, tensor.Data[float32](other))
		if !allFinite(sum) {
			return false
		}
	}
	s.mask = aten.FromTensor(sum)
	return true
}

// isMask reports that v can be added to the scores by the fused operator, which gives zeros where softmax gives NaN: in rows of nothing
// but -Inf. So v must be known to be finite.
func (g *graph) isMask(v, scores *aten.Value) bool {
	if v.DType != tensor.Float32 || v.Dim() > scores.Dim() || v.Conj || v.Neg {
		return false
	}
	if v.T != nil {
		return allFinite(v.T)
	}
	i, _ := g.producer(v)
	if i < 0 || g.instrs[i].Op.Name() != "aten.where.self" {
		return false
	}
	for _, k := range []int{1, 2} {
		if y := g.instrs[i].Args.Tensor(k); y.T == nil || !allFinite(y.T) {
			return false
		}
	}
	return true
}

func allFinite(t *tensor.Tensor) bool {
	if t.Numel() > 1<<20 {
		return false
	}
	for i := range t.Numel() {
		if f := t.Float(i); math.IsInf(f, 0) || math.IsNaN(f) {
			return false
		}
	}
	return true
}

// swapped is a [N, D, S] value seen as [N, S, D].
func swapped(v *aten.Value) *aten.Value {
	c := *v
	c.Sizes = []symbolic.Int{v.Sizes[0], v.Sizes[2], v.Sizes[1]}
	c.Strides = []symbolic.Int{v.Strides[0], v.Strides[2], v.Strides[1]}
	return viewOf(&c)
}

// byHead is a [B*H, M, N] value seen as [B, H, M, N].
func byHead(v *aten.Value, b, h symbolic.Int) *aten.Value {
	if v.Dim() != 3 || !v.Sizes[0].Eq(b.Mul(h)) || v.Conj || v.Neg || v.DType != tensor.Float32 {
		return nil
	}
	c := *v
	c.Sizes = []symbolic.Int{b, h, v.Sizes[1], v.Sizes[2]}
	c.Strides = []symbolic.Int{v.Strides[0].Mul(h), v.Strides[0], v.Strides[1], v.Strides[2]}
	return viewOf(&c)
}

// viewOf completes a value whose sizes and strides were changed.
func viewOf(v *aten.Value) *aten.Value {
	if v.T != nil {
		v.T = v.T.WithView(aten.Int64s(v.Sizes), aten.Int64s(v.Strides), v.T.Offset())
	}
	return v
}
