package aten

import (
	"unsafe"

	"github.com/pt2go/pt2/tensor"
)

// takesRows reports that the result o of indexing x along its first dimension by idx is a list of rows of x, one behind the other in memory
// on both sides: what embeddings and graph networks ask for.
func takesRows(o, x, idx *tensor.Tensor) bool {
	return idx.DType() == tensor.Int64 && x.Dim() > 0 && o.DType() == x.DType() && o.Numel() > 0 &&
		o.IsContiguous() && x.IsContiguous() && idx.IsContiguous() && lazyFree(o) && lazyFree(x)
}

func lazyFree(t *tensor.Tensor) bool { return !t.IsConj() && !t.IsNeg() }

// takeRows copies the rows, checking each index as it goes. What lies outside of [0, size) goes to wrap, which refuses it or counts it
// from the end.
func takeRows(k *Kernel, o, x, idx *tensor.Tensor, wrap func(at, size int64) int64) {
	ids := tensor.Contiguous[int64](idx)
	size := x.Sizes()[0]
	row := o.Numel() / int64(len(ids)) * int64(o.DType().Size())
	d, s := base(o), base(x)
	k.Pool.ParallelFor(len(ids), int(max(grain/row, 1)), func(lo, hi int) {
		ids, d := ids[lo:hi], unsafe.Add(d, int64(lo)*row)
		switch row {
		case 4:
			takeWords[uint32](d, s, ids, size, wrap)
		case 8:
			takeWords[uint64](d, s, ids, size, wrap)
		case 16:
			takeWords[[2]uint64](d, s, ids, size, wrap)
		case 32:
			takeWords[[4]uint64](d, s, ids, size, wrap)
		default:
			for i, at := range ids {
				if uint64(at) >= uint64(size) {
					at = wrap(at, size)
				}
				copy(unsafe.Slice((*byte)(unsafe.Add(d, int64(i)*row)), row), unsafe.Slice((*byte)(unsafe.Add(s, at*row)), row))
			}
		}
	})
}

// takeWords is takeRows for rows that are moved in registers.
func takeWords[T any](d, s unsafe.Pointer, ids []int64, size int64, wrap func(at, size int64) int64) {
	dst := unsafe.Slice((*T)(d), len(ids))
	src := unsafe.Slice((*T)(s), size)
	for i, at := range ids {
		if uint64(at) >= uint64(size) {
			at = wrap(at, size)
		}
		dst[i] = src[at]
	}
}
