package aten

import "github.com/pt2go/pt2/tensor"

// groupedOps are products of row groups with matrices of their own, as mixtures of experts have.
var groupedOps = []Op{
	{Schema: "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor", Shape: func(a *Args) []Meta {
		x, w := a.Tensor(0), a.Tensor(1)
		if x.Dim() != 2 || w.Dim() != 3 || !x.Sizes[1].Eq(w.Sizes[1]) || a.Tensor(2).Dim() != 1 || !a.Tensor(2).Sizes[0].Eq(w.Sizes[0]) {
			Fail("grouped_mm: input %v, weight %v and offsets %v do not fit together", x.Sizes, w.Sizes, a.Tensor(2).Sizes)
		}
		return []Meta{Contig(x.DType, x.Sizes[0], w.Sizes[2])}
	}, CPU: groupedKernel},
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
