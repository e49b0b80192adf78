package aten

import (
	"strings"
	"unsafe"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// indexOps read elements at places that tensors name.
var indexOps = []Op{
	{
		Schema: "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
		Tags:   Core,
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("_unsafe_index.Tensor", a.Tensor(0), expandMasks(b, a.Tensor(0), a.Tensors(1))))
		},
	},
	{
		Schema: "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
		Shape: func(a *Args) []Meta {
			ix := newAdvanced(a.Tensor(0), a.Tensors(1))
			return []Meta{PointwiseMeta(a.Tensor(0).DType, ix.operands()...)}
		},
		CPU:  indexKernel,
		Note: "indices are checked here too",
	},
	{
		Schema: "index_select(Tensor self, int dim, Tensor index) -> Tensor",
		Tags:   Core,
		Shape: func(a *Args) []Meta {
			x, ix := a.Tensor(0), a.Tensor(2)
			d := WrapDim(a.I64(1), x.Dim())
			if ix.Dim() > 1 {
				FailIndex("index_select(): Index is supposed to be a vector")
			}
			Check(ix.DType == tensor.Int64 || ix.DType == tensor.Int32, "index_select(): Expected dtype int32 or int64 for index")
			if x.Dim() == 0 {
				Check(ix.Numel().Eq(symbolic.N(1)), "index_select(): Index to scalar can have only 1 value, got %v value(s)", ix.Numel())
				return []Meta{Contig(x.DType)}
			}
			sizes := cloneInts(x.Sizes)
			sizes[d] = ix.Numel()
			return []Meta{Contig(x.DType, sizes...)}
		},
		CPU: indexSelectKernel,
	},
	{
		Schema: "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
		Tags:   Core,
		Shape: func(a *Args) []Meta {
			x, ix := a.Tensor(0), a.Tensor(2)
			d := WrapDim(a.I64(1), x.Dim())
			Check(ix.DType == tensor.Int64 || ix.DType == tensor.Int32 || ix.empty(), "gather(): Expected dtype int32/int64 for index")
			checkGatherSizes("input", x, ix, d)
			return []Meta{Contig(x.DType, ix.Sizes...)}
		},
		CPU: gatherKernel,
	},
	{
		Schema: "take(Tensor self, Tensor index) -> Tensor",
		Shape: func(a *Args) []Meta {
			x, ix := a.Tensor(0), a.Tensor(1)
			Check(ix.DType == tensor.Int64, "take(): Expected a long tensor for index, but got %s", ix.DType.CPPName())
			if x.empty() && !ix.empty() {
				FailIndex("take(): tried to take from an empty tensor")
			}
			return []Meta{Contig(x.DType, ix.Sizes...)}
		},
		CPU: func(k *Kernel) {
			x := k.contiguous(k.T(0))
			ix := tensor.Contiguous[int64](k.contiguous(k.T(1)))
			n, size := x.Numel(), uintptr(x.DType().Size())
			d, s := base(k.Out[0]), base(x)
			k.Pool.ParallelFor(len(ix), grain, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					at := ix[i]
					if at < -n || at >= n {
						FailIndex("out of range: tried to access index %d on a tensor of %d elements.", at, n)
					}
					if at < 0 {
						at += n
					}
					copyElement(unsafe.Add(d, uintptr(i)*size), unsafe.Add(s, uintptr(at)*size), size)
				}
			})
		},
	},
	{
		Schema: "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			x, ix := a.Tensor(0), a.Tensor(1)
			Check(ix.DType == tensor.Int64, "torch.take_along_dim(): dtype of indices should be Long but got %s", ix.DType.CPPName())
			if !a.Has(2) {
				return One(b.Call("gather", b.Call("view", b.Call("contiguous", x), Ints(-1)), 0, b.Call("view", b.Call("contiguous", ix), Ints(-1))))
			}
			Check(x.Dim() == ix.Dim(), "torch.take_along_dim(): input and indices should have the same number of dimensions, but got %d dimensions for input, and %d dimensions for indices", x.Dim(), ix.Dim())
			d := WrapDim(a.I64(2), x.Dim())
			if size := x.Size(d); size.Gt(symbolic.N(0)) { // unlike gather, indices may count from the end
				ix = b.Call("where.self", b.Call("lt.Scalar", ix, 0), b.Call("add.Scalar", ix, size), ix)
			}
			xs, is := cloneInts(x.Sizes), cloneInts(ix.Sizes)
			if x.Dim() > 0 {
				is[d] = x.Sizes[d]
				common := cloneInts(broadcast2(xs, is))
				is = common
				xs = cloneInts(common)
				is[d] = ix.Sizes[d]
				xs[d] = x.Sizes[d]
			}
			return One(b.Call("gather", b.Call("expand", x, xs), d, b.Call("expand", ix, is)))
		},
	},
	{
		Schema: "masked_select(Tensor self, Tensor mask) -> Tensor",
		Tags:   Core | DataDependent,
		Dynamic: func(k *Kernel) []*tensor.Tensor {
			x, mask := k.Tensor(0), k.Tensor(1)
			Check(mask.DType == tensor.Bool, "masked_select: expected BoolTensor for mask")
			sizes := Int64s(BroadcastSizes(x, mask))
			xs, ms := k.contiguous(broadcastTo(x.T, sizes)), k.contiguous(broadcastTo(mask.T, sizes))
			places := nonzeroPlaces(ms)
			out := tensor.New(x.DType, int64(len(places)))
			size := uintptr(x.DType.Size())
			d, s := base(out), base(xs)
			for i, at := range places {
				copyElement(unsafe.Add(d, uintptr(i)*size), unsafe.Add(s, uintptr(at)*size), size)
			}
			return []*tensor.Tensor{out}
		},
	},
	{
		Schema:  "nonzero(Tensor self) -> Tensor",
		Tags:    Core | DataDependent,
		Dynamic: func(k *Kernel) []*tensor.Tensor { return []*tensor.Tensor{nonzeroRows(k, k.T(0))} },
	},
	{
		Schema: "argwhere(Tensor self) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("nonzero", a.Tensor(0))) },
	},
	{
		Schema: "nonzero_numpy(Tensor self) -> Tensor[]",
		Decomp: func(b *Build, a *Args) []*Value {
			x := a.Tensor(0)
			if x.Dim() == 0 {
				x = b.Call("unsqueeze", x, 0)
			}
			return b.CallN("unbind.int", b.Call("nonzero", x), 1)
		},
	},
	{
		Schema: "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
		Shape: func(a *Args) []Meta {
			Check(a.I64(1) >= 0, "nonzero_static: 'size' must be an non-negative integer")
			return []Meta{Contig(tensor.Int64, a.Int(1), symbolic.N(int64(a.Tensor(0).Dim())))}
		},
		CPU: func(k *Kernel) {
			o, rows := k.Out[0], nonzeroRows(k, k.T(0))
			fillAll(k.Pool, o, IntS(k.I64(2)))
			n := min(o.Sizes()[0], rows.Sizes()[0])
			part := []int64{n, o.Sizes()[1]}
			if n*part[1] > 0 {
				Copy(k.Pool, o.WithView(part, o.Strides(), o.Offset()), rows.WithView(part, rows.Strides(), 0))
			}
		},
	},
	{
		Schema: "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			x := a.Tensor(0)
			got := b.Call("_unsafe_index.Tensor", x, clampIndices(b, x, a.Tensors(2)))
			return One(b.Call("masked_fill.Scalar", got, b.Call("logical_not", a.Tensor(1)), a.Scalar(3)))
		},
	},
}

