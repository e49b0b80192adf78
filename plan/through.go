package plan

import (
	"math"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

const attentionName = "aten._scaled_dot_product_flash_attention_for_cpu.default"

// rowMajorCopy reports that an instruction does no more than to copy its argument x, so that the elements lie in row-major order of
// x's sizes.
func rowMajorCopy(in *Instr) (x *aten.Value, ok bool) {
	switch in.Op.Name() {
	case "aten.contiguous.default", "aten.clone.default", "aten.reshape.default", "aten.flatten.using_ints", copyOp.Name():
	default:
		return nil, false
	}
	x, out := in.Args.Tensor(0), in.Outs[0]
	if x.DType != out.DType || x.Conj != out.Conj || x.Neg != out.Neg || !out.IsContiguous() || !covers(out) {
		return nil, false
	}
	return x, out.Numel().Eq(x.Numel()) && (in.Op.Signature().Base == "reshape" || in.Op.Signature().Base == "flatten" || aten.SameSizes(x.Sizes, out.Sizes))
}

// seenThrough is v, a view of a row-major copy of x, as a view of x itself; nil if strides cannot say that.
func seenThrough(x, v *aten.Value) *aten.Value {
	size, strides := aten.Int64s(x.Sizes), aten.Int64s(x.Strides)
	copied := make([]int64, len(size)) // strides of the copy
	n := int64(1)
	for d := len(size) - 1; d >= 0; d-- {
		copied[d] = n
		n *= size[d]
	}
	// reach is the last index of x that is used along each dimension.
	reach := make([]int64, len(size))
	off := x.Offset.Int64()
	rest := v.Offset.Int64()
	for d := range size {
		if size[d] > 1 {
			reach[d] = rest / copied[d]
			rest %= copied[d]
			off += reach[d] * strides[d]
		}
	}
	c := *v
	c.Ref, c.T = x.Ref, nil
	c.Offset = symbolic.N(off)
	c.Strides = make([]symbolic.Int, v.Dim())
	for i := range v.Sizes {
		n, s := v.Sizes[i].Int64(), v.Strides[i].Int64()
		c.Strides[i] = v.Strides[i]
		if n <= 1 {
			continue
		}
		found := false
		for d := range size {
			if size[d] > 1 && s >= copied[d] && s%copied[d] == 0 && reach[d]+(n-1)*(s/copied[d]) < size[d] {
				reach[d] += (n - 1) * (s / copied[d])
				c.Strides[i] = symbolic.N(s / copied[d] * strides[d])
				found = true
				break
			}
		}
		if !found {
			return nil
		}
	}
	return &c
}

// readThrough is the pass that lets attention and matrix products, which take strides, read what a copy was made of.
func (g *graph) readThrough() {
	for j, in := range g.instrs {
		first, last := 0, -1
		switch in.Op.Name() {
		case attentionName:
			last = 2
		case "aten.bmm.default":
			last = 1
		}
		var a *aten.Args
		for k := first; k <= last; k++ {
			v := in.Args.Tensor(k)
			if v.T != nil || len(bufferOf(v).writers) != 1 || bufferOf(v).Kind != Temp {
				continue
			}
			i := bufferOf(v).writers[0]
			x, ok := rowMajorCopy(g.instrs[i])
			if !ok || x.T != nil || v.DType != x.DType || v.Conj || v.Neg || !g.stable(x, i, j) {
				continue
			}
			w := seenThrough(x, v)
			if w == nil || !unitStride(w) {
				continue
			}
			if a == nil {
				a = &aten.Args{Op: in.Op, V: append([]any(nil), in.Args.V...)}
			}
			a.V[k] = w
		}
		if a != nil {
			g.set(j, &Instr{Op: in.Op, Args: a, Outs: in.Outs, zero: in.zero})
		}
		if in.Op.Name() == attentionName {
			g.scaleInside(j)
		}
	}
}

// scaleInside lets the attention at j scale its queries, which it does anyway, where a multiplication by a number did before.
func (g *graph) scaleInside(j int) {
	in := g.instrs[j]
	q := in.Args.Tensor(0)
	i, out := g.producer(q)
	if i < 0 || !aligned(q, out) {
		return
	}
	b := g.instrs[i].Op.Body(g.instrs[i].Args)
	if b == nil || b.Kind != "mul_c" || !aten.SameSizes(b.Ins[0].Sizes, q.Sizes) || b.Ins[0].DType != q.DType || q.DType != tensor.Float32 ||
		b.Ins[0].T != nil || b.Ins[0].Conj || b.Ins[0].Neg || !unitStride(b.Ins[0]) || !g.stable(b.Ins[0], i, j) {
		return
	}
	scale, ok := in.Args.OptFloat(6)
	if !ok {
		scale = 1 / math.Sqrt(float64(q.Sizes[3].Int64()))
	}
	a := &aten.Args{Op: in.Op, V: append([]any(nil), in.Args.V...)}
	a.V[0], a.V[6] = b.Ins[0], scale*float64(b.C)
	g.set(j, &Instr{Op: in.Op, Args: a, Outs: in.Outs, zero: in.zero})
}

// unitStride reports that one of the two inner dimensions of v is contiguous, and for attention the last one: what products read well.
func unitStride(v *aten.Value) bool {
	n := v.Dim()
	one := func(d int) bool { return v.Sizes[d].Int64() == 1 || v.Strides[d].Int64() == 1 }
	return one(n-1) || n == 3 && one(n-2)
}

// writeThrough is the pass that lets attention write its result in the order into which a copy would bring it.
func (g *graph) writeThrough() {
	for i, in := range g.instrs {
		if in == nil || in.Op.Name() != attentionName {
			continue
		}
		out := in.Outs[0]
		j := g.onlyUse(out)
		if j < 0 || !covers(out) || !g.movable(i, j) || g.lseUsed(in) {
			continue
		}
		x, ok := rowMajorCopy(g.instrs[j])
		if !ok || bufferOf(x) != bufferOf(out) || !covers(x) {
			continue
		}
		to := g.instrs[j].Outs[0]
		w := *out
		w.Ref, w.Strides = to.Ref, make([]symbolic.Int, out.Dim())
		copied := aten.ContiguousStrides(x.Sizes)
		fits := true
		for d := range out.Sizes {
			w.Strides[d] = out.Strides[d]
			if out.Sizes[d].Int64() == 1 {
				continue
			}
			k := dimOf(x, out.Sizes[d], out.Strides[d])
			if k < 0 {
				fits = false
				break
			}
			w.Strides[d] = copied[k]
		}
		if !fits || !unitStride(&w) {
			continue
		}
		g.remove(i)
		g.set(j, &Instr{Op: in.Op, Args: in.Args, Outs: []*aten.Value{&w, nil}, zero: in.zero})
	}
}

// lseUsed reports that somebody reads attention's second result.
func (g *graph) lseUsed(in *Instr) bool {
	if len(in.Outs) < 2 || in.Outs[1] == nil {
		return false
	}
	b := bufferOf(in.Outs[1])
	return len(b.readers) > 0 || b.given
}

// dimOf finds the dimension of x with this size and stride.
func dimOf(x *aten.Value, size, stride symbolic.Int) int {
	for k := range x.Sizes {
		if x.Sizes[k].Eq(size) && x.Strides[k].Eq(stride) {
			return k
		}
	}
	return -1
}
