package aten

import (
	"math"
	"slices"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// miscOps fit no other family.
var miscOps = []Op{
	{
		Schema: "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
		Shape:  shapeSegments,
		CPU:    segmentKernel,
	},
	{
		Schema: "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
		Shape: func(a *Args) []Meta {
			x := a.Tensor(0)
			Check(a.I64(3) == 0, "Unknown hash_tensor mode: %d", a.I64(3))
			drop := make([]bool, x.Dim())
			for _, d := range WrapDims(a.I64s(1), x.Dim()) {
				drop[d] = true
			}
			sizes := []symbolic.Int{}
			for d, s := range x.Sizes {
				switch {
				case !drop[d]:
					sizes = append(sizes, s)
				case a.Bool(2):
					sizes = append(sizes, symbolic.N(1))
				}
			}
			return []Meta{Contig(tensor.Uint64, sizes...)}
		},
		CPU: hashKernel,
	},
	{
		Schema: "chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
		Tags:   LazyBits,
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("to.dtype", a.Tensor(0), tensor.Complex32, Kw("memory_format", a.V[1])))
		},
	},
	{
		Schema: "histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
		Shape:  shapeHistogramBins,
		CPU:    histogramBins,
	},
	{
		Schema: "histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
		Decomp: func(b *Build, a *Args) []*Value {
			bins := make([]symbolic.Int, a.Tensor(0).Size(-1).Int64())
			for i := range bins {
				bins[i] = a.Int(1)
			}
			return b.CallN("histogramdd", a.V[0], bins, a.V[2], a.V[3], a.V[4])
		},
	},
	{
		Schema: "histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
		Decomp: func(b *Build, a *Args) []*Value {
			hist := b.Call("_histogramdd_from_bin_tensors", a.V[0], a.V[1], Kw("weight", a.V[3]), Kw("density", a.V[4]))
			return append([]*Value{hist}, a.Tensors(1)...)
		},
	},
	{
		Schema: "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
		Decomp: func(b *Build, a *Args) []*Value { return b.CallN("histogramdd", a.V...)[1:] },
	},
	{
		Schema: "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value { return b.CallN("histogramdd", a.V...)[:1] },
	},
	{
		Schema: "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
		Shape: func(a *Args) []Meta {
			x, bins := a.Tensor(0), a.Tensors(1)
			checkHistogram(a, len(bins), 2)
			sizes := make([]symbolic.Int, len(bins))
			for i, e := range bins {
				Check(e.DType == x.DType, "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype %s and bins for dimension %d with dtype %s", x.DType, i, e.DType)
				Check(e.Dim() == 1 && e.Sizes[0].Gt(symbolic.N(0)), "torch.histogramdd: bins tensor should have one dimension, but got %d dimensions in the bins tensor for dimension %d", e.Dim(), i)
				sizes[i] = e.Sizes[0].SubN(1)
			}
			return []Meta{Contig(x.DType, sizes...)}
		},
		CPU: func(k *Kernel) {
			edges := make([][]float64, len(k.Tensors(1)))
			for i, e := range k.Tensors(1) {
				edges[i] = k.floats(e.T)
			}
			k.histogramInto(k.floats(k.T(0)), edges, k.weights(2), k.Bool(3))
		},
	},
	numberOp("_has_compatible_shallow_copy_type(Tensor self, Tensor from) -> bool", 0, func(*Args) any { return BoolS(true) }),
}

