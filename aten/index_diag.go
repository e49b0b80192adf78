package aten

import (
	"sort"

	"github.com/pt2go/pt2/tensor"
)

// diagonalOps read and build diagonals and triangles, and look numbers up in sorted ones.
var diagonalOps = []Op{
	{
		Schema: "diag(Tensor self, int diagonal=0) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			x := a.Tensor(0)
			Check(x.Dim() == 1 || x.Dim() == 2, "diag(): Supports 1D or 2D tensors. Got %dD", x.Dim())
			if x.Dim() == 1 {
				return One(b.Call("diag_embed", x, a.V[1]))
			}
			return One(b.Call("diagonal_copy", x, a.V[1]))
		},
	},
	{
		Schema: "diagflat(Tensor self, int offset=0) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("diag", b.Call("view", b.Call("contiguous", a.Tensor(0)), Ints(-1)), a.V[1]))
		},
	},
	{
		Schema: "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
		Shape: func(a *Args) []Meta {
			x := a.Tensor(0)
			n := x.Dim() + 1
			d1, d2 := WrapDim(a.I64(2), n), WrapDim(a.I64(3), n)
			Check(d1 != d2, "diagonal dimensions cannot be identical %d, %d", a.I64(2), a.I64(3))
			off := a.I64(1)
			size := x.Size(-1).AddN(max(off, -off))
			lo, hi := min(d1, d2), max(d1, d2)
			sizes := insertInt(insertInt(x.Sizes[:x.Dim()-1], lo, size), hi, size)
			return []Meta{Contig(x.DType, sizes...)}
		},
		CPU: func(k *Kernel) {
			o := k.Out[0]
			fillAll(k.Pool, o, IntS(0))
			m := diagonalOf(FromTensor(o), k.Int(1), k.I64(2), k.I64(3))
			if k.T(0).Numel() > 0 {
				Copy(k.Pool, o.WithView(Int64s(m.Sizes), Int64s(m.Strides), m.Offset.Int64()), k.T(0))
			}
		},
	},
	triangleOp("tril(Tensor self, SymInt diagonal=0) -> Tensor", true),
	triangleOp("triu(Tensor self, SymInt diagonal=0) -> Tensor", false),
	{
		Schema: "trace(Tensor self) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			Check(a.Tensor(0).Dim() == 2, "trace: expected a matrix, but got tensor with dim %d", a.Tensor(0).Dim())
			return One(b.Call("sum", b.Call("diagonal", a.Tensor(0))))
		},
	},
	{
		Schema: "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
		Shape: func(a *Args) []Meta {
			seq, x := a.Tensor(0), a.Tensor(1)
			checkSearch(a, seq, x)
			return []Meta{Contig(searchType(a.Bool(2)), x.Sizes...)}
		},
		CPU: func(k *Kernel) {
			search(k, k.T(0), k.T(1), k.OptT(5), k.Bool(3) || k.Str(4) == "right")
		},
	},
	{
		Schema: "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("searchsorted.Tensor", a.Tensor(0), scalarFor(b, a.Scalar(1)), Kw("out_int32", a.V[2]), Kw("right", a.V[3]), Kw("side", a.V[4]), Kw("sorter", a.V[5])))
		},
	},
	{
		Schema: "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
		Shape: func(a *Args) []Meta {
			Check(a.Tensor(1).Dim() == 1, "boundaries tensor must be 1 dimension, but got dim(%d)", a.Tensor(1).Dim())
			return []Meta{Contig(searchType(a.Bool(2)), a.Tensor(0).Sizes...)}
		},
		CPU: func(k *Kernel) { search(k, k.T(1), k.T(0), nil, k.Bool(3)) },
	},
	{
		Schema: "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("bucketize.Tensor", scalarFor(b, a.Scalar(0)), a.Tensor(1), Kw("out_int32", a.V[2]), Kw("right", a.V[3])))
		},
	},
	{
		Schema: "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
		Shape: func(a *Args) []Meta {
			return []Meta{LikeMeta(a.Tensor(0), tensor.Bool, ContiguousFormat)}
		},
		CPU: isinKernel,
	},
	{
		Schema: "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("isin.Tensor_Tensor", a.Tensor(0), WrapScalar(a.Scalar(1)), Kw("invert", a.V[3])))
		},
	},
	{
		Schema: "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("isin.Tensor_Tensor", WrapScalar(a.Scalar(0)), a.Tensor(1), Kw("invert", a.V[3])))
		},
	},
}

// scalarFor is the 0-d tensor of a number, in its default dtype.
func scalarFor(b *Build, s Scalar) *Value {
	return b.Call("scalar_tensor", s, Kw("dtype", s.DType()))
}

func triangleOp(schema string, lower bool) Op {
	return Op{
		Schema: schema,
		Shape: func(a *Args) []Meta {
			Check(a.Tensor(0).Dim() >= 2, "%s: input tensor must have at least 2 dimensions", a.Op.schema.Base)
			return []Meta{Contig(a.Tensor(0).DType, a.Tensor(0).Sizes...)}
		},
		CPU: func(k *Kernel) { triangle(k, lower) },
	}
}

