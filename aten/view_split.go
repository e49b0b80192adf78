package aten

import (
	"github.com/pt2go/pt2/symbolic"
)

// splitOps are the views that cut a tensor along a dimension.
var splitOps = []Op{
	viewOp("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", Core, func(a *Args) Meta {
		return selected(a.Tensor(0), a.I64(1), a.Int(2))
	}),
	viewOp("slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)", Core, func(a *Args) Meta {
		return slicedArgs(a, 1)
	}),
	{
		Schema: "slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
		Tags:   LazyBits,
		Shape: func(a *Args) []Meta {
			x, src := a.Tensor(0), a.Tensor(1)
			return []Meta{x.ViewMeta(src.Sizes, src.Strides, src.Offset)}
		},
	},
	viewOp("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", 0, func(a *Args) Meta {
		return narrowed(a.Tensor(0), a.I64(1), a.Int(2), a.Int(3))
	}),
	{
		Schema: "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
		Tags:   LazyBits,
		Decomp: func(b *Build, a *Args) []*Value {
			start := a.Tensor(2)
			Check(start.Dim() == 0 && start.DType.IsInt(), "start must be an 0-dim integral Tensor.")
			return One(b.Call("narrow", a.Tensor(0), a.Int(1), b.CallResult("item", start), a.Int(3)))
		},
	},
	viewList("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", func(a *Args) []Meta {
		x := a.Tensor(0)
		if x.Dim() == 0 {
			FailIndex("Dimension specified as %d but tensor has no dimensions", a.I64(1))
		}
		d := WrapDim(a.I64(1), x.Dim())
		out := manyMetas(x.Sizes[d].Int64())
		for i := range out {
			out[i] = selected(x, int64(d), symbolic.N(int64(i)))
		}
		return out
	}),
	viewList("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", shapeSplit),
	viewList("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", shapeSplit),
	viewList("split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]", shapeSplitSizes),
	viewList("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]", shapeSplitSizes, Core),
	viewList("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", shapeSplitSizes),
	viewList("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", shapeChunk),
	viewList("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", shapeChunk),
	viewList("tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]", func(a *Args) []Meta {
		return tensorSplit(a.Tensor(0), a.Int(1), a.I64(2))
	}),
	viewList("tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]", func(a *Args) []Meta {
		return splitAt(a.Tensor(0), a.Ints(1), a.I64(2))
	}),
	{
		Schema: "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
		Tags:   LazyBits,
		Decomp: func(b *Build, a *Args) []*Value {
			at := a.Tensor(1)
			Check(at.Dim() <= 1 && KindOf(at.DType) == KI64, "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor of int64, but got a tensor with %d dims of %s", at.Dim(), at.DType)
			if at.Dim() == 0 {
				return b.CallN("tensor_split.sections", a.Tensor(0), b.CallResult("item", at), a.Int(2))
			}
			n := at.Sizes[0].Int64()
			cuts := make([]any, n)
			for i := range n {
				cuts[i] = b.CallResult("item", b.Call("select.int", at, 0, i))
			}
			return b.CallN("tensor_split.indices", a.Tensor(0), cuts, a.Int(2))
		},
	},
	viewList("hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", func(a *Args) []Meta {
		return evenSplit(a, "hsplit", hsplitDim(a.Tensor(0)), 1)
	}),
	viewList("hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", func(a *Args) []Meta {
		x := a.Tensor(0)
		Check(x.Dim() >= 1, "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with %d dimensions!", x.Dim())
		return splitAt(x, a.Ints(1), int64(hsplitDim(x)))
	}),
	viewList("vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", func(a *Args) []Meta { return evenSplit(a, "vsplit", 0, 2) }),
	viewList("vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", func(a *Args) []Meta {
		x := a.Tensor(0)
		Check(x.Dim() >= 2, "torch.vsplit requires a tensor with at least 2 dimension, but got a tensor with %d dimensions!", x.Dim())
		return splitAt(x, a.Ints(1), 0)
	}),
	viewList("dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", func(a *Args) []Meta { return evenSplit(a, "dsplit", 2, 3) }),
	viewList("dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", func(a *Args) []Meta {
		x := a.Tensor(0)
		Check(x.Dim() >= 3, "torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with %d dimensions!", x.Dim())
		return splitAt(x, a.Ints(1), 2)
	}),
}