func shapeSegments(a *Args) []Meta {
	data := a.Tensor(0)
	axis := WrapDim(a.I64(5), data.Dim())
	Check(data.DType.IsFloat(), "\"_segment_reduce_cpu\" not implemented for '%s'", data.DType.CPPName())
	combinerOf("segment_reduce", a.Str(1))
	seg, extra := a.OptTensor(2), int64(0)
	if seg == nil {
		seg, extra = a.OptTensor(4), 1
	}
	Check(seg != nil, "segment_reduce(): Either lengths or offsets must be defined.")
	Check(seg.DType == tensor.Int64 || seg.DType == tensor.Int32, "segment_reduce(): Expected lengths or offsets to have dtype int32 or int64 but got %s", seg.DType)
	Check(seg.Dim() == axis+1, "segment_reduce(): Expected axis to be the last dimension of lengths but got %d.", axis)
	sizes := append(cloneInts(seg.Sizes[:axis]), seg.Sizes[axis].SubN(extra))
	return []Meta{Contig(data.DType, append(sizes, data.Sizes[axis+1:]...)...)}
}

// segmentKernel reduces runs of slices along an axis; each row of the dimensions before the axis has runs of its own.
func segmentKernel(k *Kernel) {
	data := k.T(0)
	axis := WrapDim(k.I64(5), data.Dim())
	lengths := segmentLengths(k, data.Sizes()[axis])
	x := k.floats(data)
	reduce := k.Str(1)
	mode := combinerOf("segment_reduce", reduce)
	inner := int64(1)
	for _, s := range data.Sizes()[axis+1:] {
		inner *= s
	}
	size := data.Sizes()[axis]
	segs := k.Out[0].Sizes()[axis]
	out := make([]float64, k.Out[0].Numel())
	initial, given := k.OptScalar(7)
	for r := range int64(len(lengths)) / max(segs, 1) {
		at := int64(0)
		for s := range segs {
			n := lengths[r*segs+s]
			for i := range inner {
				acc := mode.identity(tensor.Float64).Float64()
				if given {
					acc = initial.Float64()
				}
				for j := at; j < at+n; j++ {
					acc = combine2(mode, acc, x[(r*size+j)*inner+i])
				}
				switch {
				case reduce == "mean" && n == 0 && !given:
					acc = math.NaN()
				case reduce == "mean" && n > 0:
					acc /= float64(n)
				}
				out[(r*segs+s)*inner+i] = acc
			}
			at += n
		}
	}
	k.storeFloats(k.Out[0], out)
}

// segmentLengths reads argument 2, or the differences of the offsets in argument 4.
func segmentLengths(k *Kernel, size int64) []int64 {
	if t := k.OptT(2); t != nil {
		n := slices.Clone(tensor.Contiguous[int64](k.as(t, tensor.Int64)))
		per := t.Sizes()[t.Dim()-1]
		sum := int64(0)
		for i, v := range n {
			Check(v >= 0 && v <= size, "lengths contains negative value!")
			if sum += v; per > 0 && (int64(i)+1)%per == 0 {
				Check(sum == size || k.Bool(6) && sum < size, "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.")
				sum = 0
			}
		}
		return n
	}
	t := k.OptT(4)
	off := tensor.Contiguous[int64](k.as(t, tensor.Int64))
	per := t.Sizes()[t.Dim()-1]
	var out []int64
	for i := range off {
		if int64(i)%per == 0 {
			Check(off[i] == 0, "segment_reduce(): Expected offsets to start at 0")
			continue
		}
		Check(off[i] >= off[i-1] && off[i] <= size, "segment_reduce(): Expected offsets to grow up to %d, but got %d", size, off[i])
		out = append(out, off[i]-off[i-1])
	}
	return out
}

// hashKernel combines the bits of elements, floats as float64 and integers as int64, by exclusive or.
func hashKernel(k *Kernel) {
	x := k.T(0)
	dt := x.DType()
	var bits []uint64
	if dt.IsIntegral() {
		for _, v := range tensor.Contiguous[int64](k.as(x, tensor.Int64)) {
			bits = append(bits, uint64(v))
		}
	} else {
		for _, v := range k.floats(x) {
			bits = append(bits, math.Float64bits(v))
		}
	}
	strides := make([]int64, x.Dim()) // of the output, by dimension of x
	next := int64(1)
	drop := make([]bool, x.Dim())
	for _, d := range WrapDims(k.I64s(1), x.Dim()) {
		drop[d] = true
	}
	for d := x.Dim() - 1; d >= 0; d-- {
		if !drop[d] {
			strides[d] = next
			next *= x.Sizes()[d]
		}
	}
	out := make([]uint64, max(k.Out[0].Numel(), 0))
	for i, at := range rowMajorOffsets(x.Sizes(), strides) {
		out[at] ^= bits[i]
	}
	t, _ := tensor.FromSlice(out, k.Out[0].Sizes()...)
	Copy(k.Pool, k.Out[0], t)
}