// advanced is the geometry of an indexing expression, after PyTorch's AdvancedIndex: the tensor with the indexed
// dimensions' strides set to 0, and the index tensors in place.
type advanced struct {
	src     *Value   // as it is walked: indexed dimensions first if they do not stand together
	indices []*Value // broadcast to one shape, one for each indexed dimension
	dims    []int    // the indexed dimensions of src
	before  int      // dimensions of src ahead of the indexed ones
	after   int
	shape   []symbolic.Int // of the index tensors
}

// newAdvanced checks the indices (no masks) and lays out the result.
func newAdvanced(x *Value, indices []*Value) *advanced {
	if len(indices) > x.Dim() {
		FailIndex("too many indices for tensor of dimension %d (got %d)", x.Dim(), len(indices))
	}
	var given []*Value
	var dims []int
	for d, v := range indices {
		if v == nil {
			continue
		}
		if v.DType != tensor.Int64 && v.DType != tensor.Int32 {
			FailIndex("tensors used as indices must be long, int, byte or bool tensors")
		}
		given, dims = append(given, v), append(dims, d)
	}
	Check(len(given) > 0, "at least one index must be provided")
	shape := indexShape(given)
	ix := &advanced{src: x, dims: dims, shape: shape}
	ix.before = dims[0]
	if dims[len(dims)-1]-dims[0] != len(dims)-1 { // separated: indexed dimensions move to the front
		order := make([]int64, 0, x.Dim())
		taken := make([]bool, x.Dim())
		for i, d := range dims {
			order, taken[d], ix.dims[i] = append(order, int64(d)), true, i
		}
		for d := range x.Dim() {
			if !taken[d] {
				order = append(order, int64(d))
			}
		}
		m := permuted(x, order)
		ix.src, ix.before = &Value{Meta: m}, 0
		if x.T != nil {
			ix.src.T = x.T.WithView(Int64s(m.Sizes), Int64s(m.Strides), x.T.Offset())
		}
	}
	ix.after = x.Dim() - ix.before - len(dims)
	zero := symbolic.N(0)
	empty := symbolic.Prod(shape...).Eq(zero)
	for i, d := range ix.dims {
		if ix.src.Sizes[d].Eq(zero) && !empty {
			FailIndex("index is out of bounds for dimension with size 0")
		}
		m := expanded(given[i], shape)
		v := &Value{Meta: m}
		if given[i].T != nil {
			v.T = broadcastTo(given[i].T, Int64s(shape))
		}
		ix.indices = append(ix.indices, v)
	}
	return ix
}

