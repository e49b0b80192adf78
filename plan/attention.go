package plan

import (
	"slices"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
)

// groupAttention is the pass that lets attention read keys and values where each is shared by a group of heads, instead of a copy in
// which they are repeated: expand to [B, KV, group, S, D], then reshape to [B, KV*group, S, D].
func (g *graph) groupAttention() {
	for i, in := range g.instrs {
		if in.Op.Name() != "aten._scaled_dot_product_flash_attention_for_cpu.default" {
			continue
		}
		k, v := g.unrepeated(in.Args.Tensor(1), i), g.unrepeated(in.Args.Tensor(2), i)
		if k == nil || v == nil || !k.Sizes[1].Eq(v.Sizes[1]) {
			continue
		}
		args := &aten.Args{Op: in.Op, V: slices.Clone(in.Args.V)}
		args.V[1], args.V[2] = k, v
		g.set(i, &Instr{Op: in.Op, Args: args, Outs: in.Outs, zero: in.zero})
	}
	g.compact()
	g.dropDead()
}

// unrepeated finds the tensor of which v, which instruction i reads, repeats each head; nil if there is none.
func (g *graph) unrepeated(v *aten.Value, i int) *aten.Value {
	p, _ := g.producer(v)
	if p < 0 || !v.IsContiguous() {
		return nil
	}
	in := g.instrs[p]
	if name := in.Op.Name(); in.Op != copyOp && name != "aten.reshape.default" && name != "aten.clone.default" && name != "aten.contiguous.default" {
		return nil
	}
	x := in.Args.Tensor(0)
	if x.T != nil || x.Dim() != 5 || x.DType != v.DType || x.Conj || x.Neg || !x.Strides[2].Eq(symbolic.N(0)) || !g.stable(x, p, i) {
		return nil
	}
	s := x.Sizes
	if !aten.SameSizes(v.Sizes, []symbolic.Int{s[0], s[1].Mul(s[2]), s[3], s[4]}) {
		return nil
	}
	m := x.Meta
	m.View = nil
	m.Sizes = []symbolic.Int{s[0], s[1], s[3], s[4]}
	m.Strides = []symbolic.Int{x.Strides[0], x.Strides[1], x.Strides[3], x.Strides[4]}
	return &aten.Value{Meta: m, Ref: x.Ref}
}
