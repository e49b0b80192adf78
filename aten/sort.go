package aten

import (
	"math"
	"slices"
	"unsafe"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// sortOps order elements along a dimension, or pick by order.
var sortOps = []Op{
	{
		Schema: "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return shapeSort(a, 1) },
		CPU:    func(k *Kernel) { sortKernel(k, k.I64(1), k.Bool(2), false) },
	},
	{
		Schema: "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
		Shape:  func(a *Args) []Meta { return shapeSort(a, 2) },
		CPU:    func(k *Kernel) { sortKernel(k, k.I64(2), k.Bool(3), k.Bool(1)) },
	},
	{
		Schema: "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value { return One(b.CallN("sort", a.V...)[1]) },
	},
	{
		Schema: "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value { return One(b.CallN("sort", a.V[0], a.V[2], a.V[3])[1]) },
	},
	{
		Schema: "msort(Tensor self) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value { return One(b.CallN("sort", a.V[0], 0)[0]) },
	},
	{
		Schema: "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
		Tags:   Core,
		Shape: func(a *Args) []Meta {
			x, n := a.Tensor(0), a.Int(1)
			refuseComplex(a, x)
			d := WrapDim(a.I64(2), x.Dim())
			size := symbolic.N(1)
			if x.Dim() > 0 {
				size = x.Sizes[d]
			}
			Check(n.Ge(symbolic.N(0)) && n.Le(size), "selected index k out of range")
			sizes := cloneInts(x.Sizes)
			if x.Dim() > 0 {
				sizes[d] = n
			}
			return []Meta{Contig(x.DType, sizes...), Contig(tensor.Int64, sizes...)}
		},
		CPU: func(k *Kernel) {
			n, largest, sorted := int(k.I64(1)), k.Bool(3), k.Bool(4)
			lt := less[sortKey](func(a, b sortKey) bool { return a.key < b.key })
			if largest {
				lt = func(a, b sortKey) bool { return a.key > b.key }
			}
			k.pickLanes(k.I64(2), func(lane []sortKey) []sortKey {
				switch {
				case n == 0:
				case n*64 <= len(lane):
					partialSort(lane, n, lt)
				default:
					nthElement(lane, n-1, lt)
					if sorted {
						introSort(lane[:n-1], lt)
					}
				}
				return lane[:n]
			})
		},
	},
	pickOp("kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", 2, func(k *Kernel, lane []sortKey) sortKey {
		at := int(k.I64(1)) - 1
		quickSelect(lane, at, func(a, b sortKey) bool { return a.key > b.key })
		return lane[at]
	}),
	pickOp("median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", 1, func(k *Kernel, lane []sortKey) sortKey {
		return medianOf(lane, k.T(0).DType().IsFloat(), false)
	}),
	pickOp("nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", 1, func(k *Kernel, lane []sortKey) sortKey {
		return medianOf(lane, k.T(0).DType().IsFloat(), true)
	}),
	pickOp("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", 1, func(k *Kernel, lane []sortKey) sortKey {
		return modeOf(lane, k.T(0).DType().IsFloat())
	}),
	medianAll("median(Tensor self) -> Tensor", false),
	medianAll("nanmedian(Tensor self) -> Tensor", true),
}

// sortKey is an element by its place in the order of its dtype, NaN above all, and its index.
type sortKey struct {
	key int64
	idx int64
}

// nanKey is the key of every NaN, and of the largest integer.
const nanKey = math.MaxInt64

// orderKeys fills lane with the keys of n elements of dt at p, step elements apart.
func orderKeys(lane []sortKey, p unsafe.Pointer, dt tensor.DType, step int64) {
	n := len(lane)
	var buf [256]uint64
	for lo := 0; lo < n; lo += len(buf) {
		m := min(len(buf), n-lo)
		src := unsafe.Add(p, int64(lo)*step*int64(dt.Size()))
		switch {
		case dt == tensor.Uint64:
			loadRow(unsafe.Pointer(&buf), KU64, src, dt, step, m)
			for i, v := range buf[:m] {
				lane[lo+i] = sortKey{int64(v ^ 1<<63), int64(lo + i)}
			}
		case dt.IsIntegral():
			loadRow(unsafe.Pointer(&buf), KI64, src, dt, step, m)
			for i, v := range buf[:m] {
				lane[lo+i] = sortKey{int64(v), int64(lo + i)}
			}
		default:
			loadRow(unsafe.Pointer(&buf), KF64, src, dt, step, m)
			for i, v := range buf[:m] {
				lane[lo+i] = sortKey{floatKey(v), int64(lo + i)}
			}
		}
	}
}

// floatKey maps the bits of a float64 to an integer of the same order; both zeros are equal.
func floatKey(bits uint64) int64 {
	mag := int64(bits &^ (1 << 63))
	switch {
	case mag > 0x7ff<<52:
		return nanKey
	case bits>>63 != 0:
		return -mag
	}
	return mag
}

func refuseComplex(a *Args, x *Value) {
	if x.DType.IsComplex() {
		Fail("%s(): does not support complex input", a.Op.schema.Base)
	}
}

func shapeSort(a *Args, dim int) []Meta {
	x := a.Tensor(0)
	Check(!x.DType.IsComplex(), "Sort currently does not support complex dtypes on CPU")
	WrapDim(a.I64(dim), x.Dim())
	v := LikeMeta(x, x.DType, PreserveFormat)
	return []Meta{v, Strided(tensor.Int64, v.Sizes, v.Strides)}
}

// sortKernel sorts lines. Where stability is not asked for PyTorch's order of equal elements is followed: that of its
// library's unstable sort for the dtypes that have no vector code.
func sortKernel(k *Kernel, dim int64, descending, stable bool) {
	lt := less[sortKey](func(a, b sortKey) bool { return a.key < b.key })
	if descending {
		lt = func(a, b sortKey) bool { return a.key > b.key }
	}
	order := func(a, b sortKey) int {
		switch {
		case lt(a, b):
			return -1
		case lt(b, a):
			return 1
		}
		return 0
	}
	k.pickLanes(dim, func(lane []sortKey) []sortKey {
		if stable {
			slices.SortStableFunc(lane, order)
		} else {
			introSort(lane, lt)
		}
		return lane
	})
}

// pickLanes gives each line of argument 0 along a dimension to f and stores the elements that f answers: values in Out[0],
// their indices in Out[1]. The lines of the outputs have as many elements as f answers.
func (k *Kernel) pickLanes(dim int64, f func(lane []sortKey) []sortKey) {
	x := oneD(k.T(0))
	values, indices := oneD(k.Out[0]), oneD(k.Out[1])
	d := WrapDim(dim, x.Dim())
	if x.Numel() == 0 {
		return
	}
	n, dt := int(x.Sizes()[d]), x.DType()
	xo, vo, io := laneOffsets(x, d), laneOffsets(values, d), laneOffsets(indices, d)
	xs, vs, is := x.Strides()[d], values.Strides()[d], indices.Strides()[d]
	size := int64(dt.Size())
	xb, vb, ib := base(x), base(values), base(indices)
	k.Pool.ParallelFor(len(xo), max(grain/16/max(n, 1), 1), func(lo, hi int) {
		lane := make([]sortKey, n)
		for l := lo; l < hi; l++ {
			src := unsafe.Add(xb, xo[l]*size)
			orderKeys(lane, src, dt, xs)
			for i, e := range f(lane) {
				copyElement(unsafe.Add(vb, (vo[l]+int64(i)*vs)*size), unsafe.Add(src, e.idx*xs*size), uintptr(size))
				*(*int64)(unsafe.Add(ib, (io[l]+int64(i)*is)*8)) = e.idx
			}
		}
	})
}

// laneOffsets lists the offsets of the first elements of all lines along d, in row-major order of the other dimensions.
func laneOffsets(t *tensor.Tensor, d int) []int64 {
	w := without(t, d)
	return rowMajorOffsets(w.Sizes(), w.Strides())
}

// pickOp is an operator (self, ..., dim, keepdim) that picks one element of each line.
func pickOp(schema string, dim int, pick func(k *Kernel, lane []sortKey) sortKey) Op {
	return Op{
		Schema: schema,
		Shape: func(a *Args) []Meta {
			x := a.Tensor(0)
			refuseComplex(a, x)
			d := WrapDim(a.I64(dim), x.Dim())
			size := symbolic.N(1)
			sizes := cloneInts(x.Sizes)
			if x.Dim() > 0 {
				size = x.Sizes[d]
				sizes[d] = symbolic.N(1)
				if !a.Bool(dim + 1) {
					sizes = removeInt(x.Sizes, d)
				}
			}
			name := a.Op.schema.Base
			if dim == 2 {
				Check(a.I64(1) >= 1 && a.Int(1).Le(size), "kthvalue(): selected number k out of range for dimension %d", d)
			}
			if size.Eq(symbolic.N(0)) {
				FailIndex("%s(): Expected reduction dim %d to have non-zero size.", name, d)
			}
			return []Meta{Contig(x.DType, sizes...), Contig(tensor.Int64, sizes...)}
		},
		CPU: func(k *Kernel) {
			serial := *k
			serial.Pool = nil
			if !k.Bool(dim+1) && k.T(0).Dim() > 0 {
				d := WrapDim(k.I64(dim), k.T(0).Dim())
				serial.Out = []*tensor.Tensor{withDim(k.Out[0], d), withDim(k.Out[1], d)}
			}
			one := make([]sortKey, 1)
			serial.pickLanes(k.I64(dim), func(lane []sortKey) []sortKey {
				one[0] = pick(k, lane)
				return one
			})
		},
	}
}

// withDim inserts a dimension of size 1 at d.
func withDim(t *tensor.Tensor, d int) *tensor.Tensor {
	sizes := slices.Insert(slices.Clone(t.Sizes()), d, 1)
	strides := slices.Insert(slices.Clone(t.Strides()), d, 1)
	return t.WithView(sizes, strides, t.Offset())
}

// medianOf picks the lower of the middle elements, equal ones in the order of their indices: the first NaN if there is one, unless NaNs are left out.
func medianOf(lane []sortKey, float, skipNaN bool) sortKey {
	nan := 0
	for _, e := range lane {
		if float && e.key == nanKey {
			if !skipNaN {
				return e
			}
			nan++
		}
	}
	if nan == len(lane) {
		nan = 0 // the middle of NaNs
	}
	mid := max((len(lane)-nan-1)/2, 0)
	nthElement(lane, mid, func(a, b sortKey) bool { return a.key < b.key || a.key == b.key && a.idx < b.idx })
	return lane[mid]
}

// modeOf picks the first of the most frequent elements in the order that PyTorch's unstable sort leaves. NaNs all differ, and that sort
// takes them for equal to everything.
func modeOf(lane []sortKey, float bool) sortKey {
	isNaN := func(e sortKey) bool { return float && e.key == nanKey }
	introSort(lane, func(a, b sortKey) bool { return a.key < b.key && !isNaN(b) })
	best, most, run := lane[0], 0, 0
	for i, e := range lane {
		run++
		if i+1 < len(lane) && lane[i+1].key == e.key && !isNaN(e) {
			continue
		}
		if run > most {
			best, most = e, run
		}
		run = 0
	}
	return best
}

func medianAll(schema string, skipNaN bool) Op {
	return Op{
		Schema: schema,
		Shape: func(a *Args) []Meta {
			refuseComplex(a, a.Tensor(0))
			return []Meta{Contig(a.Tensor(0).DType)}
		},
		CPU: func(k *Kernel) {
			x := k.contiguous(k.T(0))
			n := x.Numel()
			if n == 0 {
				fillAll(k.Pool, k.Out[0], emptyMedian(x.DType()))
				return
			}
			lane := make([]sortKey, n)
			orderKeys(lane, base(x), x.DType(), 1)
			size := int64(x.DType().Size())
			copyElement(base(k.Out[0]), unsafe.Add(base(x), medianOf(lane, x.DType().IsFloat(), skipNaN).idx*size), uintptr(size))
		},
	}
}

// emptyMedian is NaN, or what it becomes as an integer.
func emptyMedian(dt tensor.DType) Scalar {
	if dt.IsFloat() {
		return FloatS(math.NaN())
	}
	return extremeOf(dt, true)
}
