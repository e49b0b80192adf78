package aten

import (
	"slices"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// joinOps put tensors together, repeat and turn them.
var joinOps = []Op{
	{
		Schema: "cat(Tensor[] tensors, int dim=0) -> Tensor",
		Tags:   Core,
		Shape:  shapeCat,
		CPU:    catKernel,
	},
	catAlias("concat(Tensor[] tensors, int dim=0) -> Tensor"),
	catAlias("concatenate(Tensor[] tensors, int dim=0) -> Tensor"),
	{
		Schema: "stack(Tensor[] tensors, int dim=0) -> Tensor",
		Decomp: stackDecomp,
	},
	{
		Schema: "_stack(Tensor[] tensors, int dim=0) -> Tensor",
		Decomp: stackDecomp,
	},
	{
		Schema: "hstack(Tensor[] tensors) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			Check(len(a.Tensors(0)) > 0, "hstack expects a non-empty TensorList")
			xs := eachOf(b, "atleast_1d", a.Tensors(0))
			if xs[0].Dim() == 1 {
				return One(b.Call("cat", xs, 0))
			}
			return One(b.Call("cat", xs, 1))
		},
	},
	stackAlong("vstack(Tensor[] tensors) -> Tensor", "atleast_2d", 0),
	stackAlong("row_stack(Tensor[] tensors) -> Tensor", "atleast_2d", 0),
	stackAlong("dstack(Tensor[] tensors) -> Tensor", "atleast_3d", 2),
	{
		Schema: "column_stack(Tensor[] tensors) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			Check(len(a.Tensors(0)) > 0, "column_stack expects a non-empty TensorList")
			xs := make([]*Value, len(a.Tensors(0)))
			for i, x := range a.Tensors(0) {
				if xs[i] = x; x.Dim() <= 1 {
					xs[i] = b.Call("view", x, []symbolic.Int{x.Numel(), symbolic.N(1)})
				}
			}
			return One(b.Call("cat", xs, 1))
		},
	},
	atLeastOp("atleast_1d(Tensor self) -> Tensor", 1),
	atLeastOp("atleast_2d(Tensor self) -> Tensor", 2),
	atLeastOp("atleast_3d(Tensor self) -> Tensor", 3),
	atLeastList("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", "atleast_1d"),
	atLeastList("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", "atleast_2d"),
	atLeastList("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", "atleast_3d"),
	{
		Schema: "block_diag(Tensor[] tensors) -> Tensor",
		Shape:  shapeBlockDiag,
		CPU: func(k *Kernel) {
			o := k.Out[0]
			fillAll(k.Pool, o, IntS(0))
			var r, c int64
			for _, v := range k.Tensors(0) {
				h, w := blockSizes(v)
				part := o.WithView([]int64{h.Int64(), w.Int64()}, o.Strides(), o.Offset()+r*o.Strides()[0]+c*o.Strides()[1])
				if part.Numel() > 0 {
					src := v.T
					if src.Dim() == 0 {
						src = src.WithView([]int64{1}, []int64{1}, src.Offset())
					}
					Copy(k.Pool, part, src)
				}
				r, c = r+h.Int64(), c+w.Int64()
			}
		},
	},
	{
		Schema: "repeat(Tensor self, SymInt[] repeats) -> Tensor",
		Tags:   Core,
		Shape:  shapeRepeat,
		CPU:    repeatKernel,
	},
	{
		Schema: "tile(Tensor self, SymInt[] dims) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			x, reps := a.Tensor(0), a.Ints(1)
			for len(reps) < x.Dim() {
				reps = insertInt(reps, 0, symbolic.N(1))
			}
			return One(b.Call("repeat", x, reps))
		},
	},
	{
		Schema:  "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
		Tags:    DataDependent,
		Dynamic: repeatCounts,
	},
	{
		Schema: "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			x, reps, dim := a.Tensor(0), a.Tensor(1), a.V[2]
			if dim == nil {
				x, dim = b.Call("flatten.using_ints", x), 0
			}
			if reps.Dim() == 0 || reps.Dim() == 1 && reps.Sizes[0].Eq(symbolic.N(1)) {
				reps = b.Call("expand", b.Call("reshape", reps, []int{1}), []symbolic.Int{x.Size(int(mustInt(dim)))})
			} else {
				Check(reps.Dim() == 1, "repeats must be 0-dim or 1-dim tensor")
				Check(reps.Sizes[0].Eq(x.Size(int(mustInt(dim)))), "repeats must have the same size as input along dim, but got repeats.size(0) = %v and input.size(%d) = %v", reps.Sizes[0], mustInt(dim), x.Size(int(mustInt(dim))))
			}
			return One(b.Call("index_select", x, dim, b.Call("repeat_interleave.Tensor", reps, Kw("output_size", a.V[3]))))
		},
	},
	{
		Schema: "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			x, n := a.Tensor(0), a.Int(1)
			Check(n.Ge(symbolic.N(0)), "Repeats must be non-negative")
			if !a.Has(2) || x.Dim() == 0 {
				x = b.Call("flatten.using_ints", x)
			}
			d := 0
			if a.Has(2) {
				d = WrapDim(a.I64(2), x.Dim())
			}
			shape := insertInt(x.Sizes, d+1, n)
			wide := b.Call("clone", b.Call("expand", b.Call("unsqueeze", x, d+1), shape), Kw("memory_format", ContiguousFormat))
			return One(b.Call("flatten.using_ints", wide, d, d+1))
		},
	},
	{
		Schema: "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
		Decomp: rollDecomp,
	},
	{
		Schema: "flip(Tensor self, int[] dims) -> Tensor",
		Tags:   Core,
		Shape: func(a *Args) []Meta {
			x := a.Tensor(0)
			if len(a.I64s(1)) > 0 {
				WrapDims(a.I64s(1), x.Dim())
			}
			return []Meta{LikeMeta(x, x.DType, PreserveFormat)}
		},
		CPU: func(k *Kernel) { Copy(k.Pool, k.Out[0], flipped(k.T(0), k.I64s(1))) },
	},
	{
		Schema: "fliplr(Tensor self) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			Check(a.Tensor(0).Dim() >= 2, "Input must be >= 2-d.")
			return One(b.Call("flip", a.Tensor(0), []int{1}))
		},
	},
	{
		Schema: "flipud(Tensor self) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			Check(a.Tensor(0).Dim() >= 1, "Input must be >= 1-d.")
			return One(b.Call("flip", a.Tensor(0), []int{0}))
		},
	},
	{
		Schema: "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
		Decomp: rot90,
	},
	viewList("broadcast_tensors(Tensor[] tensors) -> Tensor[]", func(a *Args) []Meta {
		xs := a.Tensors(0)
		sizes := BroadcastSizes(xs...)
		out := make([]Meta, len(xs))
		for i, x := range xs {
			out[i] = expanded(x, sizes)
		}
		return out
	}),
	{
		Schema: "meshgrid(Tensor[] tensors) -> Tensor[]",
		Decomp: func(b *Build, a *Args) []*Value { return meshgrid(b, a.Tensors(0), false) },
	},
	{
		Schema: "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
		Decomp: func(b *Build, a *Args) []*Value {
			Check(a.Str(1) == "xy" || a.Str(1) == "ij", "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %s", a.Str(1))
			return meshgrid(b, a.Tensors(0), a.Str(1) == "xy")
		},
	},
	{
		Schema: "cartesian_prod(Tensor[] tensors) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			xs := a.Tensors(0)
			for _, x := range xs {
				Check(x.Dim() == 1, "Expect a 1D vector, but got shape %s", sizesText(x.Sizes))
			}
			if len(xs) == 1 {
				return One(b.Call("alias", xs[0]))
			}
			grids := meshgrid(b, xs, false)
			for i, g := range grids {
				grids[i] = b.Call("flatten.using_ints", g)
			}
			return One(b.Call("stack", grids, 1))
		},
	},
	{
		Schema: "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			x, r := a.Tensor(0), a.I64(1)
			Check(x.Dim() == 1, "Expect a 1D vector, but got shape %s", sizesText(x.Sizes))
			Check(r >= 0, "Expect a non-negative number, but got %d", r)
			if r == 0 {
				return One(b.Call("new_empty", x, []int{0}))
			}
			rows := combinationRows(x.Sizes[0].Int64(), r, a.Bool(2))
			t, _ := tensor.FromSlice(rows, int64(len(rows))/r, r)
			return One(b.Call("index.Tensor", x, []*Value{FromTensor(t)}))
		},
	},
	{
		Schema: "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
		Decomp: chunkCat,
	},
}

