package aten

import (
	"slices"

	"github.com/pt2go/pt2/tensor"
)

// groupedOps are products of row groups with matrices of their own, as mixtures of experts have.
var groupedOps = []Op{
	{Schema: "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor", Shape: func(a *Args) []Meta {
		x, w := a.Tensor(0), a.Tensor(1)
		if x.Dim() != 2 || w.Dim() != 3 || !x.Sizes[1].Eq(w.Sizes[1]) || a.Tensor(2).Dim() != 1 || !a.Tensor(2).Sizes[0].Eq(w.Sizes[0]) {
			Fail("grouped_mm: input %v, weight %v and offsets %v do not fit together", x.Sizes, w.Sizes, a.Tensor(2).Sizes)
		}
		return []Meta{Contig(x.DType, x.Sizes[0], w.Sizes[2])}
	}, CPU: groupedKernel},
	{Schema: "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor",
		Note: "rows and columns beyond the last offset are zero; PyTorch leaves them as they are", Shape: shapeGroupedMM, CPU: groupedMMKernel},
}

// shapeGroupedMM: groups are the parts of the dimension that the offsets cut (rows, columns or the inner one), or the batch if there are none.
func shapeGroupedMM(a *Args) []Meta {
	x, w, offs := a.Tensor(0), a.Tensor(1), a.OptTensor(2)
	if x.DType != tensor.Float32 && !x.DType.IsReduced() || x.DType != w.DType {
		Fail("Expected mat_a to be Float32, BFloat16 or Float16 matrix, got %s", x.DType.CPPName())
	}
	Check((x.Dim() == 2 || x.Dim() == 3) && (w.Dim() == 2 || w.Dim() == 3), "mat_a and mat_b have to be 2 or 3d")
	Check(x.Sizes[x.Dim()-1].Eq(w.Sizes[w.Dim()-2]), "contraction dimension of mat_a and mat_b must match")
	Check((offs != nil) == (x.Dim() == 2 || w.Dim() == 2), "Have to provide offsets for 2d/3d combinations, and none for 3d/3d")
	Check(!a.Has(3), "Bias not supported yet")
	Check(a.DType(4, x.DType) == x.DType, "Grouped gemm output dtype must match `mat_a` dtype")
	m, n := x.Sizes[x.Dim()-2], w.Sizes[w.Dim()-1]
	if offs == nil {
		Check(x.Sizes[0].Eq(w.Sizes[0]), "batched dimension has to match")
		return []Meta{Contig(x.DType, x.Sizes[0], m, n)}
	}
	Check(offs.Dim() == 1, "offs has to be 1D")
	Check(offs.DType == tensor.Int32, "Offsets have to be int32")
	if x.Dim() == 2 && w.Dim() == 2 {
		return []Meta{Contig(x.DType, offs.Sizes[0], m, n)}
	}
	for _, t := range []*Value{x, w} {
		Check(t.Dim() == 2 || t.Sizes[0].Eq(offs.Sizes[0]), "matrix batch sizes have to match")
	}
	return []Meta{Contig(x.DType, m, n)}
}

func groupedMMKernel(k *Kernel) {
	x, w, out := k.T(0), k.T(1), k.Out[0]
	if !k.Has(2) {
		for i := range x.Sizes()[0] {
			product(k, item(out, i), item(x, i), item(w, i), false)
		}
		return
	}
	storeZero(k, out)
	start := int64(0)
	for i, end := range tensor.Contiguous[int64](k.as(k.T(2), tensor.Int64)) {
		xi, wi, oi := x, w, out
		cut := func(t *tensor.Tensor, dim int) *tensor.Tensor {
			if end < start || end > t.Sizes()[dim] {
				FailIndex("grouped_mm: offset %d is not between %d and %d", end, start, t.Sizes()[dim])
			}
			sizes := slices.Clone(t.Sizes())
			sizes[dim] = end - start
			return t.WithView(sizes, t.Strides(), t.Offset()+start*t.Strides()[dim])
		}
		switch {
		case x.Dim() == 2 && w.Dim() == 2:
			xi, wi, oi = cut(x, 1), cut(w, 0), item(out, int64(i))
		case x.Dim() == 2:
			xi, wi, oi = cut(x, 0), item(w, int64(i)), cut(out, 0)
		default:
			xi, wi, oi = item(x, int64(i)), cut(w, 1), cut(out, 1)
		}
		if end > start {
			product(k, oi, xi, wi, false)
		}
		start = end
	}
}

// item is element i of the first dimension, without that dimension.
func item(t *tensor.Tensor, i int64) *tensor.Tensor {
	return t.WithView(t.Sizes()[1:], t.Strides()[1:], t.Offset()+i*t.Strides()[0])
}

// groupedKernel multiplies rows [offs[i-1], offs[i]) with weight i; rows beyond the last offset are zero.
func groupedKernel(k *Kernel) {
	x, w, out := k.T(0), k.T(1), k.Out[0]
	storeZero(k, out)
	start := int64(0)
	for i, end := range tensor.Contiguous[int64](k.as(k.T(2), tensor.Int64)) {
		if end == start {
			continue
		}
		if end < start || end > x.Sizes()[0] {
			FailIndex("grouped_mm: offset %d is not between %d and %d", end, start, x.Sizes()[0])
		}
		rows := func(t *tensor.Tensor) *tensor.Tensor {
			return t.WithView([]int64{end - start, t.Sizes()[1]}, t.Strides(), t.Offset()+start*t.Strides()[0])
		}
		wi := w.WithView(w.Sizes()[1:], w.Strides()[1:], w.Offset()+int64(i)*w.Strides()[0])
		product(k, rows(out), rows(x), wi, false)
		start = end
	}
}

func storeZero(k *Kernel, t *tensor.Tensor) {
	z, err := tensor.FromBools([]bool{false})
	if err != nil {
		Fail("%v", err)
	}
	Copy(k.Pool, t, z)
}
