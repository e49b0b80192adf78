package aten

import (
	"unsafe"

	"github.com/pt2go/pt2/tensor"
)

// eachRow calls f for every line of x and out along dimension d, which both have with equal sizes; lines are gathered into
// blocks of the kind. The two tensors may be strided in any way.
func eachRow(k *Kernel, x, out *tensor.Tensor, d int, kind Kind, f func(dst, src Block)) {
	n := x.Sizes()[d]
	outer := dropDim(x, d)
	outerOut := dropDim(out, d)
	it := NewIter(outer.Sizes(), outerOut, outer)
	xs, os := x.Strides()[d], out.Strides()[d]
	xb, ob := base(x), base(out)
	xsize, osize := int64(x.DType().Size()), int64(out.DType().Size())
	k.Pool.ParallelFor(int(it.N), max(1, grain/int(max(n, 1))), func(lo, hi int) {
		src := tensor.AlignedBytes(int(n) * kindSize[kind])
		dst := tensor.AlignedBytes(int(n) * kindSize[kind])
		sp, dp := unsafe.Pointer(&src[0]), unsafe.Pointer(&dst[0])
		direct := xs == 1 && kind.native(x.DType())
		directOut := os == 1 && kind.native(out.DType())
		it.Rows(int64(lo), int64(hi), func(off []int64, m int64) {
			for i := range m {
				in := unsafe.Add(xb, (off[1]+i*it.Strides[1][0])*xsize)
				to := unsafe.Add(ob, (off[0]+i*it.Strides[0][0])*osize)
				sb, db := Block{sp, int(n)}, Block{dp, int(n)}
				if direct {
					sb.p = in
				} else {
					loadRow(sp, kind, in, x.DType(), xs, int(n))
				}
				if directOut {
					db.p = to
				}
				f(db, sb)
				if !directOut {
					storeRow(to, out.DType(), os, dp, kind, int(n))
				}
			}
		})
	})
}

// dropDim is the view of t at index 0 of dimension d, without that dimension.
func dropDim(t *tensor.Tensor, d int) *tensor.Tensor {
	var sizes, strides []int64
	for i, s := range t.Sizes() {
		if i != d {
			sizes = append(sizes, s)
			strides = append(strides, t.Strides()[i])
		}
	}
	return t.WithView(sizes, strides, t.Offset())
}
