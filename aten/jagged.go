package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// jaggedOps pad rows of uneven lengths, which lie one after the other, to a common length, and back; row i is [offsets[i], offsets[i+1]).
var jaggedOps = []Op{
	{Schema: "_jagged_to_padded_dense_forward(Tensor values, Tensor[] offsets, SymInt[] max_lengths, float padding_value=0.) -> Tensor", Shape: func(a *Args) []Meta {
		v, off := a.Tensor(0), oneJagged(a)
		Check(len(a.Ints(2)) == 1, "_jagged_to_padded_dense_forward(): only a single jagged dim is supported for now")
		Check(v.Dim() > 0, "_jagged_to_padded_dense_forward(): values must have a dimension")
		return []Meta{Contig(v.DType, append([]symbolic.Int{off.Sizes[0].SubN(1), a.Ints(2)[0]}, v.Sizes[1:]...)...)}
	}, CPU: func(k *Kernel) {
		v, out := k.T(0), k.Out[0]
		fill, _ := tensor.FromSlice([]float64{k.Float(3)})
		Copy(k.Pool, out, fill)
		eachJagged(k, v.Sizes()[0], func(i, from, n int64) {
			n = min(n, out.Sizes()[1])
			Copy(k.Pool, jaggedPart(dropDimAt(out, i), 0, n), jaggedPart(v, from, n))
		})
	}},
	{Schema: "_padded_dense_to_jagged_forward(Tensor dense, Tensor[] offsets, SymInt? total_L=None) -> Tensor", Tags: DataDependent, Dynamic: func(k *Kernel) []*tensor.Tensor {
		d := k.T(0)
		off := oneJagged(k.Args)
		Check(d.Dim() >= 2 && d.Sizes()[0] == off.Sizes[0].Int64()-1, "_padded_dense_to_jagged_forward(): dense of sizes %v does not fit %v offsets", d.Sizes(), off.Sizes[0])
		o := tensor.Contiguous[int64](k.as(k.Tensors(1)[0].T, tensor.Int64))
		total := o[len(o)-1]
		if n, ok := k.OptInt(2); ok {
			total = n.Int64()
		}
		Check(total >= 0, "_padded_dense_to_jagged_forward(): a total length of %d", total)
		m := Contig(d.DType(), Ints(append([]int64{total}, d.Sizes()[2:]...)...)...)
		out := Alloc(&m)
		storeZero(k, out)
		eachJagged(k, total, func(i, from, n int64) {
			n = min(n, d.Sizes()[1])
			Copy(k.Pool, jaggedPart(out, from, n), jaggedPart(dropDimAt(d, i), 0, n))
		})
		return []*tensor.Tensor{out}
	}},
}

// oneJagged gives the offsets, of which there must be one tensor.
func oneJagged(a *Args) *Value {
	off := a.Tensors(1)
	Check(len(off) == 1, "only a single jagged dim is supported for now")
	Check(off[0].Dim() == 1 && off[0].Sizes[0].Gt(symbolic.N(0)), "expected offsets of 1 dimension that is not empty, got sizes %s", sizesText(off[0].Sizes))
	return off[0]
}

// eachJagged calls f for every row with its place and length among total elements.
func eachJagged(k *Kernel, total int64, f func(i, from, n int64)) {
	o := tensor.Contiguous[int64](k.as(k.Tensors(1)[0].T, tensor.Int64))
	for i := range len(o) - 1 {
		if o[i] < 0 || o[i+1] < o[i] || o[i+1] > total {
			FailIndex("offsets must grow from 0 to %d, got %d and %d", total, o[i], o[i+1])
		}
		f(int64(i), o[i], o[i+1]-o[i])
	}
}

// dropDimAt is the view of t at index i of its first dimension.
func dropDimAt(t *tensor.Tensor, i int64) *tensor.Tensor {
	return t.WithView(t.Sizes()[1:], t.Strides()[1:], t.Offset()+i*t.Strides()[0])
}

// jaggedPart is the view of n elements of the first dimension.
func jaggedPart(t *tensor.Tensor, from, n int64) *tensor.Tensor {
	sizes := append([]int64{n}, t.Sizes()[1:]...)
	return t.WithView(sizes, t.Strides(), t.Offset()+from*t.Strides()[0])
}
