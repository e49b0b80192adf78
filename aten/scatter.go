package aten

import (
	"math"
	"strings"
	"unsafe"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

var infinity = math.Inf(1)

// scatterOps write elements at places that tensors name. Each operator has one kernel that changes Out[0]: the functional
// form runs it on a copy of the tensor, the in-place form on the tensor.
var scatterOps = concatOps(
	indexPutOps(),
	writerOps("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", Core, writer{
		contiguous: true, check: checkScatter,
		write: func(k *Kernel) { scatterSrc(k, combineCopy) },
	}),
	writerOps("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", Core, writer{
		contiguous: true, check: checkScatter,
		write: func(k *Kernel) { scatterValue(k, combineCopy) },
	}),
	writerOps("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", 0, writer{
		contiguous: true, check: checkScatter,
		write: func(k *Kernel) { scatterSrc(k, scatterMode(k.Str(4))) },
	}),
	writerOps("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor", 0, writer{
		contiguous: true, check: checkScatter,
		write: func(k *Kernel) { scatterValue(k, scatterMode(k.Str(4))) },
	}),
	writerOps("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", Core, writer{
		contiguous: true, check: checkScatter,
		write: func(k *Kernel) { scatterSrc(k, combineSum) },
	}),
	writerOps("scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor", Core, writer{
		contiguous: true,
		check: func(a *Args) {
			checkScatter(a)
			combinerOf("scatter_reduce", a.Str(4))
		},
		write: scatterReduce,
	}),
	writerOps("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", 0, writer{
		contiguous: true,
		check:      func(a *Args) { checkIndexWrite(a, "index_add") },
		write:      indexAdd,
	}),
	writerOps("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", 0, writer{
		contiguous: true,
		check:      func(a *Args) { checkIndexWrite(a, "index_copy") },
		write:      func(k *Kernel) { indexWrite(k, k.T(3), combineCopy, "index_copy_") },
	}),
	writerOps("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor", 0, writer{
		contiguous: true,
		check: func(a *Args) {
			checkIndexWrite(a, "index_reduce")
			r := a.Str(4)
			Check(r == "prod" || r == "mean" || r == "amax" || r == "amin", "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got %s.", r)
		},
		write: indexReduce,
	}),
	writerOps("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", 0, writer{
		check: checkIndexFill,
		write: func(k *Kernel) { indexFill(k, scalarIn(k.Out[0].DType(), k.Scalar(3))) },
	}),
	writerOps("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", 0, writer{
		check: func(a *Args) {
			checkIndexFill(a)
			Check(a.Tensor(3).Dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).", a.Tensor(3).Dim())
		},
		write: func(k *Kernel) { indexFill(k, k.as(k.T(3), k.Out[0].DType())) },
	}),
	writerOps("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", 0, writer{
		check: func(a *Args) {
			Check(a.Tensor(1).DType == tensor.Int64, "put_(): Expected a long tensor for index, but got %s", a.Tensor(1).DType.CPPName())
			Check(a.Tensor(0).DType == a.Tensor(2).DType, "put_(): self and source expected to have the same dtype, but got self.dtype = %s and source.dtype = %s", a.Tensor(0).DType.CPPName(), a.Tensor(2).DType.CPPName())
			Check(a.Tensor(1).Numel().Eq(a.Tensor(2).Numel()), "put_(): Expected source and index to have the same number of elements, but got source.numel() = %v, index.numel() = %v", a.Tensor(2).Numel(), a.Tensor(1).Numel())
			if a.Tensor(0).empty() && !a.Tensor(1).empty() {
				FailIndex("put_(): Tried to put elements into an empty tensor")
			}
		},
		write: putKernel,
	}),
	writerOps("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", 0, writer{
		check: func(a *Args) {
			x, mask, src := a.Tensor(0), a.Tensor(1), a.Tensor(2)
			Check(mask.DType == tensor.Bool, "masked_scatter_ only supports boolean masks, but got mask with dtype %s", mask.DType)
			Check(x.DType == src.DType, "masked_scatter_: expected self and source to have same dtypes but got %s and %s", x.DType.CPPName(), src.DType.CPPName())
		},
		widen: func(a *Args) []symbolic.Int { return BroadcastSizes(a.Tensor(0), a.Tensor(1)) },
		write: maskedScatter,
	}),
	maskedFillOps(),
	overwriteOps(),
)

func concatOps(lists ...[]Op) []Op {
	var out []Op
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// writer is how an operator that changes elements of its first argument works.
type writer struct {
	check      func(a *Args)
	write      func(k *Kernel) // changes Out[0], which holds the tensor's elements
	contiguous bool            // the functional form answers row-major, not in the tensor's layout
	widen      func(a *Args) []symbolic.Int
}

// writerOps makes the functional and the in-place entry of a writer.
func writerOps(schema string, tags Tag, w writer) []Op {
	name := schema[:strings.IndexByte(schema, '(')]
	base, overload, dotted := strings.Cut(name, ".")
	inName := base + "_"
	if dotted {
		inName += "." + overload
	}
	inSchema := inName + strings.Replace(schema[len(name):], "(Tensor self", "(Tensor(a!) self", 1)
	inSchema = inSchema[:strings.LastIndex(inSchema, " -> ")] + " -> Tensor(a!)"
	shape := func(a *Args) []Meta {
		if w.check != nil {
			w.check(a)
		}
		x := a.Tensor(0)
		if w.widen != nil {
			if sizes := w.widen(a); !SameSizes(sizes, x.Sizes) {
				return []Meta{Contig(x.DType, sizes...)}
			}
		}
		if w.contiguous {
			return []Meta{Contig(x.DType, x.Sizes...)}
		}
		return []Meta{LikeMeta(x, x.DType, PreserveFormat)}
	}
	functional := Op{Schema: schema, Tags: tags, Shape: shape, CPU: func(k *Kernel) {
		Copy(k.Pool, k.Out[0], k.T(0))
		w.write(k)
	}}
	inplace := Op{Schema: inSchema, Decomp: inPlace(w.check), CPU: w.write}
	return []Op{functional, inplace}
}

// indexPutOps: masks among the indices become coordinates first, so that the kernel sees integers only.
func indexPutOps() []Op {
	plain := func(b *Build, a *Args) *Args {
		v := append([]any(nil), a.V...)
		v[1] = expandMasks(b, a.Tensor(0), a.Tensors(1))
		return &Args{Op: a.Op, V: v}
	}
	functional := func(b *Build, a *Args) []*Value {
		p := plain(b, a)
		return One(b.Call("_unsafe_index_put", p.V[:4]...))
	}
	run := inPlace(checkIndexPut)
	inplace := func(b *Build, a *Args) []*Value { return run(b, plain(b, a)) }
	unsafePut := writerOps("_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", 0, writer{
		check: checkIndexPut, write: indexPut,
	})
	return []Op{
		unsafePut[0],
		{Schema: "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", Tags: Core, Decomp: functional},
		{Schema: "_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor", Decomp: functional},
		{Schema: "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)", Decomp: inplace, CPU: indexPut},
		{Schema: "_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor(a!)", Decomp: inplace, CPU: indexPut},
	}
}

func checkIndexPut(a *Args) {
	x, values := a.Tensor(0), a.Tensor(2)
	Check(x.DType == values.DType, "Index put requires the source and destination dtypes match, got %s for the destination and %s for the source.", x.DType.CPPName(), values.DType.CPPName())
	if allNil(a.Tensors(1)) {
		return
	}
	ix := newAdvanced(x, a.Tensors(1))
	got := ix.outSizes()
	if !fits(values.Sizes, got) {
		Fail("shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of shape %s", sizesText(values.Sizes), sizesText(got))
	}
}

func allNil(vs []*Value) bool {
	for _, v := range vs {
		if v != nil {
			return false
		}
	}
	return true
}

// fits reports that a tensor of sizes a, leading 1s aside, can be expanded to sizes b.
func fits(a, b []symbolic.Int) bool {
	one := symbolic.N(1)
	for len(a) > len(b) && a[0].Eq(one) {
		a = a[1:]
	}
	if len(a) > len(b) {
		return false
	}
	for i := 1; i <= len(a); i++ {
		if x := a[len(a)-i]; x.Ne(b[len(b)-i]) && x.Ne(one) {
			return false
		}
	}
	return true
}

func indexPut(k *Kernel) {
	o := k.Out[0]
	values := k.T(2)
	mode := combineCopy
	if k.Bool(3) {
		mode = combineSum
	}
	self := FromTensor(o)
	if allNil(k.Tensors(1)) {
		add := broadcastTo(dropLeading(values, o.Dim()), o.Sizes())
		eachPlace(&Kernel{Args: k.Args}, o, add, []int64{0}, []int64{0}, mode.row(o.DType()))
		return
	}
	ix := newAdvanced(self, k.Tensors(1))
	places := ix.places(k)
	sizes := Int64s(ix.outSizes())
	vals := broadcastTo(dropLeading(values, len(sizes)), sizes)
	if vals.Numel() == 0 {
		return
	}
	part, offs := ix.window(vals)
	eachPlace(&Kernel{Args: k.Args}, ix.rest(), part, places, offs, mode.row(o.DType()))
}

// dropLeading removes leading dimensions of size 1 beyond rank n.
func dropLeading(t *tensor.Tensor, n int) *tensor.Tensor {
	for t.Dim() > n {
		t = t.WithView(t.Sizes()[1:], t.Strides()[1:], t.Offset())
	}
	return t
}

func checkScatter(a *Args) {
	x, ix := a.Tensor(0), a.Tensor(2)
	op := a.Op.schema.Base
	d := WrapDim(a.I64(1), x.Dim())
	Check(ix.DType == tensor.Int64 || ix.DType == tensor.Int32 || ix.empty(), "%s(): Expected dtype int32/int64 for index", strings.TrimSuffix(op, "_"))
	src := a.OptTensor(3)
	if src != nil {
		Check(x.DType == src.DType, "%s(): Expected self.dtype to be equal to src.dtype", strings.TrimSuffix(op, "_"))
	}
	if ix.empty() {
		return
	}
	Check(max(x.Dim(), 1) == max(ix.Dim(), 1), "Index tensor must have the same number of dimensions as self tensor")
	if src != nil {
		Check(max(src.Dim(), 1) == max(ix.Dim(), 1), "Index tensor must have the same number of dimensions as src tensor")
	}
	for e := range ix.Sizes {
		if e != d && ix.Sizes[e].Gt(x.Sizes[e]) || src != nil && e < src.Dim() && ix.Sizes[e].Gt(src.Sizes[e]) {
			if src == nil {
				Fail("Expected index %s to be no larger than self %s apart from dimension %d", sizesText(ix.Sizes), sizesText(x.Sizes), d)
			}
			Fail("Expected index %s to be no larger than self %s apart from dimension %d and to be no larger size than src %s", sizesText(ix.Sizes), sizesText(x.Sizes), d, sizesText(src.Sizes))
		}
	}
}

func scatterMode(reduce string) combiner {
	switch reduce {
	case "add":
		return combineSum
	case "multiply":
		return combineProd
	}
	Fail("reduce argument must be either add or multiply.")
	return combineCopy
}

func scatterSrc(k *Kernel, mode combiner) {
	row := mode.row(k.Out[0].DType())
	if walkRows(k, false, k.T(3), k.Out[0], k.T(2), k.I64(1), func(s unsafe.Pointer, ss int64, d unsafe.Pointer, ds, n, size int64) {
		row(d, ds, s, ss, n, size)
	}) {
		return
	}
	f := mode.element(k.Out[0].DType())
	walkAxis(k, false, k.T(3), k.Out[0], k.T(2), k.I64(1), func(s, d unsafe.Pointer, _ int64) { f(d, s) })
}

func scatterValue(k *Kernel, mode combiner) {
	o, ix := k.Out[0], k.T(2)
	v := scalarIn(o.DType(), k.Scalar(3))
	f := mode.element(o.DType())
	src := broadcastTo(v, ix.Sizes())
	walkAxis(k, false, src, o, ix, k.I64(1), func(s, d unsafe.Pointer, _ int64) { f(d, s) })
}

func scatterReduce(k *Kernel) {
	o, ix, src := k.Out[0], k.T(2), k.T(3)
	mode := combinerOf("scatter_reduce", k.Str(4))
	if k.Bool(5) && k.Str(4) != "mean" {
		scatterSrc(k, mode)
		return
	}
	visit := func(f func(s, d unsafe.Pointer)) {
		walkAxis(k, false, src, o, ix, k.I64(1), func(s, d unsafe.Pointer, _ int64) { f(s, d) })
	}
	reduceInto(k, mode, k.Str(4) == "mean", k.Bool(5), visit, func(count *tensor.Tensor, f func(c unsafe.Pointer)) {
		walkAxis(k, false, src, count, ix, k.I64(1), func(_, c unsafe.Pointer, _ int64) { f(c) })
	})
}

// reduceInto combines sources into Out[0]. visit calls f for every source element and its target; visitCount does so with
// the targets in a tensor of counts of Out[0]'s shape.
func reduceInto(k *Kernel, mode combiner, mean, includeSelf bool, visit func(f func(s, d unsafe.Pointer)), visitCount func(count *tensor.Tensor, f func(c unsafe.Pointer))) {
	o := k.Out[0]
	dt := o.DType()
	if !includeSelf {
		init := scalarIn(dt, mode.identity(dt))
		p, size := base(init), uintptr(dt.Size())
		visit(func(_, d unsafe.Pointer) { copyElement(d, p, size) })
	}
	f := mode.element(dt)
	visit(func(s, d unsafe.Pointer) { f(d, s) })
	if !mean {
		return
	}
	count := tensor.New(tensor.Int64, o.Sizes()...)
	visitCount(count, func(c unsafe.Pointer) { *(*int64)(c)++ })
	first := int64(0)
	if includeSelf {
		first = 1
	}
	n := tensor.Contiguous[int64](count)
	for i := range n {
		n[i] = max(n[i]+first, 1)
	}
	k.divideBy(o, count)
}

// divideBy divides o in place by integer counts; integers round towards minus infinity.
func (k *Kernel) divideBy(o, count *tensor.Tensor) {
	kind := KindOf(o.DType())
	Loop(k.Pool, []Operand{{T: o, Kind: kind}}, []Operand{{T: o, Kind: kind}, {T: count, Kind: KI64}}, func(outs, ins []Block) {
		n := As[int64](ins[1])
		switch kind {
		case KI64:
			d, x := As[int64](outs[0]), As[int64](ins[0])
			for i := range d {
				q := x[i] / n[i]
				if x[i]%n[i] < 0 {
					q--
				}
				d[i] = q
			}
		case KU64:
			divideBlock(As[uint64](outs[0]), As[uint64](ins[0]), n)
		case KF32:
			divideBlock(As[float32](outs[0]), As[float32](ins[0]), n)
		case KF64:
			divideBlock(As[float64](outs[0]), As[float64](ins[0]), n)
		case KC64:
			d, x := As[complex64](outs[0]), As[complex64](ins[0])
			for i := range d {
				d[i] = x[i] / complex(float32(n[i]), 0)
			}
		case KC128:
			d, x := As[complex128](outs[0]), As[complex128](ins[0])
			for i := range d {
				d[i] = x[i] / complex(float64(n[i]), 0)
			}
		default:
			copy(As[uint8](outs[0]), As[uint8](ins[0]))
		}
	})
}

func divideBlock[T uint64 | float32 | float64](d, x []T, n []int64) {
	for i := range d {
		d[i] = x[i] / T(n[i])
	}
}

// checkIndexWrite checks index_add, index_copy and index_reduce: (self, dim, index, source).
func checkIndexWrite(a *Args, op string) {
	x, ix, src := a.Tensor(0), a.Tensor(2), a.Tensor(3)
	d := WrapDim(a.I64(1), x.Dim())
	if ix.Dim() > 1 {
		FailIndex("%s(): Index is supposed to be a vector, but got dim: %d with type: %s and size: %s", op, ix.Dim(), ix.DType.CPPName(), sizesText(ix.Sizes))
	}
	if op == "index_copy" {
		if ix.DType != tensor.Int64 {
			FailIndex("index_copy_(): Expected a long tensor for index, but got %s", ix.DType.CPPName())
		}
	} else {
		Check(ix.DType == tensor.Int64 || ix.DType == tensor.Int32, "%s(): Expected dtype int32/int64 for index but got: %s", op, ix.DType.CPPName())
	}
	Check(x.DType == src.DType, "%s(): self (%s) and source (%s) must have the same scalar type", op, x.DType.CPPName(), src.DType.CPPName())
	if src.Dim() == 0 {
		Check(ix.Numel().Eq(symbolic.N(1)), "%s(): When source is scalar, index should have one element (got %v)", op, ix.Numel())
		return
	}
	if x.Dim() != 0 {
		Check(x.Dim() == src.Dim(), "%s(): When source and destination are not scalars, their dimensionality must match. Source dimensionality (%d), destination dimensionality (%d)", op, src.Dim(), x.Dim())
		for e := range x.Sizes {
			Check(e == d || x.Sizes[e].Eq(src.Sizes[e]), "%s(): Source/destination tensor must have same slice shapes. Destination slice shape: %s at dimension %d and source slice shape: %s at dimension %d.", op, sizesText(removeInt(x.Sizes, d)), d, sizesText(removeInt(src.Sizes, d)), d)
		}
	}
	Check(ix.Numel().Eq(src.Sizes[min(d, src.Dim()-1)]), "%s(): Number of indices (%v) should be equal to source.size(dim): (%v), for dim: %d", op, ix.Numel(), src.Sizes[min(d, src.Dim()-1)], d)
}

// indexWrite combines slice i of src into the slice of Out[0] that index i names.
func indexWrite(k *Kernel, src *tensor.Tensor, mode combiner, op string) {
	eachSlice(k, k.Out[0], src, op, mode.row(k.Out[0].DType()))
}

// eachSlice calls row for the elements of slice i of src and the slice of dst that index i (argument 2) names along the
// dimension of argument 1.
func eachSlice(k *Kernel, dst, src *tensor.Tensor, op string, row func(d unsafe.Pointer, ds int64, s unsafe.Pointer, ss, n, size int64)) {
	idx := tensor.Contiguous[int64](k.as(k.T(2), tensor.Int64))
	dst, src = oneD(dst), oneD(src)
	d := WrapDim(k.I64(1), dst.Dim())
	size := dst.Sizes()[d]
	places, offs := make([]int64, len(idx)), make([]int64, len(idx))
	for i, at := range idx {
		if at < 0 || at >= size {
			if op == "index_copy_" {
				FailIndex("index_copy_(): index %d is out of bounds for dimension %d with size %d", at, d, size)
			}
			FailIndex("index out of range in self")
		}
		places[i], offs[i] = at*dst.Strides()[d], int64(i)*src.Strides()[d]
	}
	part := without(dst, d)
	if len(idx) == 0 || part.Numel() == 0 {
		return
	}
	eachPlace(&Kernel{Args: k.Args}, part, without(src, d), places, offs, row)
}

func indexAdd(k *Kernel) {
	src, alpha := k.T(3), k.Scalar(4)
	dt := k.Out[0].DType()
	if alpha.Kind == ComplexScalar || alpha.Float64() != 1 {
		t := tensor.New(dt, src.Sizes()...)
		a := scalarIn(dt, alpha)
		Copy(k.Pool, t, src)
		f := combineProd.element(dt)
		p, n, size := base(t), t.Numel(), int64(dt.Size())
		for i := range n {
			f(unsafe.Add(p, i*size), base(a))
		}
		src = t
	}
	indexWrite(k, src, combineSum, "index_add_")
}

func indexReduce(k *Kernel) {
	o := k.Out[0]
	mode := combinerOf("index_reduce", k.Str(4))
	src := k.T(3)
	each := func(dst *tensor.Tensor, f func(s, d unsafe.Pointer)) {
		dsize := int64(dst.DType().Size())
		ssize := int64(src.DType().Size())
		eachSlicePair(k, dst, src, func(d, s int64) { f(unsafe.Add(base(src), s*ssize), unsafe.Add(base(dst), d*dsize)) })
	}
	reduceInto(k, mode, k.Str(4) == "mean", k.Bool(5), func(f func(s, d unsafe.Pointer)) { each(o, f) },
		func(count *tensor.Tensor, f func(c unsafe.Pointer)) { each(count, func(_, c unsafe.Pointer) { f(c) }) })
}

// eachSlicePair visits the element offsets that belong together in [eachSlice].
func eachSlicePair(k *Kernel, dst, src *tensor.Tensor, f func(d, s int64)) {
	idx := tensor.Contiguous[int64](k.as(k.T(2), tensor.Int64))
	dst, src = oneD(dst), oneD(src)
	d := WrapDim(k.I64(1), dst.Dim())
	dp, sp := without(dst, d), without(src, d)
	do, so := rowMajorOffsets(dp.Sizes(), dp.Strides()), rowMajorOffsets(sp.Sizes(), sp.Strides())
	for i, at := range idx {
		if at < 0 || at >= dst.Sizes()[d] {
			FailIndex("index out of range in self")
		}
		for j := range do {
			f(at*dst.Strides()[d]+do[j], int64(i)*src.Strides()[d]+so[j])
		}
	}
}

func checkIndexFill(a *Args) {
	x, ix := a.Tensor(0), a.Tensor(2)
	WrapDim(a.I64(1), x.Dim())
	if ix.DType != tensor.Int64 {
		FailIndex("index_fill_(): Expected dtype int64 for index.")
	}
	if ix.Dim() > 1 {
		FailIndex("Index has to be a vector/scalar")
	}
	if s, ok := a.OptScalar(3); ok {
		Check(x.DType.IsComplex() || s.Kind != ComplexScalar, "index_fill_(): Converting complex Scalar to non-complex type is not supported")
	}
}

func indexFill(k *Kernel, value *tensor.Tensor) {
	o := oneD(k.Out[0])
	d := WrapDim(k.I64(1), o.Dim())
	part := without(o, d)
	fill := broadcastTo(value, part.Sizes())
	size := o.Sizes()[d]
	for _, at := range tensor.Contiguous[int64](k.contiguous(k.T(2))) {
		if at < -size || at >= size {
			FailIndex("index %d is out of bounds for dimension %d with size %d", at, d, size)
		}
		if at < 0 {
			at += size
		}
		if part.Numel() > 0 {
			Copy(k.Pool, part.WithView(part.Sizes(), part.Strides(), o.Offset()+at*o.Strides()[d]), fill)
		}
	}
}

func putKernel(k *Kernel) {
	o := k.Out[0]
	idx := tensor.Contiguous[int64](k.contiguous(k.T(1)))
	src := k.contiguous(k.T(2))
	mode := combineCopy
	if k.Bool(3) {
		mode = combineSum
	}
	f := mode.element(o.DType())
	offs := rowMajorOffsets(o.Sizes(), o.Strides())
	size, n := int64(o.DType().Size()), o.Numel()
	for i, at := range idx {
		if at < -n || at >= n {
			FailIndex("out of range: tried to access index %d on a tensor of %d elements.", at, n)
		}
		if at < 0 {
			at += n
		}
		f(unsafe.Add(base(o), offs[at]*size), unsafe.Add(base(src), int64(i)*size))
	}
}

func maskedScatter(k *Kernel) {
	o := k.Out[0]
	mask := k.contiguous(broadcastTo(k.T(1), o.Sizes()))
	src := k.contiguous(k.T(2))
	places := nonzeroPlaces(mask)
	Check(int64(len(places)) <= src.Numel(), "masked_scatter: expected self and source to have same dtypes and enough elements: number of elements of source < number of ones in mask")
	offs := rowMajorOffsets(o.Sizes(), o.Strides())
	size := int64(o.DType().Size())
	for i, at := range places {
		copyElement(unsafe.Add(base(o), offs[at]*size), unsafe.Add(base(src), int64(i)*size), uintptr(size))
	}
}
