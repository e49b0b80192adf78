package aten

import (
	"unsafe"

	"github.com/pt2go/pt2/tensor"
)

// checkGatherSizes refuses an index of other rank than x, or larger than x in a dimension other than d.
func checkGatherSizes(what string, x, ix *Value, d int) {
	if ix.empty() {
		return
	}
	Check(max(x.Dim(), 1) == max(ix.Dim(), 1), "Index tensor must have the same number of dimensions as %s tensor", what)
	for e := range ix.Sizes {
		if e != d && e < x.Dim() && ix.Sizes[e].Gt(x.Sizes[e]) {
			Fail("Size does not match at dimension %d expected index %s to be no larger than self %s apart from dimension %d", e, sizesText(ix.Sizes), sizesText(x.Sizes), d)
		}
	}
}

func gatherKernel(k *Kernel) {
	if walkRows(k, true, k.Out[0], k.T(0), k.T(2), k.I64(1), copyRow) {
		return
	}
	f := gatherLine[[2]uint64]
	switch k.Out[0].DType().Size() {
	case 1:
		f = gatherLine[uint8]
	case 2:
		f = gatherLine[uint16]
	case 4:
		f = gatherLine[uint32]
	case 8:
		f = gatherLine[uint64]
	}
	walkLines(k, true, k.Out[0], k.T(0), k.T(2), k.I64(1), f)
}

// walkAxis visits all places of index: elem, shaped like index or larger, lies at the place itself; axis at the place that
// the index names along dimension dim. It refuses indices out of range.
func walkAxis(k *Kernel, parallel bool, elem, axis, index *tensor.Tensor, dim int64, f func(elem, axis unsafe.Pointer, at int64)) {
	es, as := int64(elem.DType().Size()), int64(axis.DType().Size())
	walkLines(k, parallel, elem, axis, index, dim, func(l *line) {
		for i, at := range l.ids {
			l.check(at)
			f(unsafe.Add(l.elem, int64(i)*l.elemStep*es), unsafe.Add(l.axis, (int64(i)*l.axisStep+at*l.stride)*as), at)
		}
	})
}

// line is a row of index: its numbers, and where the elements of the first of them lie, with the steps to those of the next. Index at
// lies at stride elements further along axis.
type line struct {
	ids                []int64
	elem, axis         unsafe.Pointer
	elemStep, axisStep int64
	stride, size       int64
	dim                int
}

func (l *line) check(at int64) {
	if at < 0 || at >= l.size {
		Fail("index %d is out of bounds for dimension %d with size %d", at, l.dim, l.size)
	}
}

// walkLines is [walkAxis] for whole rows of index.
func walkLines(k *Kernel, parallel bool, elem, axis, index *tensor.Tensor, dim int64, f func(l *line)) {
	if index.Numel() == 0 {
		return
	}
	elem, axis, index = oneD(elem), oneD(axis), oneD(index)
	d := WrapDim(dim, index.Dim())
	ids := tensor.Contiguous[int64](k.as(index, tensor.Int64))
	eb, ab := base(elem), base(axis)
	es, as := int64(elem.DType().Size()), int64(axis.DType().Size())
	nd := index.Dim()
	inner := index.Sizes()[nd-1]
	outer := index.Numel() / inner
	run := func(lo, hi int) {
		l := &line{elemStep: elem.Strides()[nd-1], axisStep: axis.Strides()[nd-1], stride: axis.Strides()[d], size: axis.Sizes()[d], dim: d}
		if d == nd-1 {
			l.axisStep = 0
		}
		for r := lo; r < hi; r++ {
			var eo, ao int64
			q := int64(r)
			for e := nd - 2; e >= 0; e-- {
				c := q % index.Sizes()[e]
				q /= index.Sizes()[e]
				eo += c * elem.Strides()[e]
				if e != d {
					ao += c * axis.Strides()[e]
				}
			}
			l.ids, l.elem, l.axis = ids[int64(r)*inner:int64(r+1)*inner], unsafe.Add(eb, eo*es), unsafe.Add(ab, ao*as)
			f(l)
		}
	}
	if !parallel {
		run(0, int(outer))
		return
	}
	k.Pool.ParallelFor(int(outer), int(max(grain/inner, 1)), run)
}

// gatherLine copies the elements of size bytes that a row of index names.
func gatherLine[T any](l *line) {
	size := int64(unsafe.Sizeof(*(*T)(nil)))
	for i, at := range l.ids {
		l.check(at)
		*(*T)(unsafe.Add(l.elem, int64(i)*l.elemStep*size)) = *(*T)(unsafe.Add(l.axis, (int64(i)*l.axisStep+at*l.stride)*size))
	}
}

// walkRows is [walkAxis] for an index that names the same place for all elements of a row, which then go by at once: one that was
// expanded along its last dimension, as graph networks do. It reports false if index is another one. row gets the place's elements
// first.
func walkRows(k *Kernel, parallel bool, elem, axis, index *tensor.Tensor, dim int64, row func(e unsafe.Pointer, es int64, a unsafe.Pointer, as, n, size int64)) bool {
	nd := index.Dim()
	if nd < 2 || index.Numel() == 0 || elem.DType() != axis.DType() {
		return false
	}
	d := WrapDim(dim, nd)
	inner := index.Sizes()[nd-1]
	if d == nd-1 || inner < 2 || index.Strides()[nd-1] != 0 {
		return false
	}
	ids := index.WithView(index.Sizes()[:nd-1], index.Strides()[:nd-1], index.Offset())
	est, ast, bytes := elem.Strides()[nd-1], axis.Strides()[nd-1], int64(elem.DType().Size())
	lead := func(t *tensor.Tensor) *tensor.Tensor {
		return t.WithView(t.Sizes()[:nd-1], t.Strides()[:nd-1], t.Offset())
	}
	one := &Kernel{Args: k.Args, Out: k.Out}
	if parallel {
		one.Pool = k.Pool
	}
	walkAxis(one, parallel, lead(elem), lead(axis), ids, int64(d), func(e, a unsafe.Pointer, _ int64) { row(e, est, a, ast, inner, bytes) })
	return true
}

// oneD makes a 0-d tensor 1-d.
func oneD(t *tensor.Tensor) *tensor.Tensor {
	if t.Dim() > 0 {
		return t
	}
	return t.WithView([]int64{1}, []int64{1}, t.Offset())
}