func catAlias(schema string) Op {
	return Op{Schema: schema, Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("cat", a.V[0], a.V[1])) }}
}

func eachOf(b *Build, name string, xs []*Value) []*Value {
	out := make([]*Value, len(xs))
	for i, x := range xs {
		out[i] = b.Call(name, x)
	}
	return out
}

func stackAlong(schema, widen string, dim int) Op {
	return Op{Schema: schema, Decomp: func(b *Build, a *Args) []*Value {
		Check(len(a.Tensors(0)) > 0, "%s expects a non-empty TensorList", a.Op.schema.Base)
		return One(b.Call("cat", eachOf(b, widen, a.Tensors(0)), dim))
	}}
}

// skipped reports a tensor of shape [0], which cat takes as nothing whatever the others' rank.
func skipped(v *Value) bool { return v.Dim() == 1 && v.Sizes[0].Eq(symbolic.N(0)) }

func shapeCat(a *Args) []Meta {
	xs := a.Tensors(0)
	if len(xs) == 0 {
		FailAs("ValueError", "torch.cat(): expected a non-empty list of Tensors")
	}
	for i, x := range xs {
		Check(x.Dim() > 0, "zero-dimensional tensor (at position %d) cannot be concatenated", i)
	}
	dt := ResultType(xs...)
	first := -1
	for i, x := range xs {
		if !skipped(x) {
			first = i
			break
		}
	}
	if first < 0 {
		WrapDim(a.I64(1), 1)
		return []Meta{Contig(dt, symbolic.N(0))}
	}
	ref := xs[first]
	d := WrapDim(a.I64(1), ref.Dim())
	sizes := cloneInts(ref.Sizes)
	for i, x := range xs[first+1:] {
		if skipped(x) {
			continue
		}
		Check(x.Dim() == ref.Dim(), "Tensors must have same number of dimensions: got %d and %d", ref.Dim(), x.Dim())
		for e := range sizes {
			if e != d && x.Sizes[e].Ne(ref.Sizes[e]) {
				Fail("Sizes of tensors must match except in dimension %d. Expected size %v but got size %v for tensor number %d in the list.", d, ref.Sizes[e], x.Sizes[e], first+1+i)
			}
		}
		sizes[d] = sizes[d].Add(x.Sizes[d])
	}
	m := Contig(dt, sizes...)
	for _, x := range xs {
		if !x.SuggestChannelsLast() {
			return []Meta{m}
		}
	}
	m.Strides = ChannelsLastStrides(sizes)
	return []Meta{m}
}