func indexShape(given []*Value) []symbolic.Int {
	shape := given[0].Sizes
	for _, v := range given[1:] {
		if !canBroadcast(shape, v.Sizes) {
			texts := make([]string, len(given))
			for i, g := range given {
				texts[i] = sizesText(g.Sizes)
			}
			FailIndex("shape mismatch: indexing tensors could not be broadcast together with shapes %s", strings.Join(texts, ", "))
		}
		shape = broadcast2(shape, v.Sizes)
	}
	return shape
}

func canBroadcast(a, b []symbolic.Int) bool {
	one := symbolic.N(1)
	for i := 1; i <= min(len(a), len(b)); i++ {
		x, y := a[len(a)-i], b[len(b)-i]
		if x.Ne(y) && x.Ne(one) && y.Ne(one) {
			return false
		}
	}
	return true
}

// outSizes is the shape of the indexed tensor.
func (ix *advanced) outSizes() []symbolic.Int {
	sizes := append(cloneInts(ix.src.Sizes[:ix.before]), ix.shape...)
	return append(sizes, ix.src.Sizes[ix.before+len(ix.dims):]...)
}

// operands are the tensors whose strides decide the result's.
func (ix *advanced) operands() []*Value {
	sizes := ix.outSizes()
	strides := cloneInts(ix.src.Strides[:ix.before])
	for range ix.shape {
		strides = append(strides, symbolic.N(0))
	}
	strides = append(strides, ix.src.Strides[ix.before+len(ix.dims):]...)
	ops := []*Value{{Meta: Strided(ix.src.DType, sizes, strides)}}
	ones := func(n int) []symbolic.Int {
		s := make([]symbolic.Int, n)
		for i := range s {
			s[i] = symbolic.N(1)
		}
		return s
	}
	for _, v := range ix.indices {
		sz := append(append(ones(ix.before), v.Sizes...), ones(ix.after)...)
		inner := viewInner(v)
		lead := symbolic.N(1)
		if len(v.Sizes) > 0 {
			lead = v.Sizes[0].Mul(v.Strides[0])
		}
		st := make([]symbolic.Int, 0, len(sz))
		for range ix.before {
			st = append(st, lead)
		}
		st = append(append(st, v.Strides...), inner[:ix.after]...)
		ops = append(ops, &Value{Meta: Strided(v.DType, sz, st)})
	}
	return ops
}

// viewInner gives the strides of trailing dimensions of size 1 behind v.
func viewInner(v *Value) []symbolic.Int {
	last := symbolic.N(1)
	if n := v.Dim(); n > 0 {
		last = v.Strides[n-1]
	}
	out := make([]symbolic.Int, 64)
	for i := range out {
		out[i] = last
	}
	return out
}

// places gives for every position of the index tensors, in row-major order, the offset in src that they name, in elements.
func (ix *advanced) places(k *Kernel) []int64 {
	n := symbolic.Prod(ix.shape...).Int64()
	out := make([]int64, n)
	for i, v := range ix.indices {
		d := ix.dims[i]
		size, stride := ix.src.Sizes[d].Int64(), ix.src.Strides[d].Int64()
		idx := tensor.Contiguous[int64](k.as(v.T, tensor.Int64))
		for j, at := range idx {
			if at < -size || at >= size {
				FailIndex("index %d is out of bounds for dimension %d with size %d", at, i, size)
			}
			if at < 0 {
				at += size
			}
			out[j] += at * stride
		}
	}
	return out
}