// viewList is an entry whose results are views, in a list.
func viewList(schema string, f func(a *Args) []Meta, tags ...Tag) Op {
	op := Op{Schema: schema, Tags: LazyBits, Shape: f}
	for _, t := range tags {
		op.Tags |= t
	}
	return op
}

func selected(x *Value, dim int64, index symbolic.Int) Meta {
	if x.Dim() == 0 {
		FailIndex("select() cannot be applied to a 0-dim tensor.")
	}
	d := WrapDim(dim, x.Dim())
	size := x.Sizes[d]
	if index.Lt(size.Neg()) || index.Ge(size) {
		FailIndex("select(): index %v out of range for tensor of size %s at dimension %d", index, sizesText(x.Sizes), d)
	}
	if index.Lt(symbolic.N(0)) {
		index = index.Add(size)
	}
	return x.ViewMeta(removeInt(x.Sizes, d), removeInt(x.Strides, d), x.Offset.Add(index.Mul(x.Strides[d])))
}

// slicedArgs is the slice of argument 0 that four arguments from i on describe: dim, start, end, step.
func slicedArgs(a *Args, i int) Meta {
	start, ok1 := a.OptInt(i + 1)
	if !ok1 {
		start = symbolic.N(0)
	}
	end, ok2 := a.OptInt(i + 2)
	if !ok2 {
		end = symbolic.N(1<<63 - 1)
	}
	return sliced(a.Tensor(0), a.I64(i), start, end, a.Int(i+3))
}

func sliced(x *Value, dim int64, start, end, step symbolic.Int) Meta {
	Check(x.Dim() > 0, "slice() cannot be applied to a 0-dim tensor.")
	d := WrapDim(dim, x.Dim())
	zero := symbolic.N(0)
	Check(step.Gt(zero), "slice step must be positive")
	size := x.Sizes[d]
	clamp := func(v, lo symbolic.Int) symbolic.Int {
		if v.Lt(zero) {
			v = v.Add(size)
		}
		switch {
		case v.Lt(lo):
			return lo
		case v.Gt(size):
			return size
		}
		return v
	}
	start = clamp(start, zero)
	end = clamp(end, start)
	sizes, strides := cloneInts(x.Sizes), cloneInts(x.Strides)
	sizes[d] = end.Sub(start)
	if step.Ne(symbolic.N(1)) {
		sizes[d] = sizes[d].Add(step).SubN(1).FloorDiv(step)
	}
	strides[d] = strides[d].Mul(step)
	return x.ViewMeta(sizes, strides, x.Offset.Add(start.Mul(x.Strides[d])))
}

func narrowed(x *Value, dim int64, start, length symbolic.Int) Meta {
	zero := symbolic.N(0)
	Check(x.Dim() > 0, "narrow() cannot be applied to a 0-dim tensor.")
	Check(length.Ge(zero), "narrow(): length must be non-negative.")
	d := WrapDim(dim, x.Dim())
	size := x.Sizes[d]
	if start.Lt(size.Neg()) || start.Gt(size) {
		FailIndex("start out of range (expected to be in range of [%v, %v], but got %v)", size.Neg(), size, start)
	}
	if start.Lt(zero) {
		start = start.Add(size)
	}
	Check(start.Le(size.Sub(length)), "start (%v) + length (%v) exceeds dimension size (%v).", start, length, size)
	return sliced(x, int64(d), start, start.Add(length), symbolic.N(1))
}

// manyMetas makes room for n views. What costs no memory, such as an expanded dimension, may have any size, but not any number of views.
func manyMetas(n int64) []Meta {
	const most = 1 << 24
	if n < 0 || n > most {
		Fail("%d views of one tensor are too many", n)
	}
	return make([]Meta, n)
}

func shapeSplit(a *Args) []Meta { return splitEvery(a.Tensor(0), a.Int(1), a.I64(2)) }