func catKernel(k *Kernel) {
	o := k.Out[0]
	if o.Numel() == 0 {
		return
	}
	d := WrapDim(k.I64(1), o.Dim())
	at := o.Offset()
	for _, v := range k.Tensors(0) {
		if skipped(v) {
			continue
		}
		if v.T.Numel() > 0 {
			Copy(k.Pool, o.WithView(v.T.Sizes(), o.Strides(), at), v.T)
		}
		at += v.T.Sizes()[d] * o.Strides()[d]
	}
}

func stackDecomp(b *Build, a *Args) []*Value {
	xs := a.Tensors(0)
	Check(len(xs) > 0, "stack expects a non-empty TensorList")
	d := WrapDim(a.I64(1), xs[0].Dim()+1)
	out := make([]*Value, len(xs))
	for i, x := range xs {
		if !SameSizes(x.Sizes, xs[0].Sizes) {
			Fail("stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %d", sizesText(xs[0].Sizes), sizesText(x.Sizes), i)
		}
		out[i] = x
	}
	if first := xs[0]; d < first.Dim() && first.SuggestChannelsLast() { // cat keeps that order of images
		sizes := slices.Insert(cloneInts(first.Sizes), d, symbolic.N(int64(len(xs))))
		return One(b.Call("view", b.Call("cat", out, d), sizes))
	}
	for i := range out {
		out[i] = b.Call("unsqueeze", out[i], d)
	}
	return One(b.Call("cat", out, d))
}

func atLeastOp(schema string, n int) Op {
	return viewOp(schema, 0, func(a *Args) Meta {
		x := a.Tensor(0)
		v := &Value{Meta: x.AliasMeta()}
		for v.Dim() < n {
			at := 0
			if v.Dim() == 2 {
				at = 2
			}
			m := unsqueezed(v, at)
			v = &Value{Meta: m}
		}
		m := v.Meta
		m.View = x
		return m
	})
}

func atLeastList(schema, name string) Op {
	return Op{Schema: schema, Decomp: func(b *Build, a *Args) []*Value { return eachOf(b, name, a.Tensors(0)) }}
}