// window splits t, shaped like the result of indexing, into the walk over its index dimensions (offsets in row-major order)
// and the view of what belongs to the first of them.
func (ix *advanced) window(t *tensor.Tensor) (part *tensor.Tensor, offsets []int64) {
	nd := len(ix.shape)
	b, e := ix.before, ix.before+nd
	sizes := append(append([]int64(nil), t.Sizes()[:b]...), t.Sizes()[e:]...)
	strides := append(append([]int64(nil), t.Strides()[:b]...), t.Strides()[e:]...)
	return t.WithView(sizes, strides, t.Offset()), rowMajorOffsets(t.Sizes()[b:e], t.Strides()[b:e])
}

// rest is src without the indexed dimensions.
func (ix *advanced) rest() *tensor.Tensor {
	t := ix.src.T
	b, e := ix.before, ix.before+len(ix.dims)
	sizes := append(append([]int64(nil), t.Sizes()[:b]...), t.Sizes()[e:]...)
	strides := append(append([]int64(nil), t.Strides()[:b]...), t.Strides()[e:]...)
	return t.WithView(sizes, strides, t.Offset())
}

// rowMajorOffsets lists the offsets of all elements of a strided block in row-major order.
func rowMajorOffsets(sizes, strides []int64) []int64 {
	out := []int64{0}
	for d := range sizes {
		next := make([]int64, 0, int64(len(out))*sizes[d])
		for _, o := range out {
			for i := range sizes[d] {
				next = append(next, o+i*strides[d])
			}
		}
		out = next
	}
	return out
}

func indexKernel(k *Kernel) {
	o := k.Out[0]
	ix := newAdvanced(k.Tensor(0), k.Tensors(1))
	if len(ix.indices) == 1 && ix.dims[0] == 0 {
		if idx := ix.indices[0].T; takesRows(o, k.T(0), idx) {
			takeRows(k, o, k.T(0), idx, func(at, size int64) int64 {
				if at < -size || at >= size {
					FailIndex("index %d is out of bounds for dimension 0 with size %d", at, size)
				}
				return at + size
			})
			return
		}
	}
	places := ix.places(k)
	if o.Numel() == 0 {
		return
	}
	part, offs := ix.window(o)
	rest := ix.rest()
	eachPlace(k, part, rest, offs, places, copyRow)
}

// eachPlace calls row for all elements of dst moved by offs[i] and src moved by places[i], for every i.
func eachPlace(k *Kernel, dst, src *tensor.Tensor, offs, places []int64, row func(d unsafe.Pointer, ds int64, s unsafe.Pointer, ss, n, size int64)) {
	size := int64(dst.DType().Size())
	d, s := base(dst), base(src)
	it := NewIter(dst.Sizes(), dst, src)
	per := max(it.N, 1)
	straight := it.N == 1 || it.contig(0) && it.contig(1)
	k.Pool.ParallelFor(len(offs), int(max(grain/per, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			di, si := unsafe.Add(d, offs[i]*size), unsafe.Add(s, places[i]*size)
			if straight {
				row(di, 1, si, 1, it.N, size)
				continue
			}
			it.Rows(0, it.N, func(off []int64, n int64) {
				row(unsafe.Add(di, off[0]*size), it.Strides[0][0], unsafe.Add(si, off[1]*size), it.Strides[1][0], n, size)
			})
		}
	})
}

// copyElement copies one element of 1, 2, 4, 8 or 16 bytes.
func copyElement(d, s unsafe.Pointer, size uintptr) {
	switch size {
	case 1:
		*(*uint8)(d) = *(*uint8)(s)
	case 2:
		*(*uint16)(d) = *(*uint16)(s)
	case 4:
		*(*uint32)(d) = *(*uint32)(s)
	case 8:
		*(*uint64)(d) = *(*uint64)(s)
	default:
		*(*[2]uint64)(d) = *(*[2]uint64)(s)
	}
}