func checkHistogram(a *Args, bins, weight int) {
	x := a.Tensor(0)
	if !x.DType.IsFloat() || x.DType.IsReduced() {
		FailAs("NotImplementedError", "\"histogramdd\" not implemented for '%s'", x.DType.CPPName())
	}
	Check(x.Dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions, but got %d", x.Dim())
	Check(x.Size(-1).Eq(symbolic.N(int64(bins))), "torch.histogramdd: expected %v sequences of bin edges for a %v-dimensional histogram but got %d", x.Size(-1), x.Size(-1), bins)
	if w := a.OptTensor(weight); w != nil {
		Check(w.DType == x.DType, "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got input(%s), and weight(%s)", x.DType, w.DType)
		Check(SameSizes(w.Sizes, x.Sizes[:x.Dim()-1]), "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost dimension, but got input with shape %s and weight with shape %s", sizesText(x.Sizes), sizesText(w.Sizes))
	}
}

func shapeHistogramBins(a *Args) []Meta {
	x, bins := a.Tensor(0), a.Ints(1)
	checkHistogram(a, len(bins), 3)
	out := []Meta{Contig(x.DType, bins...)}
	for i, n := range bins {
		Check(n.Gt(symbolic.N(0)), "histogram(): bins must be > 0, but got %v for dimension %d", n, i)
		out = append(out, Contig(x.DType, n.AddN(1)))
	}
	if r := a.Floats(2); r != nil {
		Check(len(r) == 2*len(bins), "torch.histogramdd: for a %d-dimensional histogram range should have %d elements, but got %d", len(bins), 2*len(bins), len(r))
	}
	return out
}

func histogramBins(k *Kernel) {
	x, bins := k.floats(k.T(0)), k.I64s(1)
	edges := make([][]float64, len(bins))
	for d, n := range bins {
		col := make([]float64, 0, len(x)/len(bins))
		for i := d; i < len(x); i += len(bins) {
			col = append(col, x[i])
		}
		lo, hi := 0.0, 0.0
		r := k.Floats(2)
		if r != nil {
			lo, hi = r[2*d], r[2*d+1]
			Check(lo <= hi, "torch.histogramdd: min should not exceed max, but got min %v max %v for dimension %d", lo, hi, d)
		}
		edges[d] = evenEdges(col, int(n), lo, hi, r == nil, 0.5, k.Out[0].DType())
		k.storeFloats(k.Out[1+d], edges[d])
	}
	k.histogramInto(x, edges, k.weights(3), k.Bool(4))
}

// histogramInto counts the points [n, len(edges)] into the boxes between the edges.
func (k *Kernel) histogramInto(x []float64, edges [][]float64, w []float64, density bool) {
	nd := len(edges)
	hist := make([]float64, k.Out[0].Numel())
	for i := range len(x) / nd {
		at := 0
		for d, e := range edges {
			b := binOf(x[i*nd+d], e)
			if b < 0 {
				at = -1
				break
			}
			at = at*(len(e)-1) + b
		}
		if at >= 0 {
			hist[at] += weightAt(w, i)
		}
	}
	if density {
		sum := 0.0
		for _, h := range hist {
			sum += h
		}
		for i := range hist {
			volume, q := sum, i
			for d := nd - 1; d >= 0; d-- {
				n := len(edges[d]) - 1
				volume *= edges[d][q%n+1] - edges[d][q%n]
				q /= n
			}
			hist[i] /= volume
		}
	}
	k.storeFloats(k.Out[0], hist)
}