func blockSizes(v *Value) (h, w symbolic.Int) {
	switch v.Dim() {
	case 0:
		return symbolic.N(1), symbolic.N(1)
	case 1:
		return symbolic.N(1), v.Sizes[0]
	}
	return v.Sizes[0], v.Sizes[1]
}

func shapeBlockDiag(a *Args) []Meta {
	xs := a.Tensors(0)
	if len(xs) == 0 {
		return []Meta{Contig(tensor.Float32, symbolic.N(1), symbolic.N(0))}
	}
	var h, w symbolic.Int
	for i, x := range xs {
		Check(x.Dim() <= 2, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input %d has %d dimensions", i, x.Dim())
		bh, bw := blockSizes(x)
		h, w = h.Add(bh), w.Add(bw)
	}
	return []Meta{Contig(ResultType(xs...), h, w)}
}

func shapeRepeat(a *Args) []Meta {
	x, reps := a.Tensor(0), a.Ints(1)
	Check(len(reps) >= x.Dim(), "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
	sizes := cloneInts(reps)
	for i := range sizes {
		Check(reps[i].Ge(symbolic.N(0)), "Trying to create tensor with negative dimension %v: %s", reps[i], sizesText(reps))
		if d := i - (len(reps) - x.Dim()); d >= 0 {
			sizes[i] = reps[i].Mul(x.Sizes[d])
		}
	}
	return []Meta{Contig(x.DType, sizes...)}
}

// repeatKernel sees each output dimension as [repeats, size] and broadcasts the input over the first.
func repeatKernel(k *Kernel) {
	o, x, reps := k.Out[0], k.T(0), k.I64s(1)
	if o.Numel() == 0 {
		return
	}
	var sizes, so, sx []int64
	for i, r := range reps {
		size, stride := int64(1), int64(0)
		if d := i - (len(reps) - x.Dim()); d >= 0 {
			size, stride = x.Sizes()[d], x.Strides()[d]
		}
		sizes = append(sizes, r, size)
		so = append(so, o.Strides()[i]*size, o.Strides()[i])
		sx = append(sx, 0, stride)
	}
	Copy(k.Pool, o.WithView(sizes, so, o.Offset()), x.WithView(sizes, sx, x.Offset()))
}

func repeatCounts(k *Kernel) []*tensor.Tensor {
	x := k.T(0)
	Check(x.Dim() == 1, "repeat_interleave only accept 1D vector as repeat")
	Check(x.DType() == tensor.Int64 || x.DType() == tensor.Int32, "repeats has to be Long or Int tensor")
	n := tensor.Contiguous[int64](k.as(x, tensor.Int64))
	total := int64(0)
	for _, c := range n {
		Check(c >= 0, "repeats can not be negative")
		total += c
		Check(total <= mostBytes()/8, "repeat_interleave: the output would have more than %d elements", mostBytes()/8)
	}
	if want, ok := k.OptInt(1); ok {
		Check(want.Int64() == total, "allocated size does not match required size")
	}
	out := make([]int64, 0, total)
	for i, c := range n {
		for range c {
			out = append(out, int64(i))
		}
	}
	t, _ := tensor.FromBits(tensor.Int64, out, total)
	if x.DType() != tensor.Int64 {
		t = k.as(t, x.DType())
	}
	return []*tensor.Tensor{t}
}

// mustInt reads an int argument that a decomposition may have replaced by a plain number.
func mustInt(v any) int64 {
	s, _ := toScalar(v)
	return s.Int64()
}

func rollDecomp(b *Build, a *Args) []*Value {
	x, shifts, dims := a.Tensor(0), a.Ints(1), a.I64s(2)
	Check(len(shifts) > 0, "`shifts` required")
	if len(dims) == 0 && len(shifts) == 1 {
		flat := b.Call("view", b.Call("contiguous", x), []symbolic.Int{x.Numel()})
		return One(b.Call("view", b.Call("roll", flat, shifts, []int{0}), x.Sizes))
	}
	Check(len(shifts) == len(dims), "shifts and dimensions must align. shifts: %d, dims:%d", len(shifts), len(dims))
	if x.empty() {
		return One(b.Call("clone", x, Kw("memory_format", PreserveFormat)))
	}
	for i, d := range dims {
		if x.Dim() == 0 {
			FailIndex("Dimension specified as %d but tensor has no dimensions", d)
		}
		size := x.Size(int(d))
		start := size.Sub(shifts[i]).Mod(size)
		x = b.Call("cat", []*Value{b.Call("narrow", x, d, start, size.Sub(start)), b.Call("narrow", x, d, 0, start)}, d)
	}
	return One(b.Call("contiguous", x))
}

// flipped looks at t backwards along dims. Its strides are negative: it is only for copying from.
func flipped(t *tensor.Tensor, dims []int64) *tensor.Tensor {
	strides := append([]int64(nil), t.Strides()...)
	off := t.Offset()
	if t.Dim() == 0 || t.Numel() == 0 {
		return t
	}
	for _, d := range dims {
		w := WrapDim(d, t.Dim())
		off += (t.Sizes()[w] - 1) * strides[w]
		strides[w] = -strides[w]
	}
	return t.WithView(t.Sizes(), strides, off)
}

func rot90(b *Build, a *Args) []*Value {
	x, times, dims := a.Tensor(0), a.I64(1), a.I64s(2)
	Check(len(dims) == 2, "expected total rotation dims == 2, but got dims = %d", len(dims))
	Check(x.Dim() >= 2, "expected total dims >= 2, but got total dims = %d", x.Dim())
	Check(dims[0] != dims[1] && max(dims[0]-dims[1], dims[1]-dims[0]) != int64(x.Dim()), "expected rotation dims to be different, but got dim0 = %d and dim1 = %d", dims[0], dims[1])
	d0, d1 := WrapDim(dims[0], x.Dim()), WrapDim(dims[1], x.Dim())
	switch ((times % 4) + 4) % 4 {
	case 1:
		return One(b.Call("transpose.int", b.Call("flip", x, []int{d1}), d0, d1))
	case 2:
		return One(b.Call("flip", x, []int{d0, d1}))
	case 3:
		return One(b.Call("transpose.int", b.Call("flip", x, []int{d0}), d0, d1))
	}
	return One(b.Call("clone", x, Kw("memory_format", ContiguousFormat)))
}

func meshgrid(b *Build, xs []*Value, xy bool) []*Value {
	Check(len(xs) > 0, "meshgrid expects a non-empty TensorList")
	sizes := make([]symbolic.Int, len(xs))
	for i, x := range xs {
		Check(x.Dim() <= 1, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: %s", sizesText(x.Sizes))
		Check(x.DType == xs[0].DType, "torch.meshgrid expects all tensors to have the same dtype")
		sizes[i] = x.Numel()
	}
	out := make([]*Value, len(xs))
	swap := xy && len(xs) >= 2
	if swap {
		sizes[0], sizes[1] = sizes[1], sizes[0]
	}
	for i, x := range xs {
		at := i
		if swap && i < 2 {
			at = 1 - i
		}
		shape := make([]symbolic.Int, len(xs))
		for d := range shape {
			shape[d] = symbolic.N(1)
		}
		shape[at] = x.Numel()
		out[i] = b.Call("expand", b.Call("view", x, shape), sizes)
	}
	return out
}

// combinationRows lists the index tuples of length r out of n in lexicographic order.
func combinationRows(n, r int64, replace bool) []int64 {
	var out []int64
	pick := make([]int64, r)
	var rec func(at, from int64)
	rec = func(at, from int64) {
		if at == r {
			Check(int64(len(out)) < maxAlloc/64, "combinations: too many results")
			out = append(out, pick...)
			return
		}
		for i := from; i < n; i++ {
			pick[at] = i
			next := i + 1
			if replace {
				next = i
			}
			rec(at+1, next)
		}
	}
	if r <= n || replace {
		rec(0, 0)
	}
	return out
}

func chunkCat(b *Build, a *Args) []*Value {
	xs, n := a.Tensors(0), a.Int(2)
	Check(n.Gt(symbolic.N(0)), "_chunk_cat expects positive num_chunks")
	Check(len(xs) > 0, "_chunk_cat expects a non-empty input tensor list")
	d := WrapDim(a.I64(1), xs[0].Dim())
	parts := make([]*Value, len(xs))
	for i, x := range xs {
		size := x.Size(d)
		per := size.AddN(n.Int64() - 1).FloorDiv(n)
		pad := make([]symbolic.Int, 2*(x.Dim()-d))
		pad[len(pad)-1] = per.Mul(n).Sub(size)
		if pad[len(pad)-1].Gt(symbolic.N(0)) {
			x = b.Call("constant_pad_nd", x, pad)
		}
		shape := append(cloneInts(x.Sizes[:d]), n, symbolic.N(-1))
		parts[i] = b.Call("view", x, shape)
	}
	return One(b.Call("cat", parts, d+1))
}
