package aten

import (
	"math"
	"slices"
	"sort"
	"unsafe"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// uniqueOps count: distinct elements, and how many fall into bins.
var uniqueOps = []Op{
	{
		Schema: "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
		Tags:   DataDependent,
		Dynamic: func(k *Kernel) []*tensor.Tensor {
			return uniqueFlat(k, k.T(0), true, k.Bool(2), k.Bool(3))
		},
	},
	{
		Schema: "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
		Tags:   DataDependent,
		Dynamic: func(k *Kernel) []*tensor.Tensor {
			return uniqueFlat(k, k.T(0), true, k.Bool(2), false)[:2]
		},
	},
	{
		Schema: "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
		Tags:   DataDependent,
		Dynamic: func(k *Kernel) []*tensor.Tensor {
			// PyTorch takes dimension 0 of one-dimensional tensors for none, but not -1.
			if d, ok := k.OptInt(3); ok && !(d.Int64() == 0 && k.T(0).Dim() == 1) {
				return uniqueSlices(k, k.T(0), d.Int64(), false, true, true)
			}
			return uniqueFlat(k, k.T(0), false, k.Bool(1), k.Bool(2))
		},
	},
	{
		Schema: "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
		Tags:   DataDependent,
		Dynamic: func(k *Kernel) []*tensor.Tensor {
			return uniqueSlices(k, k.T(0), k.I64(1), true, true, true)
		},
	},
	{
		Schema: "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
		Tags:   DataDependent,
		Dynamic: func(k *Kernel) []*tensor.Tensor {
			return uniqueSlices(k, k.T(0), k.I64(1), false, true, true)
		},
	},
	{
		Schema:  "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
		Tags:    DataDependent,
		Dynamic: bincount,
	},
	{
		Schema: "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
		Shape: func(a *Args) []Meta {
			x := a.Tensor(0)
			if !x.DType.IsFloat() {
				FailAs("NotImplementedError", "\"histogram_cpu\" not implemented for '%s'", x.DType.CPPName())
			}
			Check(a.I64(1) > 0, "bins must be > 0")
			return []Meta{Contig(x.DType, a.Int(1))}
		},
		CPU: func(k *Kernel) {
			x := k.floats(k.T(0))
			edges := evenEdges(x, int(k.I64(1)), k.Scalar(2).Float64(), k.Scalar(3).Float64(), true, 1, k.Out[0].DType())
			k.storeFloats(k.Out[0], countLinear(x, edges, k.Out[0].DType()))
		},
	},
	{
		Schema: "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
		Shape: func(a *Args) []Meta {
			Check(a.I64(1) > 0, "histogram(): bins must be > 0, but got %d for dimension 0", a.I64(1))
			checkWeight(a, 3)
			x := a.Tensor(0)
			return []Meta{Contig(x.DType, a.Int(1)), Contig(x.DType, a.Int(1).AddN(1))}
		},
		CPU: func(k *Kernel) {
			x := k.floats(k.T(0))
			lo, hi := 0.0, 0.0
			if r := k.Floats(2); r != nil {
				Check(len(r) == 2, "torch.histogramdd: for a 1-dimensional histogram, range should have 2 elements, but got %d", len(r))
				lo, hi = r[0], r[1]
				Check(lo <= hi && !math.IsInf(lo, 0) && !math.IsInf(hi, 0), "torch.histogramdd: min should not exceed max, but got min %v max %v for dimension 0", lo, hi)
			}
			edges := evenEdges(x, int(k.I64(1)), lo, hi, k.Floats(2) == nil, 0.5, k.Out[0].DType())
			k.finishHistogram(countEven(x, k.weights(3), edges), edges, k.Bool(4))
			k.storeFloats(k.Out[1], edges)
		},
	},
	{
		Schema: "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
		Shape: func(a *Args) []Meta {
			x, bins := a.Tensor(0), a.Tensor(1)
			Check(bins.Dim() == 1 && bins.Sizes[0].Gt(symbolic.N(1)), "histogram(): bins tensor should have one dimension and at least 2 elements")
			Check(bins.DType == x.DType, "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype %s and bins for dimension 0 with dtype %s", x.DType, bins.DType)
			checkWeight(a, 2)
			return []Meta{Contig(x.DType, bins.Sizes[0].SubN(1)), Contig(x.DType, bins.Sizes[0])}
		},
		CPU: func(k *Kernel) {
			x, edges := k.floats(k.T(0)), k.floats(k.T(1))
			w := k.weights(2)
			hist := make([]float64, len(edges)-1)
			for i, v := range x {
				if b := binOf(v, edges); b >= 0 {
					hist[b] += weightAt(w, i)
				}
			}
			k.finishHistogram(hist, edges, k.Bool(3))
			k.storeFloats(k.Out[1], edges)
		},
	},
}

func checkWeight(a *Args, i int) {
	x := a.Tensor(0)
	if !x.DType.IsFloat() || x.DType.IsReduced() {
		FailAs("NotImplementedError", "\"histogramdd\" not implemented for '%s'", x.DType.CPPName())
	}
	if w := a.OptTensor(i); w != nil {
		Check(w.DType == x.DType, "torch.histogramdd: if weight tensor is provided, it should have the same dtype as the input tensor")
		Check(w.Numel().Eq(x.Numel()), "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost dimension")
	}
}

func (k *Kernel) floats(t *tensor.Tensor) []float64 {
	return tensor.Contiguous[float64](k.as(t, tensor.Float64))
}

func (k *Kernel) weights(i int) []float64 {
	if w := k.OptT(i); w != nil {
		return k.floats(w)
	}
	return nil
}

func weightAt(w []float64, i int) float64 {
	if w == nil {
		return 1
	}
	return w[i]
}

func (k *Kernel) storeFloats(dst *tensor.Tensor, v []float64) {
	t, _ := tensor.FromSlice(v, dst.Sizes()...)
	Copy(k.Pool, dst, t)
}

// finishHistogram stores counts in Out[0], divided by total and width for a density.
func (k *Kernel) finishHistogram(hist, edges []float64, density bool) {
	if density {
		sum := 0.0
		for _, h := range hist {
			sum += h
		}
		for i := range hist {
			hist[i] /= sum * (edges[i+1] - edges[i])
		}
	}
	k.storeFloats(k.Out[0], hist)
}

// evenEdges gives the bins+1 edges of bins of equal width. Where asked and lo equals hi, the data give the range. One without width
// grows by widen on each side: 1 for histc, a half for histogram, which has [0, 1] for no data.
func evenEdges(x []float64, bins int, lo, hi float64, fromData bool, widen float64, dt tensor.DType) []float64 {
	if lo == hi && fromData && len(x) > 0 {
		lo, hi = math.Inf(1), math.Inf(-1)
		for _, v := range x {
			if v != v {
				lo, hi = v, v
				break
			}
			lo, hi = min(lo, v), max(hi, v)
		}
		Check(!math.IsInf(lo, 0) && !math.IsInf(hi, 0) && lo == lo, "range of [%v, %v] is not finite", lo, hi)
	}
	switch {
	case lo != hi:
	case widen < 1 && fromData && len(x) == 0:
		hi = lo + 1
	default:
		lo, hi = lo-widen, hi+widen
	}
	Check(!math.IsInf(lo, 0) && !math.IsInf(hi, 0) && lo == lo && hi == hi, "range of [%v, %v] is not finite", lo, hi)
	Check(lo < hi, "max must be larger than min")
	Check(int64(bins) < mostBytes()/8, "histogram: %d bins are too many", bins)
	edges := make([]float64, bins+1)
	if KindOf(dt) == KF32 {
		v := make([]float32, bins+1)
		spread(v, lo, hi, func(f float64) float32 { return float32(roundTo(dt, f)) })
		for i := range v {
			edges[i] = float64(v[i])
		}
		return edges
	}
	spread(edges, lo, hi, func(f float64) float64 { return f })
	return edges
}

// countEven counts elements into bins between evenly spaced edges; the last bin is closed.
func countEven(x, w, edges []float64) []float64 {
	n := len(edges) - 1
	hist := make([]float64, n)
	lo, hi := edges[0], edges[n]
	for i, v := range x {
		if !(v >= lo && v <= hi) {
			continue
		}
		b := int((v - lo) * (float64(n) / (hi - lo)))
		b = min(max(b, 0), n-1)
		for b > 0 && v < edges[b] {
			b--
		}
		for b < n-1 && v >= edges[b+1] {
			b++
		}
		hist[b] += weightAt(w, i)
	}
	return hist
}

// countLinear counts elements into bins that a division finds, whatever the edges say. Everything is rounded to the dtype, the counts too.
func countLinear(x, edges []float64, dt tensor.DType) []float64 {
	n := len(edges) - 1
	hist := make([]float64, n)
	lo, hi := edges[0], edges[n]
	for _, v := range x {
		if !(v >= lo && v <= hi) {
			continue
		}
		b := castTo(dt, castTo(dt, castTo(dt, v-lo)*castTo(dt, float64(n)))/castTo(dt, hi-lo))
		b = math.Min(b, float64(n-1))
		hist[int(b)] = castTo(dt, hist[int(b)]+1)
	}
	return hist
}

// binOf finds the bin of v between any edges, -1 for none.
func binOf(v float64, edges []float64) int {
	n := len(edges) - 1
	if !(v >= edges[0] && v <= edges[n]) {
		return -1
	}
	return min(sort.Search(n+1, func(i int) bool { return edges[i] > v })-1, n-1)
}

func bincount(k *Kernel) []*tensor.Tensor {
	x, least := k.T(0), k.I64(2)
	if !x.DType().IsInt() {
		FailAs("NotImplementedError", "\"bincount_cpu\" not implemented for '%s'", x.DType().CPPName())
	}
	Check(least >= 0, "minlength should be >= 0")
	if x.Dim() == 1 && x.Numel() == 0 {
		return []*tensor.Tensor{tensor.New(tensor.Int64, least)}
	}
	idx := tensor.Contiguous[int64](k.as(x, tensor.Int64))
	Check(x.Dim() == 1, "bincount only supports 1-d non-negative integral inputs.")
	n := least
	for _, v := range idx {
		Check(v >= 0, "bincount only supports 1-d non-negative integral inputs.")
		Check(v < mostBytes()/8, "bincount: value %d would need too many bins", v)
		n = max(n, v+1)
	}
	w := k.OptT(1)
	if w == nil {
		out := make([]int64, n)
		for _, v := range idx {
			out[v]++
		}
		t, _ := tensor.FromBits(tensor.Int64, out, n)
		return []*tensor.Tensor{t}
	}
	Check(w.Dim() == 1 && w.Numel() == x.Numel(), "weights should be 1-d and have the same length as input")
	if w.DType() == tensor.Float32 {
		out, ws := make([]float32, n), tensor.Contiguous[float32](k.contiguous(w))
		for i, v := range idx {
			out[v] += ws[i]
		}
		t, _ := tensor.FromSlice(out, n)
		return []*tensor.Tensor{t}
	}
	out, ws := make([]float64, n), k.floats(w)
	for i, v := range idx {
		out[v] += ws[i]
	}
	t, _ := tensor.FromSlice(out, n)
	return []*tensor.Tensor{t}
}

// uniqueFlat lists the distinct elements, sorted or as they follow each other, with the place of each element among them
// and their counts where asked, else empty tensors.
func uniqueFlat(k *Kernel, t *tensor.Tensor, sorted, inverse, counts bool) []*tensor.Tensor {
	if t.DType().IsComplex() {
		FailAs("NotImplementedError", "\"unique\" not implemented for '%s'", t.DType().CPPName())
	}
	x := k.contiguous(t)
	n := int(x.Numel())
	lane := make([]sortKey, n)
	if n > 0 {
		orderKeys(lane, base(x), x.DType(), 1)
	}
	if sorted {
		slices.SortStableFunc(lane, func(a, b sortKey) int {
			switch {
			case a.key < b.key:
				return -1
			case a.key > b.key:
				return 1
			}
			return 0
		})
	}
	var first, count []int64
	inv := make([]int64, n)
	for i, e := range lane {
		if i == 0 || e.key != lane[i-1].key || e.key == nanKey && t.DType().IsFloat() {
			first, count = append(first, e.idx), append(count, 0)
		}
		count[len(count)-1]++
		inv[e.idx] = int64(len(first) - 1)
	}
	values := tensor.New(x.DType(), int64(len(first)))
	size := uintptr(x.DType().Size())
	for i, at := range first {
		copyElement(unsafe.Add(base(values), uintptr(i)*size), unsafe.Add(base(x), uintptr(at)*size), size)
	}
	return []*tensor.Tensor{values, longsIf(inverse, inv, t.Sizes()), longsIf(counts, count, []int64{int64(len(count))})}
}

// longsIf is an int64 tensor, or an empty one.
func longsIf(want bool, v []int64, sizes []int64) *tensor.Tensor {
	if !want {
		return tensor.New(tensor.Int64, 0)
	}
	t, _ := tensor.FromBits(tensor.Int64, v, sizes...)
	return t
}

// uniqueSlices is [uniqueFlat] for the slices along a dimension, in lexicographic order.
func uniqueSlices(k *Kernel, t *tensor.Tensor, dim int64, sorted, inverse, counts bool) []*tensor.Tensor {
	d := WrapDim(dim, t.Dim())
	t = oneD(t)
	n := int(t.Sizes()[d])
	rest := without(t, d)
	if n == 0 {
		return []*tensor.Tensor{tensor.New(t.DType(), t.Sizes()...), longsIf(inverse, nil, []int64{0}), longsIf(counts, nil, []int64{0})}
	}
	Check(t.Numel() > 0, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
	per := int(rest.Numel())
	rows := make([][]sortKey, n)
	size := int64(t.DType().Size())
	for i := range rows {
		rows[i] = make([]sortKey, per)
		row := k.contiguous(rest.WithView(rest.Sizes(), rest.Strides(), t.Offset()+int64(i)*t.Strides()[d]))
		orderKeys(rows[i], base(row), t.DType(), 1)
	}
	compare := func(a, b int) int {
		for j := range per {
			switch x, y := rows[a][j].key, rows[b][j].key; {
			case x < y:
				return -1
			case x > y:
				return 1
			}
		}
		return 0
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if sorted {
		slices.SortStableFunc(order, compare)
	}
	var first, count []int64
	inv := make([]int64, n)
	for i, r := range order {
		if i == 0 || compare(order[i-1], r) != 0 {
			first, count = append(first, int64(r)), append(count, 0)
		}
		count[len(count)-1]++
		inv[r] = int64(len(first) - 1)
	}
	sizes := append([]int64(nil), t.Sizes()...)
	sizes[d] = int64(len(first))
	out := tensor.New(t.DType(), sizes...)
	it := NewIter(rest.Sizes(), without(out, d), rest)
	for i, at := range first {
		db, sb := unsafe.Add(base(out), int64(i)*out.Strides()[d]*size), unsafe.Add(base(t), at*t.Strides()[d]*size)
		it.Rows(0, it.N, func(off []int64, m int64) {
			copyRow(unsafe.Add(db, off[0]*size), it.Strides[0][0], unsafe.Add(sb, off[1]*size), it.Strides[1][0], m, size)
		})
	}
	return []*tensor.Tensor{out, longsIf(inverse, inv, []int64{int64(n)}), longsIf(counts, count, []int64{int64(len(count))})}
}