func splitEvery(x *Value, every symbolic.Int, dim int64) []Meta {
	zero := symbolic.N(0)
	Check(x.Dim() != 0, "split expects at least a 1-dimensional tensor")
	Check(every.Ge(zero), "split expects split_size be non-negative, but got split_size=%v", every)
	d := WrapDim(dim, x.Dim())
	size := x.Sizes[d]
	Check(every.Gt(zero) || size.Eq(zero), "split_size can only be 0 if dimension size is 0, but got dimension size of %v", size)
	n := int64(1)
	if every.Gt(zero) {
		n = max((size.Int64()+every.Int64()-1)/every.Int64(), 1)
	}
	out := manyMetas(n)
	for i := range out {
		start := every.MulN(int64(i))
		end := start.Add(every)
		if i == len(out)-1 {
			end = size
		}
		out[i] = sliced(x, int64(d), start, end, symbolic.N(1))
	}
	return out
}

func shapeSplitSizes(a *Args) []Meta {
	x, sizes := a.Tensor(0), a.Ints(1)
	Check(x.Dim() != 0, "split expects at least a 1-dimensional tensor")
	d := WrapDim(a.I64(2), x.Dim())
	out := make([]Meta, len(sizes))
	start := symbolic.N(0)
	for i, n := range sizes {
		Check(n.Ge(symbolic.N(0)), "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=%s", sizesText(sizes))
		sz, st := cloneInts(x.Sizes), x.Strides
		sz[d] = n
		out[i] = x.ViewMeta(sz, st, x.Offset.Add(start.Mul(x.Strides[d])))
		start = start.Add(n)
	}
	Check(start.Eq(x.Sizes[d]), "split_with_sizes expects split_sizes to sum exactly to %v (input tensor's size at dimension %d), but got split_sizes=%s", x.Sizes[d], d, sizesText(sizes))
	return out
}

func shapeChunk(a *Args) []Meta {
	x, chunks := a.Tensor(0), a.I64(1)
	Check(x.Dim() > 0, "chunk expects at least a 1-dimensional tensor")
	Check(chunks > 0, "chunk expects `chunks` to be greater than 0, got: %d", chunks)
	d := WrapDim(a.I64(2), x.Dim())
	size := x.Sizes[d]
	if size.Eq(symbolic.N(0)) {
		out := manyMetas(chunks)
		for i := range out {
			out[i] = x.AliasMeta()
		}
		return out
	}
	return splitEvery(x, size.AddN(chunks-1).DivN(chunks), int64(d))
}

// tensorSplit cuts into a number of sections; the first ones are longer by one where the size does not divide.
func tensorSplit(x *Value, sections symbolic.Int, dim int64) []Meta {
	Check(x.Dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with %d dims", x.Dim())
	Check(sections.Gt(symbolic.N(0)), "number of sections must be larger than 0, got %v", sections)
	d := WrapDim(dim, x.Dim())
	n := sections.Int64()
	q, r := x.Sizes[d].FloorDiv(sections), x.Sizes[d].Mod(sections)
	out := manyMetas(n)
	start := symbolic.N(0)
	for i := range out {
		end := start.Add(q)
		if symbolic.N(int64(i)).Lt(r) {
			end = end.AddN(1)
		}
		out[i] = sliced(x, int64(d), start, end, symbolic.N(1))
		start = end
	}
	return out
}

func splitAt(x *Value, cuts []symbolic.Int, dim int64) []Meta {
	Check(x.Dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with %d dims", x.Dim())
	d := WrapDim(dim, x.Dim())
	out := make([]Meta, 0, len(cuts)+1)
	start := symbolic.N(0)
	for _, end := range cuts {
		out = append(out, sliced(x, int64(d), start, end, symbolic.N(1)))
		start = end
	}
	return append(out, sliced(x, int64(d), start, x.Sizes[d], symbolic.N(1)))
}

func hsplitDim(x *Value) int {
	if x.Dim() == 1 {
		return 0
	}
	return 1
}

func evenSplit(a *Args, name string, d, least int) []Meta {
	x, n := a.Tensor(0), a.Int(1)
	if name == "hsplit" {
		least = 1
	}
	Check(x.Dim() >= least, "torch.%s requires a tensor with at least %d dimension, but got a tensor with %d dimensions!", name, least, x.Dim())
	zero := symbolic.N(0)
	Check(n.Ne(zero) && x.Sizes[d].Mod(n).Eq(zero), "torch.%s attempted to split along dimension %d, but the size of the dimension %v is not divisible by the split_size %v!", name, d, x.Sizes[d], n)
	return tensorSplit(x, n, int64(d))
}
