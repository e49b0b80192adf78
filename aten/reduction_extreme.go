package aten

import (
	"slices"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// extremeDims gives the largest (or least) numbers along dims.
func extremeDims(k *Kernel, dims []int64, larger bool) {
	if k.Out[0].Numel() == 0 {
		return
	}
	r := newReduction(k, dims)
	if extremeColumns(k, r, larger) {
		return
	}
	f := minRow
	if larger {
		f = maxRow
	}
	reduceRows(k, r, f)
}

// extremeColumns serves float32 numbers of which those that stay lie side by side: it compares whole rows. It reports whether it did.
func extremeColumns(k *Kernel, r *reduction, larger bool) bool {
	inIt, outIt := r.inIt, r.outIt
	if r.x.DType() != tensor.Float32 || r.out.DType() != tensor.Float32 || inIt.N < 2 || outIt.Strides[1][0] != 1 || outIt.Strides[0][0] != 1 ||
		outIt.Sizes[0] < 8 || inIt.Strides[0][0] == 1 {
		return false
	}
	pick := cpu.MinimumF32
	if larger {
		pick = cpu.MaximumF32
	}
	xd, od := tensor.Data[float32](r.x), tensor.Data[float32](r.out)
	k.Pool.ParallelFor(int(outIt.N), max(16, grain/int(inIt.N)), func(lo, hi int) {
		outIt.Rows(int64(lo), int64(hi), func(off []int64, n int64) {
			d := od[off[0] : off[0]+n]
			copy(d, xd[off[1]:off[1]+n])
			inIt.Rows(0, inIt.N, func(o []int64, m int64) {
				for i := range m {
					at := off[1] + o[0] + i*inIt.Strides[0][0]
					pick(d, d, xd[at:at+n])
				}
			})
		})
	})
	return true
}

// extremesAt finds the extremes along one dimension, and where they are, for float32 numbers that lie side by side along this dimension
// or along another one. It reports whether it did.
func extremesAt(k *Kernel, larger bool) bool {
	x, out, idx := k.T(0), k.Out[0], k.Out[1]
	if x.DType() != tensor.Float32 || out.Numel() == 0 {
		return false
	}
	d := WrapDim(k.I64(1), x.Dim())
	n, step := int(x.Sizes()[d]), x.Strides()[d]
	gone := make([]bool, x.Dim())
	gone[d] = true
	keepX, keepOut, _ := split(x, out, gone)
	_, keepIdx, _ := split(x, idx, gone)
	it := NewIter(keepX.Sizes(), keepX, keepOut, keepIdx)
	along := step == 1 || n == 1
	if !along && (it.Strides[0][0] != 1 || it.Strides[1][0] != 1 || it.Strides[2][0] != 1) {
		return false
	}
	xd, od, id := tensor.Data[float32](x), tensor.Data[float32](out), tensor.Data[int64](idx)
	k.Pool.ParallelFor(int(it.N), max(1, grain/n), func(lo, hi int) {
		it.Rows(int64(lo), int64(hi), func(off []int64, m int64) {
			if !along {
				extremeBlock(od[off[1]:off[1]+m], id[off[2]:off[2]+m], xd[off[0]:], n, int(step), larger)
				return
			}
			for i := range m {
				at := off[0] + i*it.Strides[0][0]
				row := xd[at : at+int64(n)]
				b := extremeIndex(row, larger)
				od[off[1]+i*it.Strides[1][0]], id[off[2]+i*it.Strides[2][0]] = row[b], int64(b)
			}
		})
	})
	return true
}

// extremeIndex is the place of the first extremum, or of the first NaN.
func extremeIndex(x []float32, larger bool) int {
	m := cpu.MinF32(x)
	if larger {
		m = cpu.MaxF32(x)
	}
	if m != m {
		return slices.IndexFunc(x, func(v float32) bool { return v != v })
	}
	return slices.Index(x, m)
}

// extremeBlock goes through n rows, step elements apart, of as many columns as best has.
func extremeBlock(best []float32, at []int64, x []float32, n, step int, larger bool) {
	copy(best, x)
	clear(at)
	at = at[:len(best)]
	for r := 1; r < n; r++ {
		row := x[r*step : r*step+len(best)]
		for j, v := range row {
			b := best[j]
			if b == b && (v != v || larger && v > b || !larger && v < b) {
				best[j], at[j] = v, int64(r)
			}
		}
	}
}