// expandMasks replaces Bool and uint8 indices by the coordinates of their true elements.
func expandMasks(b *Build, x *Value, indices []*Value) []*Value {
	masks := false
	for _, v := range indices {
		masks = masks || v != nil && (v.DType == tensor.Bool || v.DType == tensor.Uint8)
	}
	if !masks {
		return indices
	}
	var out []*Value
	for i, v := range indices {
		if v == nil || v.DType != tensor.Bool && v.DType != tensor.Uint8 {
			out = append(out, v)
			continue
		}
		for j, n := range v.Sizes {
			at := len(out) + j
			if at >= x.Dim() {
				FailIndex("too many indices for tensor of dimension %d", x.Dim())
			}
			if n.Ne(x.Sizes[at]) {
				FailIndex("The shape of the mask %s at index %d does not match the shape of the indexed tensor %s at index %d", sizesText(v.Sizes), i, sizesText(x.Sizes), at)
			}
		}
		nz := b.Call("nonzero", v)
		for j := range v.Sizes {
			out = append(out, b.Call("select.int", nz, 1, j))
		}
	}
	return out
}

// clampIndices keeps indices inside the tensor's sizes.
func clampIndices(b *Build, x *Value, indices []*Value) []*Value {
	out := make([]*Value, len(indices))
	for d, v := range indices {
		if v != nil {
			out[d] = b.Call("clamp", v, x.Sizes[d].Neg(), x.Sizes[d].SubN(1))
		}
	}
	return out
}

// broadcastTo expands a concrete tensor to sizes that it can be broadcast to.
func broadcastTo(t *tensor.Tensor, sizes []int64) *tensor.Tensor {
	strides := make([]int64, len(sizes))
	for i := 1; i <= t.Dim(); i++ {
		if t.Sizes()[t.Dim()-i] == sizes[len(sizes)-i] {
			strides[len(sizes)-i] = t.Strides()[t.Dim()-i]
		}
	}
	return t.WithView(sizes, strides, t.Offset())
}

// nonzeroPlaces lists the row-major positions of the elements of a contiguous Bool tensor that are true.
func nonzeroPlaces(t *tensor.Tensor) []int64 {
	bytes := tensor.Contiguous[uint8](t)
	n := 0
	for _, b := range bytes {
		if b != 0 {
			n++
		}
	}
	out := make([]int64, 0, n)
	for i, b := range bytes {
		if b != 0 {
			out = append(out, int64(i))
		}
	}
	return out
}

// nonzeroRows gives the coordinates [n, dims] of the elements that are not 0, in row-major order; each column is
// one run in memory, as PyTorch lays them out.
func nonzeroRows(k *Kernel, x *tensor.Tensor) *tensor.Tensor {
	places := nonzeroPlaces(k.as(x, tensor.Bool))
	nd := x.Dim()
	rows := make([]int64, len(places)*nd)
	for i, p := range places {
		for d := nd - 1; d >= 0; d-- {
			rows[d*len(places)+i] = p % x.Sizes()[d]
			p /= x.Sizes()[d]
		}
	}
	out, _ := tensor.FromBits(tensor.Int64, rows, int64(nd), int64(len(places)))
	return out.WithView([]int64{int64(len(places)), int64(nd)}, []int64{1, int64(len(places))}, 0)
}

func indexSelectKernel(k *Kernel) {
	o, x := k.Out[0], k.T(0)
	if x.Dim() == 0 {
		x, o = x.WithView([]int64{1}, []int64{1}, x.Offset()), o.WithView([]int64{1}, []int64{1}, o.Offset())
	}
	d := WrapDim(k.I64(1), x.Dim())
	size, stride := x.Sizes()[d], x.Strides()[d]
	if idx := k.T(2); d == 0 && takesRows(o, x, idx) {
		takeRows(k, o, x, idx, func(at, size int64) int64 {
			Check(x.Dim() <= 1, "INDICES element is out of DATA bounds, id=%d axis_dim=%d", at, size)
			FailIndex("index out of range in self")
			return 0
		})
		return
	}
	idx := tensor.Contiguous[int64](k.as(k.T(2), tensor.Int64))
	places, offs := make([]int64, len(idx)), make([]int64, len(idx))
	for i, at := range idx {
		if at < 0 || at >= size {
			Check(x.Dim() <= 1, "INDICES element is out of DATA bounds, id=%d axis_dim=%d", at, size)
			FailIndex("index out of range in self")
		}
		places[i], offs[i] = at*stride, int64(i)*o.Strides()[d]
	}
	if o.Numel() == 0 {
		return
	}
	eachPlace(k, without(o, d), without(x, d), offs, places, copyRow)
}

// without is t at position 0 of dimension d, which disappears.
func without(t *tensor.Tensor, d int) *tensor.Tensor {
	sizes := append(append([]int64(nil), t.Sizes()[:d]...), t.Sizes()[d+1:]...)
	strides := append(append([]int64(nil), t.Strides()[:d]...), t.Strides()[d+1:]...)
	return t.WithView(sizes, strides, t.Offset())
}