// triangle copies a matrix's elements on one side of a diagonal and puts 0 elsewhere.
func triangle(k *Kernel, lower bool) {
	o, diag := k.Out[0], k.I64(1)
	Copy(k.Pool, o, k.T(0))
	nd := o.Dim()
	rows, cols := o.Sizes()[nd-2], o.Sizes()[nd-1]
	if o.Numel() == 0 {
		return
	}
	zero := scalarIn(o.DType(), IntS(0))
	batch := o.Sizes()[: nd-2 : nd-2]
	for i := range rows {
		lo, hi := int64(0), min(max(i+diag, 0), cols) // what goes, in row i
		if lower {
			lo, hi = min(max(i+diag+1, 0), cols), cols
		}
		if lo < hi {
			off := o.Offset() + i*o.Strides()[nd-2] + lo*o.Strides()[nd-1]
			strides := append(append([]int64(nil), o.Strides()[:nd-2]...), o.Strides()[nd-1])
			part := o.WithView(append(batch, hi-lo), strides, off)
			Copy(nil, part, broadcastTo(zero, part.Sizes()))
		}
	}
}

func searchType(int32Out bool) tensor.DType {
	if int32Out {
		return tensor.Int32
	}
	return tensor.Int64
}

func checkSearch(a *Args, seq, x *Value) {
	if side := a.Str(4); side != "" {
		Check(side == "left" || side == "right", "torch.searchsorted(): side can only be 'left' or 'right' but got %s", side)
		Check(side == "right" || !a.Bool(3), "torch.searchsorted(): side and right can't be set to opposites, got side of %s while right was True", side)
	}
	Check(seq.Dim() > 0, "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor dim(%d) and input value's dim(%d) numel(%v)", seq.Dim(), x.Dim(), x.Numel())
	if seq.Dim() > 1 {
		same := seq.Dim() == x.Dim()
		if same {
			same = SameSizes(seq.Sizes[:seq.Dim()-1], x.Sizes[:x.Dim()-1])
		}
		Check(same, "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, but we got boundaries tensor %s and input value tensor %s", sizesText(seq.Sizes), sizesText(x.Sizes))
	}
	if s := a.OptTensor(5); s != nil {
		Check(SameSizes(s.Sizes, seq.Sizes), "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor %s and got sorter tensor %s", sizesText(seq.Sizes), sizesText(s.Sizes))
		Check(s.DType == tensor.Int64, "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype %s", s.DType.CPPName())
	}
}

// search stores the insertion points of values into sorted rows. Both are compared in the dtype that they have in common.
func search(k *Kernel, seq, x, sorter *tensor.Tensor, right bool) {
	dt := ResultType(FromTensor(seq), FromTensor(x))
	if dt.IsComplex() {
		Fail("torch.searchsorted(): complex numbers have no order")
	}
	wide := tensor.Float64
	if dt.IsIntegral() {
		wide = tensor.Int64
	}
	sv, xv := k.as(k.as(seq, dt), wide), k.as(k.as(x, dt), wide)
	var order []int64
	if sorter != nil {
		order = tensor.Contiguous[int64](k.contiguous(sorter))
	}
	n := seq.Sizes()[seq.Dim()-1]
	for _, at := range order {
		Check(at >= 0 && at < n, "torch.searchsorted(): sorter index out of range")
	}
	perRow := xv.Numel()
	if seq.Dim() > 1 {
		perRow = x.Sizes()[x.Dim()-1]
	}
	var out []int64
	if wide == tensor.Int64 {
		out = searchRows(tensor.Contiguous[int64](sv), tensor.Contiguous[int64](xv), order, n, perRow, right)
	} else {
		out = searchRows(tensor.Contiguous[float64](sv), tensor.Contiguous[float64](xv), order, n, perRow, right)
	}
	t, _ := tensor.FromBits(tensor.Int64, out, x.Sizes()...)
	Copy(k.Pool, k.Out[0], t)
}

// searchRows bisects with PyTorch's comparisons, which NaN makes false: it goes behind everything.
func searchRows[T int64 | float64](seq, x []T, order []int64, n, perRow int64, right bool) []int64 {
	out := make([]int64, len(x))
	for i, v := range x {
		row := int64(0)
		if perRow > 0 && int64(len(seq)) > n {
			row = int64(i) / perRow * n
		}
		at := func(j int) T {
			if order != nil {
				return seq[row+order[row+int64(j)]]
			}
			return seq[row+int64(j)]
		}
		out[i] = int64(sort.Search(int(n), func(j int) bool {
			if right {
				return at(j) > v
			}
			return at(j) >= v
		}))
	}
	return out
}

func isinKernel(k *Kernel) {
	x, test := k.T(0), k.T(1)
	dt := ResultType(k.Tensor(0), k.Tensor(1))
	invert := k.Bool(3)
	xs, ts := k.as(k.as(x, dt), tensor.Float64), k.as(k.as(test, dt), tensor.Float64)
	var found []bool
	if dt.IsIntegral() {
		found = contained(tensor.Contiguous[int64](k.as(k.as(x, dt), tensor.Int64)), tensor.Contiguous[int64](k.as(k.as(test, dt), tensor.Int64)))
	} else {
		found = contained(tensor.Contiguous[float64](xs), tensor.Contiguous[float64](ts))
	}
	for i := range found {
		found[i] = found[i] != invert
	}
	t, _ := tensor.FromBools(found, x.Sizes()...)
	Copy(k.Pool, k.Out[0], t)
}

func contained[T int64 | float64](xs, test []T) []bool {
	set := make(map[T]bool, len(test))
	for _, v := range test {
		set[v] = true
	}
	out := make([]bool, len(xs))
	for i, v := range xs {
		out[i] = set[v]
	}
	return out
}
