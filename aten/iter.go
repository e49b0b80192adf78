package aten

import (
	"slices"

	"github.com/pt2go/pt2/tensor"
)

// Iter walks several tensors of one (broadcast) shape together. Dimensions are ordered by the strides of the first operand,
// innermost first, and merged where every operand allows it; a dense walk has one dimension.
type Iter struct {
	N       int64     // number of elements
	Sizes   []int64   // innermost first; never empty
	Strides [][]int64 // [operand][dimension], in elements, 0 along broadcast dimensions
}

// NewIter makes a walk over shape. Operands with fewer dimensions, or size 1 where shape has more, are broadcast.
func NewIter(shape []int64, ts ...*tensor.Tensor) *Iter {
	n := len(shape)
	it := &Iter{N: 1, Strides: make([][]int64, len(ts))}
	for _, s := range shape {
		it.N *= s
	}
	dims := make([]int, 0, n)
	for d := n - 1; d >= 0; d-- {
		if shape[d] != 1 {
			dims = append(dims, d)
		}
	}
	stride := func(k, d int) int64 {
		t := ts[k]
		e := d - (n - t.Dim())
		if e < 0 || (t.Sizes()[e] == 1 && shape[d] != 1) {
			return 0
		}
		return t.Strides()[e]
	}
	// A stable sort by the first operand's strides keeps row-major order among ties; later operands break them.
	slices.SortStableFunc(dims, func(a, b int) int {
		for k := range ts {
			sa, sb := stride(k, a), stride(k, b)
			if sa == 0 || sb == 0 || sa == sb {
				continue
			}
			if sa < sb {
				return -1
			}
			return 1
		}
		return 0
	})
	for _, d := range dims {
		it.push(shape[d], func(k int) int64 { return stride(k, d) })
	}
	if len(it.Sizes) == 0 {
		it.push(1, func(int) int64 { return 1 })
	}
	return it
}

// push appends a dimension, merging it into the last one if all operands go on evenly.
func (it *Iter) push(size int64, stride func(k int) int64) {
	last := len(it.Sizes) - 1
	merge := last >= 0
	for k := range it.Strides {
		if !merge {
			break
		}
		merge = stride(k) == it.Strides[k][last]*it.Sizes[last]
	}
	if merge {
		it.Sizes[last] *= size
		return
	}
	it.Sizes = append(it.Sizes, size)
	for k := range it.Strides {
		it.Strides[k] = append(it.Strides[k], stride(k))
	}
}

// Rows calls f for the elements [lo, hi) of the walk in pieces that lie in one innermost row: off[k] is operand k's offset
// relative to its first element, n the length; the step within the row is Strides[k][0]. off is reused between calls.
func (it *Iter) Rows(lo, hi int64, f func(off []int64, n int64)) {
	if lo >= hi {
		return
	}
	nd := len(it.Sizes)
	var idxBuf [8]int64
	var offBuf [8]int64
	idx, off := idxBuf[:0], offBuf[:0]
	if nd > 8 {
		idx = make([]int64, 0, nd)
	}
	if len(it.Strides) > 8 {
		off = make([]int64, 0, len(it.Strides))
	}
	idx, off = idx[:nd], off[:len(it.Strides)]
	r := lo
	for d, s := range it.Sizes {
		idx[d] = r % s
		r /= s
	}
	for k, st := range it.Strides {
		off[k] = 0
		for d := range idx {
			off[k] += idx[d] * st[d]
		}
	}
	for pos := lo; pos < hi; {
		n := min(it.Sizes[0]-idx[0], hi-pos)
		f(off, n)
		pos += n
		idx[0] += n
		for k, st := range it.Strides {
			off[k] += n * st[0]
		}
		for d := 0; d < nd-1 && idx[d] == it.Sizes[d]; d++ {
			idx[d] = 0
			idx[d+1]++
			for k, st := range it.Strides {
				off[k] += st[d+1] - it.Sizes[d]*st[d]
			}
		}
	}
}

// shortRows turns the two innermost dimensions around if the first one has only a few bytes: then a row costs more than its elements.
func (it *Iter) shortRows(size int64) {
	if len(it.Sizes) < 2 || it.Sizes[0]*size > 16 || it.Sizes[1] < 4*it.Sizes[0] {
		return
	}
	it.Sizes[0], it.Sizes[1] = it.Sizes[1], it.Sizes[0]
	for _, st := range it.Strides {
		st[0], st[1] = st[1], st[0]
	}
}

// contig reports that operand k is walked without gaps.
func (it *Iter) contig(k int) bool { return len(it.Sizes) == 1 && (it.Strides[k][0] == 1 || it.N == 1) }

// constant reports that operand k stays at one element.
func (it *Iter) constant(k int) bool {
	for _, s := range it.Strides[k] {
		if s != 0 {
			return false
		}
	}
	return true
}
