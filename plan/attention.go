package plan

import (
	"github.com/pt2go/pt2/aten"
)

// shareHeads is the pass that lets attention read keys and values with fewer heads than queries where they lie, instead of a copy with
// each head repeated.
func (g *graph) shareHeads() {
	for j, in := range g.instrs {
		if in.Op.Name() != "aten._scaled_dot_product_flash_attention_for_cpu.default" {
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
	switch g.instrs[i].Op.Name() {
	case "aten.reshape.default", "aten.clone.default":
	default:
		return nil
	}
	src := g.instrs[i].Args.Tensor(0)
	if src.Dim() != 5 || src.Strides[2].Int64() != 0 || !src.Sizes[1].Mul(src.Sizes[2]).Eq(x.Sizes[1]) || src.Conj || src.Neg ||
		!src.Sizes[0].Eq(x.Sizes[0]) || !src.Sizes[3].Eq(x.Sizes[2]) || !src.Sizes[4].Eq(x.Sizes[3]) || !g.stable(src, i, j) {
		return nil
	}
	c := *src
	pick := []int{0, 1, 3, 4}
	c.Sizes, c.Strides = c.Sizes[:0:0], c.Strides[:0:0]
	for _, d := range pick {
		c.Sizes, c.Strides = append(c.Sizes, src.Sizes[d]), append(c.Strides, src.Strides[d])
	}
	if src.T != nil {
		c.T = src.T.WithView(aten.Int64s(c.Sizes), aten.Int64s(c.Strides), src.T.Offset())
	}
	return &c
}
